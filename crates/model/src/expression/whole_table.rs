//! Queries that return something of every row of one table.

use super::yields_one_row;
use pgvet_syntax::ast::{ExprKind, FromItem, ObjectName, Query, QueryBody};

/// The table of which a query returns something of every row, as in `SELECT version FROM schema_version`.
pub fn returned_table(query: &Query) -> Option<&ObjectName> {
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

/// The table of which a query returns every row although one is wanted, as `SELECT version INTO current FROM
/// schema_version` does, which assumes a table of one row. With ORDER BY the first of many is meant.
pub fn table_taken_for_one_row(query: &Query) -> Option<&ObjectName> {
    returned_table(query).filter(|_| query.order_by.is_empty())
}
