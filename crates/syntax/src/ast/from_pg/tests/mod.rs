//! One file per family; [`variety`] converts statements of every kind.

mod object;
mod query;
mod table;
mod variety;

use super::parse_statement;
use crate::ast::Ast;
use crate::lexer::tokenize;
use crate::source::TextRange;

/// Converts `sql` as it is in a file, after other text.
fn convert(sql: &str) -> (String, Ast) {
    let source = format!("/* é */ SELECT 1;\n{sql}");
    let range = TextRange::new((source.len() - sql.len()) as u32, source.len() as u32);
    let tokens = tokenize(&source, range);
    let ast = parse_statement(&source, range, &tokens).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    (source, ast)
}

/// The text of a range.
fn at(source: &str, range: TextRange) -> &str {
    &source[range.as_usize()]
}
