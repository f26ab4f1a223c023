//! A new compression method that old values do not get.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::any_later;
use pgvet_model::effect::ChangedObject;
use pgvet_syntax::ast::{Ast, ExprKind, FromItem, Insert, InsertSource, QueryBody};

declare_rule! {
    /// `SET COMPRESSION` on a column that already has values, or an `INSERT ... SELECT` that copies values into a
    /// column with another compression method.
    ///
    /// ## Why it matters
    ///
    /// Only values that are written afterwards use the new method. Existing values keep their compression, even if the
    /// table is rewritten, and `INSERT ... SELECT` copies compressed values as they are. Most reads of the table
    /// therefore still decompress `pglz`, which is slower than `lz4`.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE documents ALTER COLUMN body SET COMPRESSION lz4;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE documents ALTER COLUMN body SET COMPRESSION lz4;
    /// UPDATE documents SET body = body || '' WHERE id BETWEEN 1 AND 10000;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a table that the same migration creates
    /// - a column that the migration updates afterwards
    /// - a statement that a `ROLLBACK` of the migration undoes
    "toast-compression-not-applied", Data, Info,
    { recommended: false, needs_commit: true }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    for change in &context.effects.changes {
        let ChangedObject::Compression { table, column, method } = &change.object else { continue };
        if !table.visibility.is_exposed() || method == "default" || is_updated(context, &table.name, column) {
            continue;
        }
        let message = format!("values already stored in `{column}` keep their old compression method");
        let help = format!(
            "update the rows in batches to compress the values again:\n    \
             UPDATE {} SET {column} = {column} || '' WHERE pg_column_compression({column}) <> '{method}' AND ...;",
            table.name
        );
        reporter.report(change.range, message).relation(table).help(help).emit();
    }
    if let Ast::Insert(insert) = context.ast {
        copy(context, insert, reporter);
    }
}

/// Whether the rest of the migration updates the column.
fn is_updated(context: &RuleContext<'_>, table: &str, column: &str) -> bool {
    any_later(context, |ast| {
        matches!(ast, Ast::Update(update) if update.table.name.name.text == table
            && update.assignments.iter().any(|assignment| assignment.column.text == column))
    })
}

/// INSERT ... SELECT of a column into one with another compression method.
///
/// Source: PostgreSQL 18 documentation, ALTER TABLE, SET COMPRESSION.
fn copy(context: &RuleContext<'_>, insert: &Insert, reporter: &mut Reporter<'_>) {
    let path = context.session.settings.search_path();
    let InsertSource::Query(query) = &insert.source else { return };
    let QueryBody::Select(select) = &query.body else { return };
    let [FromItem::Relation(source)] = select.from.as_slice() else { return };
    let find = |name| context.before.find_relation(name, &path).map(|oid| context.before.relation(oid));
    let (Some(from), Some(to)) = (find(&source.name), find(&insert.table.name)) else { return };
    for (at, column) in to.columns.iter().enumerate().filter(|(_, column)| column.compression.is_some()) {
        let position = if insert.columns.is_empty() {
            Some(at)
        } else {
            insert.columns.iter().position(|name| name.text == column.name)
        };
        let copied = match select.targets.as_slice() {
            [only] if matches!(only.value.kind, ExprKind::Star(_)) => from.columns.get(at).map(|column| &column.name),
            targets => position.and_then(|at| match &targets.get(at)?.value.kind {
                ExprKind::Column(path) => path.last(),
                _ => None,
            }),
        };
        let Some(old) = copied.and_then(|name| from.column(name)) else { continue };
        if old.compression != column.compression {
            let method = column.compression.as_deref().unwrap_or_default();
            let message = format!(
                "values of `{}` are copied with their old compression instead of being compressed with {method}",
                old.name
            );
            let help = format!(
                "select `{0} || ''` instead of `{0}`, so that PostgreSQL compresses the values again",
                old.name
            );
            reporter.report(insert.table.name.range(), message).help(help).emit();
        }
    }
}
