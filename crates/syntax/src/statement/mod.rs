//! Statements: pieces of a file that PostgreSQL would run one after the other.
//!
//! [`split`] cuts a text into [`Piece`]s without parsing; [`parse`] parses them. Neither ever fails: what
//! PostgreSQL would refuse is a [`SyntaxError`] of its statement, and the next statement is still found.

mod again;
mod copied;
mod doubt;
mod file;
mod parse;
mod placeholder;
mod plpgsql_block;
mod psql;
mod reading;
mod recover;
mod split;
mod start;

#[cfg(test)]
mod tests;

pub use again::{Unchanged, parse_again};
pub use doubt::{Doubt, DoubtKind};
pub use file::{ParsedFile, parse_file, parse_file_again};
pub use placeholder::{Placeholder, PlaceholderKind, fill_text, has_comment_for_name, is_template};
pub use reading::boolean;

use crate::ast::{Ast, SyntaxError};
use crate::lexer::Token;
use crate::source::TextRange;
use std::sync::Arc;

/// Parsing needs a thread with a stack of this many bytes; statements that would need more are refused with
/// PostgreSQL's own `stack depth limit exceeded`.
pub const PARSE_STACK_BYTES: usize = 160 * 1024 * 1024;

/// Maximum number of pieces of one file: what a file holds is in memory as a whole.
const MAX_PIECES: usize = 250_000;

/// One statement of a file.
#[derive(Debug, Clone)]
pub struct Statement {
    /// From the first to the last token, without comments before it and without the semicolon.
    pub range: TextRange,
    /// Its tokens; ranges are offsets in the file. A placeholder that was replaced for parsing is a word or a string
    /// here, or absent if it was omitted.
    pub tokens: Vec<Token>,
    /// Comments directly before it, inside it, and after it on the line where it ends.
    pub comments: Vec<TextRange>,
    pub parsed: Result<Arc<Ast>, SyntaxError>,
    /// Placeholders that were replaced so that the statement could be parsed; empty if the text is SQL as it is.
    pub placeholders: Vec<Placeholder>,
    /// Whether a semicolon (or a psql command such as `\gset`) ends it.
    pub terminated: bool,
    /// The first string that `standard_conforming_strings` decides the end of, and the value that it was read with.
    pub quoting: Option<Quoting>,
}

/// A string of which `standard_conforming_strings` says where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoting {
    pub string: TextRange,
    /// The value that it was read with.
    pub standard_conforming_strings: bool,
    /// Whether the text leaves the value open; then it is among the doubts.
    pub in_doubt: bool,
}

impl Statement {
    /// `None` where it could not be read.
    pub fn ast(&self) -> Option<&Ast> {
        self.parsed.as_deref().ok()
    }
}

/// A text cut into pieces.
#[derive(Debug, Clone, Default)]
pub struct SplitResult {
    /// In the order of the text; together they hold every token but separating semicolons.
    pub pieces: Vec<Piece>,
    /// Every comment of the text outside of COPY data and psql commands, in order.
    pub comments: Vec<TextRange>,
    /// Problems of pieces that are not SQL.
    pub problems: Vec<SyntaxError>,
    /// Places that can be read otherwise, and what runs without being read; in the order of the text.
    pub doubts: Vec<Doubt>,
}

/// A statement, or something between statements that PostgreSQL never sees.
#[derive(Debug, Clone)]
pub struct Piece {
    pub kind: PieceKind,
    pub range: TextRange,
    /// Empty unless it is a statement.
    pub tokens: Vec<Token>,
    pub comments: Vec<TextRange>,
    pub terminated: bool,
    /// The setting in effect where it stands, as far as the file shows.
    pub standard_conforming_strings: bool,
    /// psql commands in the middle of the statement.
    pub holes: Vec<TextRange>,
    /// The first string that the setting decides the end of.
    pub quoting: Option<Quoting>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    Sql,
    /// A bare `begin ... end` that the program wraps in DO.
    PlpgsqlBlock,
    /// A backslash command of psql with its arguments, for example `\i file`.
    MetaCommand,
    /// Text that psql does not run: a branch whose condition is false, and all that follows `\quit`.
    NotRun,
    /// The lines after `COPY ... FROM stdin;`, with the line `\.`.
    CopyData,
    /// A tag of a template engine that is no value: `{{ if ... }}`, `{% endif %}`.
    TemplateTag,
    /// MySQL's `DELIMITER //`.
    Delimiter,
    /// The rest of a text after [`MAX_PIECES`]; not read.
    Rest,
}

impl PieceKind {
    pub fn is_statement(self) -> bool {
        matches!(self, Self::Sql | Self::PlpgsqlBlock | Self::Rest)
    }
}

/// Splits `text` into statements; never fails, loses nothing. Offsets are `u32`: of a text of 4 GiB or more nothing is
/// read, and that is its one problem.
pub fn split(text: &str) -> SplitResult {
    if is_too_large(text) {
        let message = "file is larger than 4 GiB".to_owned();
        let problems = vec![SyntaxError { message, range: TextRange::default() }];
        return SplitResult { problems, ..SplitResult::default() };
    }
    let mut pieces = Vec::new();
    let result = split::Splitter::new(text, &mut |piece| pieces.push(piece)).run();
    SplitResult { pieces, ..result }
}

/// Returns the places of a text that can be read otherwise, or that run what is not in it.
pub fn doubts(text: &str) -> Vec<Doubt> {
    if may_have_doubts(text) { split(text).doubts } else { Vec::new() }
}

/// Most texts have nothing to doubt, and need not be split again to find that out.
fn may_have_doubts(text: &str) -> bool {
    let has_glued_tag = || text.contains("$_") || text.contains("$.");
    text.contains(['\\', '{']) || has_glued_tag() || (!text.is_ascii() && reading::Settings::concern(text))
}

/// Splits `text` and parses each statement. The thread must have a stack of [`PARSE_STACK_BYTES`].
pub fn parse(text: &str) -> Vec<Statement> {
    let (mut parser, mut statements) = (parse::Parser::new(text), Vec::new());
    each_piece(text, &mut |piece| match piece.kind {
        PieceKind::CopyData => copied::note_rows(text, piece.range, &mut statements),
        _ => parser.parse(piece, &mut statements),
    });
    statements
}

/// Splits `text` and hands over the pieces that are statements or their data, one after the other: a file may have very
/// many.
fn each_piece(text: &str, take: &mut dyn FnMut(Piece)) {
    if is_too_large(text) {
        return;
    }
    let mut take = |piece: Piece| {
        if piece.kind.is_statement() || piece.kind == PieceKind::CopyData {
            take(piece);
        }
    };
    split::Splitter::new(text, &mut take).run();
}

/// Whether offsets would be no `u32`.
fn is_too_large(text: &str) -> bool {
    u32::try_from(text.len()).is_err()
}

impl SplitResult {
    /// The backslash commands of psql in order; later layers read `\i` and `\set`.
    pub fn meta_commands(&self) -> impl Iterator<Item = TextRange> {
        self.pieces.iter().filter(|piece| piece.kind == PieceKind::MetaCommand).map(|piece| piece.range)
    }
}

impl Piece {
    /// Its range, from the first to the last token.
    fn token_range(tokens: &[Token]) -> TextRange {
        match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => TextRange::new(first.range.start, last.range.end),
            _ => TextRange::default(),
        }
    }
}
