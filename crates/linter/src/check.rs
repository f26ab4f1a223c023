//! The run: parsed migrations in, diagnostics and effects out.

use crate::diagnostic::Diagnostic;
use crate::effect::Effects;
use crate::settings::Settings;
use crate::source::{LineIndex, SourceFile, TextRange};
use crate::statement::Statement;
use crate::version::PgVersion;

/// A file that has been read and split into statements. Made in parallel; needs no other file.
#[derive(Debug)]
pub struct ParsedFile {
    pub source: SourceFile,
    pub lines: LineIndex,
    pub statements: Vec<Statement>,
}

/// How the program that runs a migration wraps it in transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransactionMode {
    /// Each statement on its own, unless the file has BEGIN.
    #[default]
    Autocommit,
    /// The program opens a transaction around the file.
    Transaction,
    /// The file is sent as one string: an implicit transaction when it holds several statements.
    SingleString,
}

/// Which way a migration goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    #[default]
    Up,
    /// It takes an earlier migration back, or the tool does not run it at all. It must parse, so its syntax errors are reported; it is not replayed.
    Down,
}

/// What a run does with a file.
#[derive(Debug, Clone, Copy)]
pub struct Migration<'a> {
    pub file: &'a ParsedFile,
    /// The part of the file that is run, for tools that keep both directions in one file; `None` for all of it.
    pub section: Option<TextRange>,
    pub direction: Direction,
    pub transaction: TransactionMode,
    /// Report findings, or only replay it as history?
    pub report: bool,
    /// A dump of a schema and no migration: what it creates counts as existing.
    pub baseline: bool,
}

/// What is known about one statement after a run, for one major version.
#[derive(Debug)]
pub struct StatementEffects {
    pub version: PgVersion,
    pub statement: TextRange,
    pub transaction: TransactionState,
    pub effects: Effects,
}

/// The transaction that a statement runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionState {
    /// Its own.
    None,
    /// BEGIN in the file.
    Explicit,
    /// Opened by the program, or by several statements in one string.
    Implicit,
}

/// Splits and parses a file.
pub fn parse_file(source: SourceFile) -> ParsedFile {
    let lines = LineIndex::new(&source.text);
    ParsedFile { lines, statements: Vec::new(), source }
}

/// Replays the migrations in order and reports what is wrong with those that are to be reported.
///
/// [`Diagnostic::file`] is an index into `migrations`.
pub fn check(migrations: &[Migration<'_>], settings: &Settings) -> Vec<Diagnostic> {
    let _ = (migrations, settings);
    Vec::new()
}

/// Replays the migrations in order and returns, for each that is to be reported, what its statements do on the newest
/// configured major version. The lists run parallel to `migrations`; those of history are empty.
pub fn effects(migrations: &[Migration<'_>], settings: &Settings) -> Vec<Vec<StatementEffects>> {
    let _ = settings;
    migrations.iter().map(|_| Vec::new()).collect()
}
