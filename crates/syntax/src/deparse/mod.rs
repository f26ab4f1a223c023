//! Typed expressions and queries as SQL again.
//!
//! What the typed tree does not keep, such as the direction of ORDER BY, is never guessed: such a part is refused with
//! its name. Every operand that is not a single word is put in brackets, so that precedence never matters.

mod expression;
mod function;
mod query;
mod types;

use crate::ast::{Expr, Literal, Query, TypeName};
use std::fmt;

/// A part of SQL that the typed tree does not keep exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotKept(pub &'static str);

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The text of a part, or what of it is not kept.
type Text = Result<String, NotKept>;

/// Writes an expression.
///
/// # Errors
/// Names the part that the typed tree does not keep.
pub fn expression(expr: &Expr) -> Result<String, NotKept> {
    expression::write(expr)
}

/// Writes a query.
///
/// # Errors
/// Names the part that the typed tree does not keep.
pub fn query(query: &Query) -> Result<String, NotKept> {
    query::write(query)
}

/// Writes a data type, in PostgreSQL's usual words.
///
/// # Errors
/// Names the part that the typed tree does not keep.
pub fn type_name(name: &TypeName) -> Result<String, NotKept> {
    types::write(name)
}

/// The modifiers of a type, as between its parentheses.
pub fn modifiers(modifiers: &[Literal]) -> String {
    types::modifiers(modifiers)
}

/// Writes a string constant.
pub fn string(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// The texts of a list, separated by commas.
fn list<T>(items: &[T], write: impl Fn(&T) -> Text) -> Text {
    Ok(items.iter().map(write).collect::<Result<Vec<String>, NotKept>>()?.join(", "))
}

#[cfg(test)]
mod tests;
