//! From `pg_query` nodes to our own.

use super::{Ast, Expr, ExprKind};
use crate::lexer::Token;
use crate::source::TextRange;
use crate::statement::SyntaxError;

/// Parses the SQL statement at `range` of `source`.
pub fn parse_statement(source: &str, range: TextRange, _tokens: &[Token]) -> Result<Ast, SyntaxError> {
    check(&source[range.as_usize()], range, 0)?;
    Ok(Ast::Other("unconverted"))
}

/// Parses the scalar expression at `range` of `source`, with whatever clauses of SELECT follow it.
pub fn parse_expression(source: &str, range: TextRange, _tokens: &[Token]) -> Result<Expr, SyntaxError> {
    const PREFIX: &str = "SELECT ";
    check(&format!("{PREFIX}{}", &source[range.as_usize()]), range, PREFIX.len())?;
    Ok(Expr { kind: ExprKind::Other("unconverted", Vec::new()), range })
}

fn check(sql: &str, range: TextRange, prefix: usize) -> Result<(), SyntaxError> {
    pgvet_parser::parse(sql).map(drop).map_err(|error| SyntaxError {
        message: error.message,
        range: TextRange::at(range.start + error.offset.saturating_sub(prefix) as u32),
    })
}
