//! Aggregates in a query.

use crate::builtin::{self, FunctionKind};
use pgvet_syntax::ast::{Expr, ExprKind, FunctionCall, Select};

/// An aggregate without GROUP BY: one row, whatever was read.
pub(crate) fn yields_one_row(select: &Select) -> bool {
    select.group_by.is_empty() && select.targets.iter().any(|target| !aggregates(&target.value).is_empty())
}

/// The calls of aggregate functions in an expression.
pub(crate) fn aggregates(expr: &Expr) -> Vec<&FunctionCall> {
    let mut found = Vec::new();
    expr.walk(&mut |part| match &part.kind {
        ExprKind::Call(call) if call.window.is_none() && (call.star || is_aggregate(&call.name)) => found.push(&**call),
        _ => {}
    });
    found
}

fn is_aggregate(name: &str) -> bool {
    builtin::functions(name).iter().any(|function| function.kind == FunctionKind::Aggregate)
}
