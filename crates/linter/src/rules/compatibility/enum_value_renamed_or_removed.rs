//! Labels of an enum that deployed code may still write.

use crate::cause::Cause;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{earlier, is_named};
use crate::rules::deployment::phases::released;
use crate::rules::deployment::retyped::retyped;
use crate::rules::deployment::users;
use crate::rules::text::enumerate;
use pgvet_model::catalog::{Catalog, SqlType, TypeKind};
use pgvet_model::effect::{ChangedObject, Using};
use pgvet_syntax::ast::{AlterTableAction, Ast, CreateTypeKind, ObjectName};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// A renamed label of an enum, or a column whose new enum type lacks labels of the old type.
    ///
    /// ## Why it matters
    ///
    /// Deployed code that writes the old label, or compares with it, fails after the commit: PostgreSQL refuses an
    /// unknown label even in a `WHERE`. If a row holds a label that the new type lacks, and `USING` does not replace
    /// it, the migration itself fails.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TYPE status AS ENUM ('new', 'canceled');
    /// -- migration:
    /// ALTER TYPE status RENAME VALUE 'canceled' TO 'cancelled';
    /// ```
    ///
    /// Use instead:
    ///
    /// To rename a label, add a second label. Deploy code that reads both labels and writes only the new one, and then
    /// update the rows in batches.
    ///
    /// To remove a label, deploy code that no longer uses it. Update the rows that have the label in batches, and add a
    /// `CHECK` that rejects it. The label stays in the type.
    ///
    /// The example shows the first step of a rename:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TYPE status AS ENUM ('new', 'canceled');
    /// -- migration:
    /// ALTER TYPE status ADD VALUE 'cancelled';
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - types and tables that the same migration created
    /// - a new enum that has all labels of the old one
    /// - all but the first of several columns that change from the same enum to another type
    ///
    /// ## Other linters
    ///
    /// Linters that see only one statement at a time do not know which labels a new enum lacks.
    "enum-value-renamed-or-removed", Compatibility, Warning,
    {
        sources: &["strong_migrations/rename_enum_value", "migrationpilot/MP060", "migrationpilot/MP024"],
        yields_to: &[&super::contract_before_release::RULE.meta],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    renamed(context, reporter);
    for change in retyped(context) {
        let removed = removed_labels(context.after, change.from, change.to);
        if removed.is_empty() || is_said(context, change.range) {
            continue;
        }
        let names = enumerate(removed.iter().map(SmolStr::as_str));
        let (values, them) = if removed.len() == 1 { ("the value", "it") } else { ("the values", "them") };
        let consequence = if change.using == Using::Computed {
            format!("USING replaces {them} in the rows, but deployed code that still uses {values} fails")
        } else if change.updated {
            format!("deployed code that uses {values} fails, and the migration fails if a row still has {them}")
        } else {
            format!(
                "the migration fails if a row still has {them}, and deployed code that uses {values} fails afterwards"
            )
        };
        let message = format!(
            "the new type of `{}.{}` does not have {values} {names}: {consequence}",
            change.table.name, change.column
        );
        // The CHECK also rejects later changes of old rows, even NOT VALID, so these rows come first.
        let help = format!(
            "keep {values} in the type. First deploy code that no longer uses {names}. Then update the rows that have \
             {them}, in batches, and add a CHECK ... NOT VALID that rejects {them}"
        );
        reporter.report(change.range, message).relation(change.table).help(help).emit();
    }
}

/// Whether an earlier statement of the migration gave another column the same new type.
fn is_said(context: &RuleContext<'_>, type_range: TextRange) -> bool {
    let new = context.text(type_range);
    earlier(context).any(|ast| {
        let Ast::AlterTable(alter) = ast else { return false };
        alter.commands.iter().any(|command| {
            matches!(&command.action, AlterTableAction::AlterColumnType { type_name, .. }
                if context.text(type_name.range) == new)
        })
    })
}

fn renamed(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let label = context.effects.changes.iter().find_map(|change| match &change.object {
        ChangedObject::EnumLabel { of_type, type_name, label, was: Some(old) } => {
            Some((*of_type, type_name, label, old, change.range))
        }
        _ => None,
    });
    let Some((known, name, label, old, range)) = label.filter(|_| context.effects.fails.is_none()) else { return };
    let schema = known.and_then(|oid| context.before.get_type(oid)).map(|known| known.schema.clone());
    let is_this = |created: &ObjectName| match &schema {
        Some(schema) => is_named(context, created, schema, name),
        None => created.name.text == *name,
    };
    let made_here = earlier(context).any(
        |ast| matches!(ast, Ast::CreateType(create) if is_this(&create.name) && matches!(create.kind, CreateTypeKind::Enum(_))),
    );
    if made_here {
        return;
    }
    let message = format!(
        "renaming the value `{old}` of enum `{name}` breaks deployed code that still writes `{old}` or \
                 compares with it"
    );
    let finding = reporter.report(range, message).caused_by(known.map(Cause::Object));
    let (finding, _) = users::label(finding, context, &[name], &[]);
    finding
        .assuming(released(context.migration, context.settings))
        .help(format!(
            "add `{label}` as a new value, deploy code that reads both values and writes only the new one, then update \
             the rows in batches"
        ))
        .emit();
}

/// The labels that the first enum has and the second lacks.
fn removed_labels(catalog: &Catalog, from: SqlType, to: SqlType) -> Vec<SmolStr> {
    let labels = |sql_type: SqlType| match &catalog.get_type(sql_type.oid)?.kind {
        TypeKind::Enum { labels } => Some(labels.iter().map(|label| label.label.clone()).collect::<Vec<_>>()),
        _ => None,
    };
    match (labels(from), labels(to)) {
        (Some(old), Some(new)) => old.into_iter().filter(|label| !new.contains(label)).collect(),
        _ => Vec::new(),
    }
}
