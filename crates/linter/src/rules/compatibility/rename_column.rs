//! RENAME COLUMN of a column that deployed code may use.

use super::name_reuse::report_other_type;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::{together, view_in_place};
use crate::rules::deployment::dropped_column::Replacement;
use crate::rules::deployment::other_statements::{
    Until, ahead_of_maker, is_column_made_here, is_column_name_freed, is_relation_named_here,
};
use crate::rules::deployment::phases::released;
use crate::rules::deployment::users;
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::RelationKind;
use pgvet_model::effect::{RelationName, RenamedObject, Visibility};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// Renaming a column of an existing table.
    ///
    /// ## Why it matters
    ///
    /// After the commit, deployed code fails wherever it uses the old name. Before the commit, the new code fails. The
    /// old and the new code cannot run at the same time, so you cannot deploy without downtime. Views and constraints
    /// follow the rename. Function bodies do not, except SQL-standard ones (`BEGIN ATOMIC` or `RETURN`).
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, mail text);
    /// -- migration:
    /// ALTER TABLE users RENAME COLUMN mail TO email;
    /// ```
    ///
    /// Use instead:
    ///
    /// Add a second column, keep both in sync with a trigger, and drop the old column when nothing uses it any more. If
    /// the table is small and deployed code only reads the old name, add a generated column with the old name in the
    /// same transaction:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, mail text);
    /// -- migration:
    /// BEGIN;
    /// ALTER TABLE users RENAME COLUMN mail TO email;
    /// ALTER TABLE users ADD COLUMN mail text GENERATED ALWAYS AS (email) STORED;
    /// COMMIT;
    /// ```
    ///
    /// Adding a STORED column rewrites the table under an ACCESS EXCLUSIVE lock. Adding a VIRTUAL column, which needs
    /// PostgreSQL 18, does not.
    ///
    /// ## When it is not reported
    ///
    /// - tables and columns that the same migration created or renamed
    /// - a rename after which another column takes the old name in the same transaction: a generated column, or a new
    ///   column that replaces the old one
    /// - a rename that gives a new column the name of the column that it replaces
    /// - a column of a table that the same transaction replaces with a view under the old name of the table
    ///
    /// ## Confidence
    ///
    /// If the column that takes the old name has a different type, the rename is reported. If that type accepts every
    /// value of the old one, the confidence is `possible`, and the finding is shown only with `--confidence possible`.
    ///
    /// ## Other linters
    ///
    /// squawk, pgls and `strong_migrations` report every rename. pgvet, like Atlas, does not report a rename that keeps
    /// the old name usable. pgvet also lists the database functions that still use the old name.
    "rename-column", Compatibility, Warning,
    {
        sources: &[
            "squawk/renaming-column", "pgls/renamingColumn", "strong_migrations/rename_column", "atlas/BC102",
            "pg-migration-lint/PGM504"],
        yields_to: &[&super::contract_before_release::RULE.meta],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for renaming in &context.effects.renames {
        let RenamedObject::Column { table, old, new } = &renaming.object else { continue };
        let is_old = table.visibility == Visibility::Existing && table.kind != RelationKind::CompositeType;
        if is_old && !is_unused(context, table, old, new) {
            let end = ahead_of_maker(context, old, Until::Commit);
            match Replacement::of(&end, table, old) {
                Replacement::Nothing => report(context, reporter, renaming.range, table, old, new),
                Replacement::NotShown => {}
                Replacement::Column(column) => {
                    report_other_type(context, reporter, renaming.range, table, &end, column);
                }
            }
        }
    }
}

/// Whether there was no such column in a table of this name before the migration, or it replaces one.
fn is_unused(context: &RuleContext<'_>, table: &RelationName, old: &str, new: &str) -> bool {
    is_column_made_here(context, table, old)
        || is_column_name_freed(context, table, new)
        || is_relation_named_here(context, table)
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    range: TextRange,
    table: &RelationName,
    old: &str,
    new: &str,
) {
    let message = format!("renaming `{}.{old}` breaks deployed code that still uses the old name", table.name);
    let relation = context.before.get_relation(table.oid);
    let triggers: Vec<_> =
        relation.iter().flat_map(|relation| &relation.triggers).map(|trigger| trigger.function).collect();
    let finding = reporter.report(range, message).relation(table);
    let (finding, _) = users::label(finding, context, &[old, &table.name], &triggers);
    finding.assuming(released(context.migration, context.settings)).help(help(context, table, old, new)).emit();
}

fn help(context: &RuleContext<'_>, table: &RelationName, old: &str, new: &str) -> String {
    if !table.kind.is_table() {
        return format!("keep `{old}` beside `{new}` until no deployed code uses `{old}`");
    }
    let (sql_table, old, new) = (sql_name(context, table), identifier(old), identifier(new));
    let moved = format!("{}_base", table.name);
    let qualified = sql_name(context, &RelationName { name: moved.as_str().into(), ..table.clone() });
    let beside = format!(
        "keep the name; or add a second column `{new}`, keep it up to date with a trigger, fill it in batches, and \
         drop `{old}` when no deployed code uses `{old}`"
    );
    let Some(view) = view_in_place(context, table, &format!("*, {new} AS {old}"), &qualified) else { return beside };
    let renames = [
        format!("ALTER TABLE {sql_table} RENAME COLUMN {old} TO {new}"),
        format!("ALTER TABLE {sql_table} RENAME TO {}", identifier(&moved)),
    ];
    let statements: Vec<String> = renames.into_iter().chain(view).collect();
    format!(
        "keep the name; or rename the table and, in the same transaction, create a view with the table's old name that \
         shows the column under both names:\n    {};",
        together(context, &statements).join(";\n    ")
    )
}
