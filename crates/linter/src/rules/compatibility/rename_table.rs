//! ALTER TABLE ... RENAME TO of a table that deployed code may use.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::{together, view_in_place};
use crate::rules::deployment::dropped_together::publications;
use crate::rules::deployment::other_statements::{
    Successor, Until, ahead, ahead_of_maker, is_new_and_empty, is_relation_name_freed, lacking, rest_until, successor,
};
use crate::rules::deployment::phases::released;
use crate::rules::deployment::users;
use crate::rules::text::{enumerate, identifier, sql_name};
use pgvet_model::catalog::Catalog;
use pgvet_model::effect::{RelationName, RenamedObject, Visibility};
use pgvet_syntax::ast::{Ast, ObjectKind};
use smol_str::SmolStr;
use std::iter;

declare_rule! {
    /// Renaming an existing table, if no view or table with its rows has the old name afterwards.
    ///
    /// ## Why it matters
    ///
    /// After the commit, every query of deployed code that uses the old name fails. Before the commit, the new code
    /// fails. Views and foreign keys follow the rename. Function bodies do not, except SQL-standard ones (`BEGIN
    /// ATOMIC` or `RETURN`). Sequences, indexes and constraints keep their names, which often contain the old name of
    /// the table.
    ///
    /// If an empty table gets the old name, the harm is greater: no query of deployed code fails, but the queries do
    /// not find the rows.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, email text);
    /// -- migration:
    /// ALTER TABLE users RENAME TO accounts;
    /// ```
    ///
    /// Use instead:
    ///
    /// Create a view with the old name in the same transaction. `INSERT`, `UPDATE`, `DELETE` and `ON CONFLICT
    /// (columns)` work through a simple view. `ON CONFLICT ON CONSTRAINT`, `COPY ... FROM` and `TRUNCATE` fail.
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, email text);
    /// -- migration:
    /// BEGIN;
    /// ALTER TABLE users RENAME TO accounts;
    /// CREATE VIEW users AS SELECT * FROM accounts;
    /// COMMIT;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a table that the same migration created
    /// - a table whose old name belongs to a view or table with all of its columns when the transaction commits. If the
    ///   old name then belongs to a new, empty table, the rename is reported. If later statements of the migration fill
    ///   that table, the confidence is `possible`.
    /// - a rename that gives a new table the name of the table that it replaces
    ///
    /// ## Other linters
    ///
    /// squawk, pgls and `strong_migrations` report every rename. pgvet, like Atlas, does not report a rename if a view
    /// has the old name. pgvet also compares the columns of that view.
    "rename-table", Compatibility, Warning,
    {
        sources: &[
            "squawk/renaming-table", "pgls/renamingTable", "strong_migrations/rename_table", "atlas/BC101",
            "pg-migration-lint/PGM505"],
        yields_to: &[&super::contract_before_release::RULE.meta],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for renaming in &context.effects.renames {
        let RenamedObject::Relation { before: table, schema, name } = &renaming.object else { continue };
        let is_rename = table.kind.is_table() && table.schema == *schema;
        if !is_rename || table.visibility != Visibility::Existing || is_relation_name_freed(context, schema, name) {
            continue;
        }
        let end = ahead_of_maker(context, &table.name, Until::Commit);
        let mut filled_later = false;
        let (message, help) = match left_behind(context, &end, table) {
            Successor::Compatible(new) if is_new_and_empty(context, &end, new) => {
                filled_later = is_filled_later(context, table);
                (
                    format!(
                        "after this transaction, deployed code finds no rows in `{}`, because a new, empty table has \
                         that name",
                        table.name
                    ),
                    format!(
                        "copy the rows of `{name}` into the new table in the same transaction; or attach `{name}` to \
                         the new table as a partition"
                    ),
                )
            }
            Successor::Compatible(_) => continue,
            Successor::Nothing => (
                format!("renaming `{}` breaks deployed code that still uses the old name", table.name),
                help(context, table, name),
            ),
            Successor::Lacks { columns, .. } => (
                format!("the relation that replaces `{}` {}", table.name, lacking(&columns)),
                format!(
                    "keep {} in the new relation until no deployed code uses {}",
                    enumerate(columns.iter().map(SmolStr::as_str)),
                    if columns.len() == 1 { "it" } else { "them" }
                ),
            ),
        };
        let range = match context.ast {
            Ast::Rename(rename) => rename.object.range(),
            _ => renaming.range,
        };
        let mut finding = reporter.report(range, message).relation(table);
        if filled_later {
            finding = finding.assuming(Assumption::ReadBeforeFilled { table: table.name.clone() });
        }
        let (finding, _) = users::label_relation(finding, context, table);
        finding.assuming(released(context.migration, context.settings)).help(help).emit();
    }
}

/// What has the old name when the transaction commits.
pub(super) fn left_behind(context: &RuleContext<'_>, end: &Catalog, table: &RelationName) -> Successor {
    let Some(before) = context.before.get_relation(table.oid) else { return Successor::Nothing };
    successor(end, before, table)
}

/// Whether what has the old name when the transaction commits gets rows before the migration ends.
fn is_filled_later(context: &RuleContext<'_>, table: &RelationName) -> bool {
    let end = ahead(context, &table.name, Until::EndOfMigration);
    let found = end.relation_named(&table.schema, &table.name);
    found.is_some_and(|new| !is_new_and_empty(context, &end, new))
}

/// What a view under the old name selects so that it has the old columns when the transaction commits: the rest of the
/// transaction may rename some, which come first, by their old and new names. `None` where it drops one.
fn columns_in_place(
    context: &RuleContext<'_>,
    table: &RelationName,
    new: &str,
) -> Option<(Vec<(String, String)>, String)> {
    let (end, all) = (ahead(context, new, Until::Commit), || Some((Vec::new(), "*".to_owned())));
    let Some((before, after)) = context.before.get_relation(table.oid).zip(end.get_relation(table.oid)) else {
        return all();
    };
    if before.columns.iter().all(|column| after.column(&column.name).is_some()) {
        return all();
    }
    let rest = rest_until(context, Until::Commit);
    let renamed = |old: &str| {
        let renames = rest.iter().filter_map(|ast| match &**ast {
            Ast::Rename(rename) if rename.kind == ObjectKind::Column && rename.object.name.text == new => Some(rename),
            _ => None,
        });
        let mut names = renames.filter(|rename| rename.sub_name.as_ref().is_some_and(|name| name.text == old));
        names.next().map(|rename| &rename.new_name.text).filter(|name| after.column(name).is_some())
    };
    let mut renames = Vec::new();
    let mut selected = Vec::new();
    for column in &before.columns {
        let old = identifier(&column.name);
        if after.column(&column.name).is_some() {
            selected.push(old);
        } else {
            let new = identifier(renamed(&column.name)?);
            selected.push(format!("{new} AS {old}"));
            renames.push((old, new));
        }
    }
    Some((renames, selected.join(", ")))
}

fn help(context: &RuleContext<'_>, table: &RelationName, new: &str) -> String {
    let old = sql_name(context, table);
    let moved = sql_name(context, &RelationName { name: new.into(), ..table.clone() });
    let published = publications(context.before, table);
    let subscribers = if published.is_empty() {
        ""
    } else {
        "\nthe table is published, so rename it on every subscriber at the same time"
    };
    let Some((renames, columns)) = columns_in_place(context, table, new) else {
        return format!(
            "create a view with the old name and the old columns in the same transaction, and keep it until no deployed \
             code uses it{subscribers}"
        );
    };
    let Some(view) = view_in_place(context, table, &columns, &moved) else {
        return format!(
            "keep the old name: `{}` has row-level security, and before PostgreSQL 15 a view would bypass \
             it{subscribers}",
            table.name
        );
    };
    let renames = renames.into_iter().map(|(old, new)| format!("ALTER TABLE {moved} RENAME COLUMN {old} TO {new}"));
    let renamed = iter::once(format!("ALTER TABLE {old} RENAME TO {}", identifier(new)));
    let statements: Vec<String> = renamed.chain(renames).chain(view).collect();
    format!(
        "create a view with the old name in the same transaction, and keep it until no deployed code uses it (ON \
         CONFLICT ON CONSTRAINT does not work through a view):\n    {};{subscribers}",
        together(context, &statements).join(";\n    ")
    )
}
