//! Parameters by name, which tools put in before PostgreSQL sees the statement.

use crate::builtin;
use pgvet_syntax::ast::{Expr, ExprKind, OperatorForm};

/// Where the name of a parameter stands that a tool puts in before PostgreSQL sees the statement: `@name` and
/// `sqlc.arg(name)`. PostgreSQL reads the first as an operator before a column, and of `=@name` the operator is `=@`.
///
/// Source: <https://docs.sqlc.dev/en/stable/howto/named_parameters.html>; pgx, `NamedArgs`.
pub fn parameter_at(expr: &Expr) -> Option<u32> {
    match &expr.kind {
        ExprKind::Operator { operator, form: OperatorForm::Plain, operands, .. } => {
            let last = operands.last()?;
            let is_glued = operands.len() == 1 && expr.range.start + operator.len() as u32 == last.range.start;
            let is_parameter = builtin::operators(operator).is_empty() || operator == "@" && is_glued;
            (operator.ends_with('@') && is_parameter).then_some(last.range.start)
        }
        ExprKind::Call(call) if call.schema.as_deref() == Some("sqlc") => {
            call.arguments.first().map(|argument| argument.value.range.start)
        }
        _ => None,
    }
}
