//! How large something is.

use pgvet_syntax::lexer::{TokenKind, tokenize};
use pgvet_syntax::source::TextRange;

/// The size of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Files that have text.
    pub files: usize,
    pub statements: usize,
    /// Tokens of statements, without comments and semicolons.
    pub tokens: usize,
}

/// The cost of a statement: every step makes it less, so that a reduction ends.
///
/// A name costs more than a constant, because something must have that name, and a constant costs more than NULL, which
/// stands for nothing in particular.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    tokens: usize,
    values: usize,
    bytes: usize,
}

pub(crate) fn cost(sql: &str) -> Cost {
    let tokens = tokens(sql);
    let value = |kind: TokenKind, text: &str| match kind {
        TokenKind::Punctuation(_) | TokenKind::Operator | TokenKind::Compound => 0,
        TokenKind::Word if text.eq_ignore_ascii_case("null") => 0,
        TokenKind::Word if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") => 1,
        TokenKind::Word | TokenKind::QuotedIdentifier => 2,
        _ => 1,
    };
    let values = tokens.iter().map(|token| value(token.kind, token.text(sql))).sum();
    Cost { tokens: tokens.len(), values, bytes: sql.len() }
}

pub(crate) fn token_count(sql: &str) -> usize {
    tokens(sql).len()
}

fn tokens(sql: &str) -> Vec<pgvet_syntax::lexer::Token> {
    tokenize(sql, TextRange::new(0, sql.len() as u32))
}
