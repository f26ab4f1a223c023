//! A file and its statements.

use super::{Statement, Unchanged, parse, parse_again};
use crate::source::{SourceFile, TextRange};

/// A file that has been read and split into statements. Made in parallel; needs no other file.
#[derive(Debug, Clone, Default)]
pub struct ParsedFile {
    pub source: SourceFile,
    pub statements: Vec<Statement>,
}

impl ParsedFile {
    /// Without the statements.
    pub fn unread(source: SourceFile) -> Self {
        Self { source, statements: Vec::new() }
    }
}

/// Splits and parses a file.
pub fn parse_file(source: SourceFile) -> ParsedFile {
    let statements = parse(&source.text);
    ParsedFile { source, statements }
}

/// [`parse_file`] of a text whose last version was `previous`. Also tells where the first statement begins that is not
/// in both as it is.
pub fn parse_file_again(source: SourceFile, previous: ParsedFile) -> (ParsedFile, Option<u32>) {
    let unchanged = Unchanged::between(&previous.source.text, &source.text);
    let known: Vec<TextRange> = previous.statements.iter().map(|statement| statement.range).collect();
    let statements = parse_again(&source.text, previous.statements, unchanged);
    let present = statements.iter().map(|statement| statement.range);
    let changed = known.into_iter().chain(present).filter(|range| !unchanged.holds(*range)).map(|range| range.start);
    let first_change = changed.min();
    (ParsedFile { source, statements }, first_change)
}
