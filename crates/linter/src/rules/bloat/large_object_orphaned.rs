//! Large objects that lose their last reference.

use super::large_objects::Refers;
use crate::report::{Finding, Reporter};
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{any_later, earlier};
use crate::rules::text::{enumerate, identifier, sql_name};
use pgvet_model::catalog::{Oid, Relation};
use pgvet_model::effect::{DataChangeKind, RelationName, RemovalReason, RemovedObject, Visibility};
use pgvet_syntax::ast::{Ast, Expr, ExprKind, LockMode, Part};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;

declare_rule! {
    /// A statement that leaves large objects behind, because it deletes the rows that refer to them, drops the column
    /// or table, or changes the column's type.
    ///
    /// ## Why it matters
    ///
    /// The large objects stay in `pg_largeobject`, although nothing refers to them any more. They take up space, also
    /// in every backup, until somebody runs `vacuumlo`. That program has to search all tables for references. The
    /// trigger `lo_manage` does not help, because neither `DROP` nor `TRUNCATE` fires it.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE documents (id bigint PRIMARY KEY, content oid);
    /// -- migration:
    /// ALTER TABLE documents DROP COLUMN content;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE documents (id bigint PRIMARY KEY, content oid);
    /// -- migration:
    /// SELECT lo_unlink(content) FROM documents WHERE content IS NOT NULL;
    /// ALTER TABLE documents DROP COLUMN content;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a migration that calls `lo_unlink`
    /// - `DELETE` from a table with the trigger `lo_manage`, which deletes the large objects of the deleted rows
    /// - tables that the same deployment created
    /// - a statement that the migration undoes with `ROLLBACK`
    ///
    /// ## Confidence
    ///
    /// For a column of type `oid`, the confidence is `possible`, because an `oid` can also identify other objects, such
    /// as tables. The finding is then shown only with `--confidence possible`.
    "large-object-orphaned", Bloat, Warning,
    { needs_commit: true }
    statement = check,
}

/// How large objects lose their last reference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loss {
    Dropped,
    Emptied,
    Deleted,
    Retyped,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let effects = context.effects;
    if effects.fails.is_some() {
        return;
    }
    let mut seen: FxHashSet<Oid> = FxHashSet::default();
    for removal in effects.removals.iter().filter(|removal| removal.reason != RemovalReason::Part) {
        match &removal.object {
            RemovedObject::Relation(table) if seen.insert(table.oid) => {
                whole_table(context, reporter, table, Loss::Dropped, removal.range);
            }
            RemovedObject::Column { table, column } => {
                let columns = existing(context, table).map(|relation| Refers::columns(context.before, relation));
                let dropped: Vec<(&str, Refers)> =
                    columns.unwrap_or_default().into_iter().filter(|(name, _)| *name == column.as_str()).collect();
                report(context, reporter, table, &dropped, Loss::Dropped, removal.range);
            }
            _ => {}
        }
    }
    for table in &effects.truncates {
        whole_table(context, reporter, table, Loss::Emptied, context.statement.range);
    }
    for change in effects.data_changes.iter().filter(|change| change.kind == DataChangeKind::Delete) {
        let is_managed = context.before.get_relation(change.relation.oid).is_some_and(|table| has_manager(table));
        if change.rows.bound() != Some(0) && !is_managed {
            whole_table(context, reporter, &change.relation, Loss::Deleted, change.range);
        }
    }
    for lock in effects.locks.iter().filter(|lock| lock.mode == LockMode::AccessExclusive) {
        let (Some(before), Some(after)) =
            (existing(context, &lock.relation), context.after.get_relation(lock.relation.oid))
        else {
            continue;
        };
        let is_other =
            |name: &str| after.column(name).is_some_and(|column| Refers::of_column(context.after, column).is_none());
        let mut columns = Refers::columns(context.before, before);
        columns.retain(|(name, _)| is_other(name));
        report(context, reporter, &lock.relation, &columns, Loss::Retyped, lock.range);
    }
}

fn whole_table(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    table: &RelationName,
    loss: Loss,
    range: TextRange,
) {
    let Some(relation) = existing(context, table) else { return };
    report(context, reporter, table, &Refers::columns(context.before, relation), loss, range);
}

/// The table, if it is older than the migration.
fn existing<'c>(context: &RuleContext<'c>, table: &RelationName) -> Option<&'c Relation> {
    let is_old = table.visibility == Visibility::Existing && table.kind.is_table();
    context.before.get_relation(table.oid).map(|relation| &**relation).filter(|_| is_old)
}

/// Whether a trigger removes the large objects of deleted rows.
fn has_manager(table: &Relation) -> bool {
    table.triggers.iter().any(|trigger| trigger.events.delete && trigger.function_name == "lo_manage")
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    table: &RelationName,
    columns: &[(&str, Refers)],
    loss: Loss,
    range: TextRange,
) {
    let Some((first, refers)) = columns.first() else { return };
    if earlier(context).any(unlinks) || any_later(context, unlinks) {
        return;
    }
    let verb = match loss {
        Loss::Dropped => "this DROP",
        Loss::Emptied => "TRUNCATE",
        Loss::Deleted => "this DELETE",
        Loss::Retyped => "this type change",
    };
    let names: Vec<String> = columns.iter().map(|(name, _)| format!("{}.{name}", table.name)).collect();
    let refer = if names.len() == 1 { "refers" } else { "refer" };
    let message = format!(
        "{verb} does not delete the large objects to which {} {refer}: they stay until someone runs vacuumlo or \
         lo_unlink()",
        enumerate(names.iter().map(String::as_str))
    );
    let (column, name) = (identifier(first), sql_name(context, table));
    let unlink = format!("SELECT lo_unlink({column}) FROM {name} WHERE {column} IS NOT NULL;");
    let help = match loss {
        Loss::Retyped => format!(
            "copy the data to a new column instead. Before you drop the old column, delete the large objects, in \
             batches if there are many:\n    {unlink}"
        ),
        Loss::Deleted => {
            format!(
                "delete the large objects of the same rows first:\n    SELECT lo_unlink({column}) FROM {name} WHERE \
                 {column} IS NOT NULL AND (...);"
            )
        }
        Loss::Dropped | Loss::Emptied => {
            format!("delete the large objects first, in batches if there are many:\n    {unlink}")
        }
    };
    let finding = reporter.report(range, message).help(help);
    refers.assumption(first).into_iter().fold(finding, Finding::assuming).emit();
}

/// Whether the statement removes large objects.
fn unlinks(ast: &Ast) -> bool {
    let mut found = false;
    ast.visit(&mut |part| {
        found |= matches!(part, Part::Expr(Expr { kind: ExprKind::Call(call), .. }) if call.name == "lo_unlink");
    });
    found
}
