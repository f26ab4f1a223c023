//! CASCADE that takes more than the statement names.

use super::along::{cascaded, described, listed};
use super::{drop_column, drop_table};
use crate::catalog::Catalog;
use crate::effect::{RelationKind, RelationName, Removal, RemovalReason, RemovedObject, Visibility};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::around::{Until, ahead, speaks_of};
use crate::source::TextRange;

declare_rule! {
    /// `CASCADE` drops objects that the statement does not name.
    ///
    /// ## Why it matters
    ///
    /// Without `CASCADE` PostgreSQL refuses to drop what others depend on, and says what that is. With it views disappear, foreign
    /// keys of other tables, defaults, triggers and policies, and nothing in the statement shows it. A foreign key that is gone
    /// is missed when the data are already wrong.
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
    /// drop what depends on it by name, so that a review shows it.
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
    /// Where, as far as the migrations show, `CASCADE` takes nothing along; where the migration makes it all again; for what the
    /// same migration made; for the defaults that go with a sequence; and where `drop-table` or `drop-column` reports the statement, which list the same.
    ///
    /// ## Other linters
    ///
    /// Others report the word `CASCADE`; pgvet reports what it takes, and nothing where it takes nothing.
    "drop-object-cascade", Compatibility, Warning,
    { sources: &["pg-migration-lint/PGM202", "pg-migration-lint/PGM205", "migrationpilot/MP022"] }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let removals = &context.effects.removals;
    let mut ranges: Vec<TextRange> = removals.iter().map(|removal| removal.range).collect();
    ranges.dedup();
    for range in ranges {
        let said = |removal: &&Removal| {
            removal.range == range
                && (drop_column::lost(context, removal).is_some() || drop_table::lost(context, removal).is_some())
        };
        let lost: Vec<&Removal> =
            cascaded(context.effects, range).into_iter().filter(|removal| is_lost(context, removal)).collect();
        let of_sequence =
            is_sequence(context, range) && lost.iter().all(|removal| removal.description.starts_with("default "));
        if lost.is_empty() || of_sequence || removals.iter().any(|removal| said(&removal)) {
            continue;
        }
        let Some(list) = listed(lost.iter().map(|removal| described(removal)).collect()) else { continue };
        let mut finding = reporter.report(range, format!("CASCADE also drops {list}"));
        for table in lost.iter().filter_map(|removal| table_of(removal)) {
            finding = finding.relation(table);
        }
        drop(finding.help("name what is to go, and leave CASCADE out: PostgreSQL then refuses to drop anything else"));
    }
}

/// Does the statement drop a sequence? The defaults that call it cannot stay, whatever one writes.
fn is_sequence(context: &RuleContext<'_>, range: TextRange) -> bool {
    context.effects.removals.iter().any(|removal| {
        let is_sequence =
            matches!(&removal.object, RemovedObject::Relation(relation) if relation.kind == RelationKind::Sequence);
        is_sequence && removal.range == range && removal.reason == RemovalReason::Named
    })
}

fn table_of(removal: &Removal) -> Option<&RelationName> {
    match &removal.object {
        RemovedObject::Relation(relation) => Some(relation),
        RemovedObject::Column { table, .. } | RemovedObject::Constraint { table, .. } => Some(table),
        RemovedObject::Other => None,
    }
}

/// Was it there for others, and is it not made again?
fn is_lost(context: &RuleContext<'_>, removal: &Removal) -> bool {
    let Some(relation) = table_of(removal) else { return !is_remade(context, &removal.description) };
    if relation.visibility != Visibility::Existing {
        return false;
    }
    let name = match &removal.object {
        RemovedObject::Column { column, .. } => column,
        RemovedObject::Constraint { constraint, .. } => constraint,
        _ => &relation.name,
    };
    let end = ahead(context, name, Until::EndOfMigration);
    !named(&end, relation).is_some_and(|table| match &removal.object {
        RemovedObject::Column { column, .. } => table.column(column).is_some(),
        RemovedObject::Constraint { constraint, .. } => table.constraint(constraint).is_some(),
        _ => true,
    })
}

fn named<'c>(catalog: &'c Catalog, relation: &RelationName) -> Option<&'c crate::catalog::Relation> {
    catalog.relation_named(&relation.schema, &relation.name).map(|oid| catalog.relation(oid))
}

/// Does a later statement speak of it by name? `function "f"`, `trigger "t" on table "x"`.
fn is_remade(context: &RuleContext<'_>, description: &str) -> bool {
    let Some(name) = description.split('"').nth(1) else { return false };
    let later = context.migration.statements().filter(|other| other.range.start > context.statement.range.start);
    later.into_iter().any(|statement| speaks_of(context.text(statement.range), name))
}
