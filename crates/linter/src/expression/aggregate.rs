//! Aggregates in a query.

use crate::ast::{Expr, ExprKind, FromItem, FunctionCall, ObjectName, Query, QueryBody, Select};
use crate::builtin::{self, FunctionKind};

/// An aggregate without GROUP BY: one row, whatever was read.
pub(crate) fn yields_one_row(select: &Select) -> bool {
    select.group_by.is_empty() && select.targets.iter().any(|target| !aggregates(&target.value).is_empty())
}

/// The table of which a query returns something of every row, as in `SELECT version FROM schema_version`.
pub(crate) fn returned_table(query: &Query) -> Option<&ObjectName> {
    let QueryBody::Select(select) = &query.body else { return None };
    let FromItem::Relation(table) = select.from.first()? else { return None };
    let is_whole = select.from.len() == 1
        && select.filter.is_none()
        && select.distinct.is_none()
        && select.targets.iter().any(|target| !matches!(target.value.kind, ExprKind::Literal(_)))
        && select.group_by.is_empty()
        && query.limit.is_none()
        && !yields_one_row(select);
    is_whole.then_some(&table.name)
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
