//! CASCADE that drops more than the statement names.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::dropped_together::{described, listed};
use crate::rules::deployment::names::Names;
use crate::rules::deployment::other_statements::{Until, ahead_of, earlier, later_texts};
use crate::rules::deployment::{dropped_column, dropped_relation};
use crate::rules::statement::altered::by_range;
use pgvet_model::catalog::{Catalog, RelationKind};
use pgvet_model::effect::{RelationName, Removal, RemovalReason, RemovedObject, Visibility};
use pgvet_syntax::ast::{Ast, DropBehavior, ObjectKind};
use rustc_hash::FxHashSet;

declare_rule! {
    /// `CASCADE` that drops objects which the statement does not name.
    ///
    /// ## Why it matters
    ///
    /// With `CASCADE`, PostgreSQL also drops objects that the statement does not name: views, foreign keys of other
    /// tables, defaults, triggers and policies. Without `CASCADE`, PostgreSQL refuses to drop an object on which others
    /// depend, and lists the dependent objects. If a foreign key is dropped in this way, often nobody notices until the
    /// data is wrong.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE users (id bigint, CONSTRAINT users_pkey PRIMARY KEY (id));
    /// CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint REFERENCES users);
    /// -- migration:
    /// ALTER TABLE users DROP CONSTRAINT users_pkey CASCADE;
    /// ```
    ///
    /// Use instead:
    ///
    /// Drop the dependent objects by name, so that a reviewer sees each of them.
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE users (id bigint, CONSTRAINT users_pkey PRIMARY KEY (id));
    /// CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint REFERENCES users);
    /// -- migration:
    /// ALTER TABLE orders DROP CONSTRAINT orders_user_id_fkey;
    /// ALTER TABLE users DROP CONSTRAINT users_pkey;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - `CASCADE` that drops no other object, as far as the migrations show. One exception is `DROP SCHEMA ... CASCADE`
    ///   of a schema that no migration creates, or of `public` before any migration creates a relation in it, because its
    ///   content is not known. With `IF EXISTS`, the confidence of that finding is `possible`, unless the schema is
    ///   `public`.
    /// - `CASCADE` that drops only objects which the migration creates again
    /// - objects that the same migration created
    /// - defaults that use a dropped sequence
    /// - statements that `drop-table` or `drop-column` reports: those findings list the same objects
    ///
    /// ## Incidents
    ///
    /// - [django #18066](https://github.com/django/django/pull/18066): views disappeared because Django drops columns
    ///   with `CASCADE`
    ///
    /// ## Other linters
    ///
    /// Other linters report the word `CASCADE`. pgvet reports the objects that `CASCADE` drops. If `CASCADE` drops no
    /// objects, pgvet reports nothing.
    "drop-object-cascade", Compatibility, Warning,
    { sources: &["pg-migration-lint/PGM202", "pg-migration-lint/PGM205", "migrationpilot/MP022"] }
    statement = check,
}

/// The schema that every new database has.
const DEFAULT_SCHEMA: &str = "public";

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let effects = context.effects;
    if effects.fails.is_some() {
        return;
    }
    unseen_schemas(context, reporter);
    if !effects.removals.iter().any(is_taken) {
        return;
    }
    let mut groups = by_range(&effects.removals, |removal| removal.range);
    groups.retain(|(_, removals)| removals.iter().any(|removal| is_taken(removal)) && !is_said(context, removals));
    let taken = || groups.iter().flat_map(|(_, removals)| removals.iter().copied()).filter(|removal| is_taken(removal));
    if taken().next().is_none() {
        return;
    }
    let gone = groups.iter().flat_map(|(_, removals)| removals.iter().copied());
    let end = End::of(context, gone.filter(|removal| removal.reason != RemovalReason::Part));
    for (range, removals) in &groups {
        let lost: Vec<&Removal> =
            removals.iter().copied().filter(|removal| is_taken(removal) && !end.has(removal)).collect();
        let of_sequence =
            drops_sequence(removals) && lost.iter().all(|removal| removal.description.starts_with("default "));
        if of_sequence {
            continue;
        }
        let Some(list) = listed(lost.iter().map(|removal| described(removal)).collect()) else { continue };
        let mut finding = reporter.report(*range, format!("CASCADE also drops {list}"));
        for table in lost.iter().filter_map(|removal| table_of(removal)) {
            finding = finding.relation(table);
        }
        finding
            .help(
                "drop the dependent objects first, each in its own statement, and remove CASCADE: PostgreSQL then \
                 refuses this statement if you have missed one",
            )
            .emit();
    }
}

/// Schemas that are dropped with everything in them, and whose contents no migration shows.
fn unseen_schemas(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::Drop(drop) = context.ast else { return };
    if drop.kind != ObjectKind::Schema || drop.behavior != DropBehavior::Cascade {
        return;
    }
    for object in &drop.objects {
        let name = &object.name.name;
        if is_shown(context.before, &name.text) || earlier(context).any(|ast| drops_schema(ast, &name.text)) {
            continue;
        }
        let message = format!(
            "this also drops everything in the schema `{}`, and no migration shows what the schema contains",
            name.text
        );
        let help = "drop the objects of the schema first, each in its own statement, and remove CASCADE: PostgreSQL \
                    then refuses DROP SCHEMA if you have missed one";
        let mut finding = reporter.report(name.range, message).help(help);
        if drop.if_exists && name.text != DEFAULT_SCHEMA {
            finding = finding.assuming(Assumption::SchemaExists { schema: name.text.clone() });
        }
        finding.emit();
    }
}

/// Whether the migrations show what a schema contains. The schema that every new database has may be full before the
/// first migration.
fn is_shown(before: &Catalog, schema: &str) -> bool {
    let is_of_migrations = || schema != DEFAULT_SCHEMA || before.relations().any(|relation| relation.schema == schema);
    before.has_schema(schema) && is_of_migrations()
}

fn drops_schema(ast: &Ast, name: &str) -> bool {
    matches!(ast, Ast::Drop(drop) if drop.kind == ObjectKind::Schema
        && drop.objects.iter().any(|object| object.name.name.text == name))
}

/// Whether only CASCADE drops it, and others could see it.
fn is_taken(removal: &Removal) -> bool {
    let is_old = table_of(removal).is_none_or(|relation| relation.visibility == Visibility::Existing);
    removal.reason == RemovalReason::Cascade && is_old
}

/// Whether another rule lists it.
fn is_said(context: &RuleContext<'_>, removals: &[&Removal]) -> bool {
    let said = |removal: &&Removal| {
        dropped_column::lost(context, removal).is_some() || dropped_relation::lost(context, removal).is_some()
    };
    removals.iter().any(said)
}

/// Whether the statement drops a sequence. The defaults that use it cannot stay in any case.
fn drops_sequence(removals: &[&Removal]) -> bool {
    removals.iter().any(|removal| {
        let is_sequence =
            matches!(&removal.object, RemovedObject::Relation(relation) if relation.kind == RelationKind::Sequence);
        is_sequence && removal.reason == RemovalReason::Named
    })
}

fn table_of(removal: &Removal) -> Option<&RelationName> {
    match &removal.object {
        RemovedObject::Relation(relation) => Some(relation),
        RemovedObject::Column { table, .. } | RemovedObject::Constraint { table, .. } => Some(table),
        RemovedObject::Other => None,
    }
}

/// The name of what goes; of others the one in PostgreSQL's description: `function "f"`, `trigger "t" on table "x"`.
fn name_of(removal: &Removal) -> Option<&str> {
    match &removal.object {
        RemovedObject::Relation(relation) => Some(&relation.name),
        RemovedObject::Column { column, .. } => Some(column),
        RemovedObject::Constraint { constraint, .. } => Some(constraint),
        RemovedObject::Other => removal.description.split('"').nth(1),
    }
}

/// Objects that exist when the migration has ended.
struct End<'r> {
    catalog: Catalog,
    /// Names that later statements use.
    spoken: FxHashSet<&'r str>,
}

impl<'r> End<'r> {
    fn of(context: &RuleContext<'_>, removals: impl Iterator<Item = &'r Removal>) -> Self {
        // A constraint may come back under a name that nobody writes out; what brings it names the table.
        let tables_too =
            |removal| name_of(removal).into_iter().chain(table_of(removal).map(|table| table.name.as_str()));
        let names: Names<'r> = removals.flat_map(tables_too).collect();
        let spoken = later_texts(context).flat_map(|text| names.each_in(text)).collect();
        Self { catalog: ahead_of(context, &names, Until::EndOfMigration), spoken }
    }

    /// Whether it is created again.
    fn has(&self, removal: &Removal) -> bool {
        let Some(relation) = table_of(removal) else {
            return name_of(removal).is_some_and(|name| self.spoken.contains(name));
        };
        let named = self.catalog.relation_named(&relation.schema, &relation.name);
        named.map(|oid| self.catalog.relation(oid)).is_some_and(|table| match &removal.object {
            RemovedObject::Column { column, .. } => table.column(column).is_some(),
            RemovedObject::Constraint { constraint, .. } => table.constraint(constraint).is_some(),
            _ => true,
        })
    }
}
