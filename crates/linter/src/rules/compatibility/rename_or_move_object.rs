//! Renames and SET SCHEMA of objects other than tables.

use super::rename_table::left_behind;
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{
    Successor, Until, ahead, ahead_of_maker, any_later, earlier, is_named, is_relation_name_freed,
    is_relation_named_here,
};
use crate::rules::deployment::users;
use pgvet_model::catalog::{QualifiedName, RelationKind};
use pgvet_model::effect::{RelationName, RenamedObject, Visibility};
use pgvet_syntax::ast::{Ast, ObjectKind, ObjectName};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// Renaming an existing schema, view, type, domain, function or unique constraint, or moving an object to another
    /// schema.
    ///
    /// ## Why it matters
    ///
    /// Deployed code that uses the old name fails after the commit. Renaming a schema changes the names of everything
    /// in it. Views, defaults and foreign keys follow the rename. Function bodies do not, except SQL-standard ones
    /// (`BEGIN ATOMIC` or `RETURN`).
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE SCHEMA app;
    /// CREATE TABLE app.users (id bigint PRIMARY KEY);
    /// -- migration:
    /// ALTER SCHEMA app RENAME TO core;
    /// ```
    ///
    /// Use instead:
    ///
    /// Keep both names until nothing uses the old name any more.
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY);
    /// CREATE SCHEMA core;
    /// -- migration:
    /// BEGIN;
    /// ALTER TABLE users SET SCHEMA core;
    /// CREATE VIEW users AS SELECT * FROM core.users;
    /// COMMIT;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - objects that the same migration created
    /// - indexes, and sequences that belong to columns: queries do not need their names
    /// - trigger functions
    /// - renames of a table, which `rename-table` reports
    /// - a type, domain or function whose old name is in use again at the end of the migration, for example because the
    ///   migration replaces an enum
    /// - a view or table, if the same transaction creates a view or table with all of its columns under the old name
    ///
    /// ## Confidence
    ///
    /// For a function that no other code in the database uses, the confidence is `possible`, and the finding is shown
    /// only with `--confidence possible`. The confidence is also `possible` for a primary key or a unique constraint
    /// whose name no function mentions. Application code may still need the name, for example in
    /// `ON CONFLICT ON CONSTRAINT`, or to recognize an error.
    ///
    /// ## Other linters
    ///
    /// squawk, pgls, eugene and pg-migration-lint do not report `ALTER SCHEMA ... RENAME` and `SET SCHEMA`.
    "rename-or-move-object", Compatibility, Warning,
    { sources: &["strong_migrations/rename_schema", "migrationpilot/MP071"] }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for renaming in &context.effects.renames {
        match &renaming.object {
            RenamedObject::Column { .. } => {}
            RenamedObject::Constraint { table, old, .. } => {
                constraint(context, reporter, renaming.range, table, old);
            }
            RenamedObject::Relation { before, schema, name } => {
                let is_table_rename = before.kind.is_table() && before.schema == *schema;
                if is_table_rename || !is_used_by_name(context, before) || is_relation_name_freed(context, schema, name)
                {
                    continue;
                }
                if matches!(
                    left_behind(context, &ahead_of_maker(context, &before.name, Until::Commit), before),
                    Successor::Compatible(_)
                ) {
                    continue;
                }
                let (kind, old) = (before.kind.word(), &before.name);
                let message = if before.schema == *schema {
                    format!("renaming {kind} `{old}` breaks deployed code that still uses the old name")
                } else {
                    format!(
                        "moving {kind} `{old}` to schema `{schema}` breaks deployed code that names the old schema, or \
                         that does not have `{schema}` in its search_path"
                    )
                };
                let finding = reporter.report(renaming.range, message).relation(before);
                let (finding, _) = users::label(finding, context, &[old.as_str()], &[]);
                finding.help(match before.kind {
                    RelationKind::Sequence => "keep the name, or first deploy code that does not use the old name",
                    _ if before.schema == *schema => {
                        "create a view with the old name in the same transaction, and keep it until no deployed code \
                         uses it"
                    }
                    _ => {
                        "in the same transaction, create a view with the same name in the old schema, and keep it until \
                         no deployed code uses it. Or, if no deployed code names the old schema, first add the new \
                         schema to the search_path of the application's role"
                    }
                }).emit();
            }
            RenamedObject::Schema { old, new } => schema(context, reporter, renaming.range, old, new),
            RenamedObject::Other { kind, before, after } => {
                other(context, reporter, renaming.range, kind, before, after);
            }
        }
    }
}

/// A constraint whose name `ON CONFLICT` and error handlers can use, unless another one has it when the migration ends.
fn constraint(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    range: TextRange,
    table: &RelationName,
    old: &SmolStr,
) {
    let end = ahead(context, old, Until::EndOfMigration);
    let is_back = end.get_relation(table.oid).is_none_or(|relation| relation.constraint(old).is_some());
    if table.visibility != Visibility::Existing || is_back || is_relation_named_here(context, table) {
        return;
    }
    let message =
        format!("renaming constraint `{old}` of `{}` breaks deployed code that uses the old name", table.name);
    let finding = reporter.report(range, message).relation(table);
    let (mut finding, users) = users::label(finding, context, &[old.as_str()], &[]);
    if users == 0 {
        finding = finding.assuming(Assumption::NamesConstraint { constraint: old.clone() });
    }
    finding
        .help(
            "keep the name; or first deploy code that lists columns in ON CONFLICT instead of the constraint, and \
             that does not look for the constraint's name in error messages",
        )
        .emit();
}

/// Whether queries name it. Sequences of columns and indexes are found without their names.
fn is_used_by_name(context: &RuleContext<'_>, relation: &RelationName) -> bool {
    let is_named = match relation.kind {
        RelationKind::Sequence => {
            let known = context.before.get_relation(relation.oid);
            known.is_some_and(|known| known.sequence().is_some_and(|sequence| sequence.owned_by.is_none()))
        }
        kind => !kind.is_index() && kind != RelationKind::CompositeType,
    };
    is_named && relation.visibility == Visibility::Existing
}

/// Triggers find their function without its name, and nothing else can call it.
fn is_trigger_function(context: &RuleContext<'_>, (schema, name): &QualifiedName) -> bool {
    let mut functions = context.before.functions_named(schema, name);
    functions.any(|function| matches!(function.result_name(), Some("trigger" | "event_trigger")))
}

fn schema(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, range: TextRange, old: &str, new: &str) {
    let is_made = |ast: &Ast| matches!(ast, Ast::CreateSchema(create) if create.name.as_ref().is_some_and(|created| created.text == old));
    let takes = |ast: &Ast, old: Option<&str>, new: Option<&str>| match ast {
        Ast::Rename(rename) if rename.kind == ObjectKind::Schema => {
            old.is_none_or(|old| rename.object.name.text == old) && new.is_none_or(|new| rename.new_name.text == new)
        }
        _ => false,
    };
    // The name that it gets was that of another: it is the replacement.
    let is_new = earlier(context).any(|ast| is_made(ast) || takes(ast, Some(new), None));
    if is_new || any_later(context, |ast| is_made(ast) || takes(ast, None, Some(old))) {
        return;
    }
    let message = format!(
        "renaming schema `{old}` to `{new}` breaks deployed code that uses the old name in queries or in its \
                 search_path"
    );
    let help = format!(
        "first set the search_path of the application's role to `{new}, {old}`, then deploy code that names no \
         schema, then rename the schema"
    );
    let (finding, _) = users::label(reporter.report(range, message), context, &[old], &[]);
    finding.help(help).emit();
}

fn other(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    range: TextRange,
    kind: &str,
    before: &QualifiedName,
    after: &QualifiedName,
) {
    let is_this = |name: &ObjectName, (schema, text): &QualifiedName| is_named(context, name, schema, text);
    let makes = |ast: &Ast| match ast {
        Ast::CreateType(create) => is_this(&create.name, before),
        Ast::CreateDomain(create) => is_this(&create.name, before),
        Ast::CreateFunction(create) => is_this(&create.name, before),
        _ => false,
    };
    // The name that it gets was that of another: it is the replacement.
    let frees = |ast: &Ast| match ast {
        Ast::Rename(rename) => rename.sub_name.is_none() && is_this(&rename.object, after),
        Ast::SetSchema(moved) => is_this(&moved.object, after),
        _ => false,
    };
    let gives = |ast: &Ast| match ast {
        Ast::Rename(rename) if rename.sub_name.is_none() => {
            is_this(&ObjectName { schema: rename.object.schema.clone(), name: rename.new_name.clone() }, before)
        }
        Ast::SetSchema(moved) => moved.object.name.text == before.1 && moved.new_schema.text == before.0,
        _ => false,
    };
    if kind == "function" && is_trigger_function(context, before) {
        return;
    }
    if earlier(context).any(|ast| makes(ast) || frees(ast)) || any_later(context, |ast| makes(ast) || gives(ast)) {
        return;
    }
    let shown = |(schema, name): &QualifiedName| match schema.as_str() {
        "public" => name.to_string(),
        schema => format!("{schema}.{name}"),
    };
    let (old, new) = (shown(before), shown(after));
    let (use_of_name, help) = match kind {
        "function" => (
            "calls",
            "keep the old function, create a second one with the new name, and drop the old function when no deployed \
             code calls it",
        ),
        _ => ("casts to", "keep the name, or first deploy code that does not use it in casts"),
    };
    let message = format!("renaming {kind} `{old}` to `{new}` breaks deployed code that still {use_of_name} `{old}`");
    let (mut finding, users) = users::label(reporter.report(range, message), context, &[before.1.as_str()], &[]);
    if kind == "function" && users == 0 {
        finding = finding.assuming(Assumption::UsedOutside { object: old.into() });
    }
    finding.help(help).emit();
}
