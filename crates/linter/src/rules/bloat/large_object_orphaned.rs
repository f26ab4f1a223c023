//! Large objects that lose their last reference.

use super::large_objects::Refers;
use crate::report::{Finding, Reporter};
use crate::rule::{RuleContext, declare_rule};
use crate::rules::around::{earlier, rest};
use crate::rules::text::{enumerate, identifier};
use pgvet_model::catalog::{Column, Relation};
use pgvet_syntax::ast::{AlterTableAction, Ast, Expr, ExprKind, ObjectKind, ObjectName, Part};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// A table or column that refers to large objects is dropped or truncated, and nothing removes the objects.
    ///
    /// ## Why it matters
    ///
    /// The objects stay in `pg_largeobject`, and nothing refers to them any more. They take up space, also in every
    /// backup, until somebody runs `vacuumlo`, which has to search all tables for references. The trigger `lo_manage`
    /// does not help: neither `DROP` nor `TRUNCATE` fires it.
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
    /// - the migration calls `lo_unlink`
    /// - tables that the same deployment created
    /// - the migration undoes it with `ROLLBACK`
    ///
    /// For a column of type `oid`, the confidence is `possible`, and the finding is shown only with `--confidence
    /// possible`, because an `oid` can refer to any system object.
    "large-object-orphaned", Bloat, Warning,
    { needs_commit: true }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    match context.ast {
        Ast::Drop(drop) if drop.kind == ObjectKind::Table => {
            drop.objects.iter().for_each(|object| table(context, &object.name, "DROP TABLE", reporter));
        }
        Ast::Truncate(truncate) => {
            truncate.tables.iter().for_each(|(name, _)| table(context, name, "TRUNCATE", reporter));
        }
        Ast::AlterTable(alter) => {
            for command in &alter.commands {
                let AlterTableAction::DropColumn { column, .. } = &command.action else { continue };
                let found = existing(context, &alter.name);
                let columns = found.map(|relation| columns(context, relation)).unwrap_or_default();
                let dropped: Vec<(&str, Refers)> =
                    columns.into_iter().filter(|(name, _)| *name == column.text).collect();
                report(context, &alter.name, &dropped, "DROP COLUMN", column.range, reporter);
            }
        }
        _ => {}
    }
}

fn table(context: &RuleContext<'_>, name: &ObjectName, verb: &str, reporter: &mut Reporter<'_>) {
    let Some(relation) = existing(context, name) else { return };
    report(context, name, &columns(context, relation), verb, name.range(), reporter);
}

/// The table, if it is older than the migration.
fn existing<'c>(context: &'c RuleContext<'_>, name: &ObjectName) -> Option<&'c Relation> {
    let path = context.session.settings.search_path();
    let relation = context.before.relation(context.before.find_relation(name, &path)?);
    (!relation.birth.is_of(context.deployment()) && !relation.is_temporary()).then_some(relation)
}

/// The columns that may refer to large objects, or only those that certainly do if there are any.
fn columns<'c>(context: &RuleContext<'_>, relation: &'c Relation) -> Vec<(&'c str, Refers)> {
    let large = |column: &'c Column| Some((column.name.as_str(), Refers::of_column(context.before, column)?));
    let mut columns: Vec<(&str, Refers)> = relation.columns.iter().filter_map(large).collect();
    if columns.iter().any(|(_, refers)| *refers == Refers::Surely) {
        columns.retain(|(_, refers)| *refers == Refers::Surely);
    }
    columns
}

fn report(
    context: &RuleContext<'_>,
    table: &ObjectName,
    columns: &[(&str, Refers)],
    verb: &str,
    range: TextRange,
    reporter: &mut Reporter<'_>,
) {
    let Some((first, refers)) = columns.first() else { return };
    if earlier(context).any(unlinks) || rest(context).iter().any(|ast| unlinks(ast)) {
        return;
    }
    let names: Vec<String> = columns.iter().map(|(name, _)| format!("{}.{name}", table.name.text)).collect();
    let refer = if names.len() == 1 { "refers" } else { "refer" };
    let message = format!(
        "{verb} does not delete the large objects to which {} {refer}: they stay until someone runs vacuumlo or \
         lo_unlink()",
        enumerate(names.iter().map(String::as_str))
    );
    let column = identifier(first);
    let help = format!(
        "unlink them first, in batches if there are many:\n    SELECT lo_unlink({column}) FROM {table} WHERE {column} IS NOT NULL;"
    );
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
