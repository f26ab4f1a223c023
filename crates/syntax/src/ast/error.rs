//! Errors of the parser about a text that is not a statement.

use crate::source::TextRange;

/// Why a statement could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// PostgreSQL's message.
    pub message: String,
    pub range: TextRange,
}
