//! From pg_query nodes to our own.

use super::Ast;
use crate::lexer::Token;
use crate::source::TextRange;
use crate::statement::SyntaxError;

/// Parses the one statement at `range` of `source`; `tokens` are its tokens.
pub fn parse_statement(source: &str, range: TextRange, tokens: &[Token]) -> Result<Ast, SyntaxError> {
    match pgvet_parser::parse(&source[range.as_usize()]) {
        Ok(_) => Ok(Ast::Other("unconverted")),
        Err(error) => {
            let offset = range.start + error.offset as u32;
            let token = tokens.iter().find(|token| token.range.end > offset).map(|token| token.range);
            Err(SyntaxError { message: error.message, range: token.unwrap_or(TextRange::at(range.end)) })
        }
    }
}
