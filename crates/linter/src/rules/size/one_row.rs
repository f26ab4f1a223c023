//! Changes of all rows that only make sense where there is one.

use crate::rule::RoutineContext;
use pgvet_model::catalog::Relation;
use pgvet_model::effect::RelationName;
use pgvet_model::expression::table_taken_for_one_row;
use pgvet_model::routine::Sql;
use pgvet_syntax::ast::{Ast, Expr, ExprKind, ObjectName, Part, Query, QueryBody, SubqueryKind, Update};

/// Whether the code treats what the changed rows return as one row, as `UPDATE counter SET n = n + 1 RETURNING n INTO next`
/// does.
pub(crate) fn takes_one_row(sql: &Sql<'_>) -> bool {
    let mut returns = false;
    sql.ast.visit(&mut |part| match part {
        Part::Update(update) => returns |= !update.returning.is_empty(),
        Part::Delete(delete) => returns |= !delete.returning.is_empty(),
        _ => {}
    });
    returns && sql.one_row
}

/// Whether the code reads the whole table into variables, as `SELECT n INTO next FROM counter` does.
pub(crate) fn reads_one_row(context: &RoutineContext<'_>, table: &RelationName) -> bool {
    let path = &context.routine.search_path;
    let is_table = |read: &ObjectName| context.catalog.find_relation(read, path) == Some(table.oid);
    let takes = |sql: &Sql<'_>| match sql.ast {
        Ast::Select(query) => sql.one_row && table_taken_for_one_row(query).is_some_and(is_table),
        _ => false,
    };
    context.routine.steps().iter().flat_map(|step| &step.sql).any(takes)
}

/// Whether the statement gives all rows of the table the same count or sum of another table, as in
/// `UPDATE site SET users = (SELECT count(*) FROM users)`. In a table with many rows it would mean nothing.
///
/// A `min` or `max` may well be the same for many rows: all of them have seen messages up to the last one.
pub(crate) fn stores_total(ast: &Ast, table: &Relation) -> bool {
    let mut found = false;
    ast.visit(&mut |part| {
        if let Part::Update(update) = part
            && update.table.name.name.text == table.name
        {
            found |= update.assignments.iter().any(|assignment| is_total(&assignment.value, update, table));
        }
    });
    found
}

fn is_total(value: &Expr, update: &Update, table: &Relation) -> bool {
    match &value.kind {
        ExprKind::Cast { operand, .. } => is_total(operand, update, table),
        ExprKind::Coalesce(list) => list.first().is_some_and(|first| is_total(first, update, table)),
        ExprKind::Subquery { kind: SubqueryKind::Scalar, query, .. } => {
            counts_rows(query, &update.table.name) && !names_row(query, update, table)
        }
        _ => false,
    }
}

/// `SELECT count(...)` or `sum(...)` over other tables, without GROUP BY.
fn counts_rows(query: &Query, own: &ObjectName) -> bool {
    let QueryBody::Select(select) = &query.body else { return false };
    let [target] = select.targets.as_slice() else { return false };
    let mut counts = false;
    target.value.walk(&mut |part| {
        if let ExprKind::Call(call) = &part.kind {
            counts |= call.window.is_none() && matches!(call.name.as_str(), "count" | "sum");
        }
    });
    let mut reads_own = false;
    query.visit(&mut |part| {
        if let Part::Read(read) = part {
            reads_own |= read.name.name.text == own.name.text;
        }
    });
    counts && !reads_own && !select.from.is_empty() && select.group_by.is_empty()
}

/// Whether a subquery may name a column of the row that is updated.
fn names_row(query: &Query, update: &Update, table: &Relation) -> bool {
    let reference = &update.table;
    let own_name = reference.called();
    let mut found = !table.known;
    query.visit(&mut |part| {
        if let Part::Expr(Expr { kind: ExprKind::Column(path), .. }) = part {
            found |= match path.as_slice() {
                [column] => table.column(column).is_some(),
                [.., qualifier, _] => qualifier == own_name,
                [] => false,
            };
        }
    });
    found
}
