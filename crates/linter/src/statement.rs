//! Statements: pieces of a file that PostgreSQL would run one after the other.

use crate::ast::Ast;
use crate::lexer::Token;
use crate::source::TextRange;

/// One statement of a file.
#[derive(Debug, Clone)]
pub struct Statement {
    /// From the first to the last token, without comments before it and without the semicolon.
    pub range: TextRange,
    /// Its tokens; ranges are offsets in the file.
    pub tokens: Vec<Token>,
    /// Comments directly before it and inside it.
    pub comments: Vec<TextRange>,
    pub parsed: Result<Ast, SyntaxError>,
}

/// Why a statement could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// PostgreSQL's message.
    pub message: String,
    pub range: TextRange,
}

/// Splits and parses a text.
pub fn parse(text: &str) -> Vec<Statement> {
    let _ = text;
    Vec::new()
}
