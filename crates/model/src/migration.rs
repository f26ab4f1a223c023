//! The input of a run: migrations, and the behaviour of the programs that run them.

use crate::deployment::Deployment;
use crate::incident::Incident;
use crate::runner::{AfterCommit, Refusal, Runner};
use pgvet_syntax::ast::{Ast, CreateSchema};
use pgvet_syntax::source::{SourceFile, TextRange};
use pgvet_syntax::statement::{Doubt, DoubtKind, ParsedFile, Statement};
use smol_str::SmolStr;
use std::borrow::Borrow;
use std::ops::Range;

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

/// The direction of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    #[default]
    Up,
    /// It takes an earlier migration back, or the tool does not run it at all. It must parse, so its syntax errors are reported; it is not replayed.
    Down,
}

/// A migration in a file, and how a run treats it.
#[derive(Debug, Clone, Copy)]
pub struct Migration<'a> {
    pub file: &'a SourceFile,
    /// All statements of the file, or none where [`Host::statements`] has them.
    pub parsed: &'a [Statement],
    /// The part of the file that is run, for tools that keep both directions in one file; `None` for all of it.
    pub section: Option<TextRange>,
    pub direction: Direction,
    pub transaction: TransactionMode,
    /// Texts that are each sent as one string although other statements are sent one by one, such as the text between
    /// `StatementBegin` and `StatementEnd` of goose: several statements in one are an implicit transaction. In order,
    /// without overlap.
    pub strings: &'a [TextRange],
    /// How the program continues after a COMMIT, and with the next migration.
    pub runner: Runner,
    /// The schemas that the program puts first in `search_path` before it runs the migration.
    pub first_schemas: &'a [SmolStr],
    /// The parts of the file that the program refuses: all of them belong to the first migration of the file that is
    /// run.
    pub refusals: &'a [Refusal],
    /// What has happened to it since databases have applied migrations: all of it belongs to one migration of the file.
    pub incidents: &'a [Incident],
    /// Whether to report findings, or only to replay it as history.
    pub report: bool,
    /// Whether it is a dump of a schema and not a migration: everything that it creates exists from the beginning.
    pub baseline: bool,
    /// Whether the migrations before it are known. Not for scripts without numbers, and not if migrations in a
    /// programming language run among those in SQL.
    pub ordered: bool,
    /// Whether it runs on the databases of production, as far as its place shows. Scripts that no migration tool runs and
    /// files in folders of tests may not: the rows that they insert say nothing about how many a table has.
    pub in_production: bool,
    /// Migrations with the same number are released together; `None`: nothing says with which.
    pub release: Option<u32>,
    /// Whether `pgvet capture` wrote the file: comments before its statements say how often each of them was sent.
    pub captured: bool,
    /// Migrations of different databases do not see each other; what runs in database 0 before any other is the
    /// history of all.
    pub database: u32,
}

impl<'a> Migration<'a> {
    /// A whole file, run statement by statement and reported.
    pub fn new(file: &'a ParsedFile) -> Self {
        Self {
            file: &file.source,
            parsed: &file.statements,
            section: None,
            direction: Direction::Up,
            transaction: TransactionMode::Autocommit,
            strings: &[],
            runner: Runner::default(),
            first_schemas: &[],
            refusals: &[],
            incidents: &[],
            report: true,
            baseline: false,
            ordered: true,
            in_production: true,
            release: None,
            captured: false,
            database: 0,
        }
    }

    /// How often the program sent the statement that begins there, with these or other values.
    pub fn times_sent(&self, start: u32) -> u64 {
        let before = self.file.text.get(..start as usize).filter(|_| self.captured).unwrap_or_default();
        let mut comments = before.trim_end_matches(' ').lines().rev().take_while(|line| line.starts_with("--"));
        comments.find_map(times_of_comment).unwrap_or(1)
    }

    /// The deployment of the migration, if it is the one at this index; `None` for what existed before.
    pub fn deployment(&self, index: u32) -> Option<Deployment> {
        (!self.baseline).then(|| self.release.map_or(Deployment::Alone(index), Deployment::Release))
    }

    /// The first schemas that the program creates before the migration if they are missing: those that the migration
    /// does not create itself.
    pub fn schemas_of_program(&self) -> impl Iterator<Item = &'a SmolStr> {
        let creates = |name: &SmolStr| {
            let is_of = |create: &CreateSchema| create.name.as_ref().is_some_and(|own| own.text == *name);
            self.statements()
                .any(|statement| matches!(statement.ast(), Some(Ast::CreateSchema(create)) if is_of(create)))
        };
        self.first_schemas.iter().filter(move |name| !creates(name))
    }

    /// Another file in its place.
    #[must_use]
    pub fn of(self, file: &'a ParsedFile) -> Self {
        Self { file: &file.source, parsed: &file.statements, ..self }
    }

    /// The statements of the part of the file that is run.
    pub fn statements(&self) -> impl DoubleEndedIterator<Item = &'a Statement> + use<'a> {
        self.own_statements().iter()
    }

    /// The statements of the part of the file that is run, as a slice.
    pub fn own_statements(&self) -> &'a [Statement] {
        let Some(section) = self.section else { return self.parsed };
        let start = self.parsed.partition_point(|statement| statement.range.start < section.start);
        let end = self.parsed.partition_point(|statement| statement.range.end <= section.end);
        &self.parsed[start..end.max(start)]
    }

    /// The statement of this range.
    pub fn statement_at(&self, range: TextRange) -> Option<&'a Statement> {
        let at = self.parsed.partition_point(|statement| statement.range.start < range.start);
        let mut here = self.parsed[at..].iter().take_while(|statement| statement.range.start == range.start);
        here.find(|statement| statement.range == range)
    }

    /// The statements that end before an offset, the last one first. Unlike a search through all of them, this costs no more
    /// than what is taken of it.
    pub fn statements_before(&self, end: u32) -> impl Iterator<Item = &'a Statement> + use<'a> {
        let count = self.parsed.partition_point(|statement| statement.range.end <= end);
        let section = self.section;
        let before = self.parsed[..count].iter().rev();
        before.filter(move |statement| section.is_none_or(|section| section.contains(statement.range)))
    }

    /// The statements that begin after an offset, at the same cost.
    pub fn statements_after(&self, start: u32) -> impl Iterator<Item = &'a Statement> + use<'a> {
        let count = self.parsed.partition_point(|statement| statement.range.start <= start);
        let section = self.section;
        let after = self.parsed[count..].iter();
        after.filter(move |statement| section.is_none_or(|section| section.contains(statement.range)))
    }

    /// Whether PostgreSQL may read a place differently from pgvet, given the value of `standard_conforming_strings`
    /// before the migration.
    ///
    /// Source: PostgreSQL 18, `src/backend/tcop/postgres.c`, `exec_simple_query`: the whole string is parsed before its
    /// first statement runs.
    pub fn is_in_doubt(&self, doubt: &Doubt, before: bool) -> bool {
        let DoubtKind::SentTogether { standard_conforming_strings, by_psql } = doubt.kind else { return true };
        if standard_conforming_strings == before {
            return false;
        }
        let Some(cause) = doubt.cause else { return true };
        if self.section.is_some_and(|section| section.contains(doubt.range) && !section.contains(cause)) {
            return true;
        }
        let string_of = |range: TextRange| self.strings.iter().position(|string| string.contains(range));
        match string_of(doubt.range) {
            None if self.runner.sends_statements => false,
            None if by_psql && !self.runner.is_known => false,
            string => string_of(cause) == string,
        }
    }

    /// How the way in which the statement at `at` is sent affects a transaction around it.
    pub fn sent<S: Borrow<Statement>>(&self, statements: &[S], at: usize) -> Sent {
        let Some(together) = self.sent_together(statements, at) else { return Sent::default() };
        Sent {
            opens: at == together.start || self.begins_another(),
            closes: at + 1 == together.end && together.end < statements.len(),
        }
    }

    /// Whether statements after a COMMIT are in another transaction that is not the file's own.
    pub fn begins_another(&self) -> bool {
        self.transaction != TransactionMode::Transaction || self.runner.after_commit == AfterCommit::Together
    }

    /// Whether the statement at `at` begins a session of its own in the middle of the migration.
    pub fn begins_session<S: Borrow<Statement>>(&self, statements: &[S], at: usize) -> bool {
        let string_of = |at: usize| {
            let start = statements[at].borrow().range.start;
            self.strings.partition_point(|string| string.start <= start)
        };
        self.runner.session_per_string && at > 0 && string_of(at - 1) != string_of(at)
    }

    /// The statements that run in one transaction with the one at `at` because of how they are sent, whatever BEGIN and
    /// COMMIT stand among them.
    fn sent_together<S: Borrow<Statement>>(&self, statements: &[S], at: usize) -> Option<Range<usize>> {
        match self.transaction {
            _ if self.baseline => None,
            TransactionMode::Transaction => Some(0..statements.len()),
            TransactionMode::SingleString => (statements.len() > 1).then_some(0..statements.len()),
            TransactionMode::Autocommit => {
                let range_of = |statement: &S| statement.borrow().range;
                let range = range_of(&statements[at]);
                let string =
                    self.strings[..self.strings.partition_point(|string| string.start <= range.start)].last()?;
                if !string.contains(range) {
                    return None;
                }
                let start = statements.partition_point(|statement| range_of(statement).start < string.start);
                let end = start + statements[start..].partition_point(|statement| string.contains(range_of(statement)));
                (end - start > 1).then_some(start..end)
            }
        }
    }
}

/// The comment before a captured statement that was sent several times.
pub fn times_comment(times: usize) -> String {
    format!("sent {times} times, with these or other values")
}

fn times_of_comment(line: &str) -> Option<u64> {
    let (times, rest) = line.strip_prefix("-- sent ")?.split_once(' ')?;
    (rest == "times, with these or other values").then(|| times.parse().ok()).flatten()
}

/// The transaction that a statement gets without a BEGIN or COMMIT of the file.
///
/// Source: PostgreSQL 18 documentation, 54.2.2.1: several statements in one string are an implicit transaction, and so is
/// what follows a COMMIT in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// One opens before it, if none is open.
    pub opens: bool,
    /// It ends before the next statement, unless BEGIN has opened it.
    pub closes: bool,
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
