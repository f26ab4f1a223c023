//! Published tables whose UPDATE and DELETE would fail.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{Until, ahead};
use crate::rules::text::{enumerate, sql_name};
use pgvet_model::catalog::Publication;
use pgvet_model::effect::{ChangeAction, ChangedObject, RelationName};
use pgvet_syntax::ast::{Ast, LockMode};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;
use std::sync::Arc;

declare_rule! {
    /// A published table without a replica identity.
    ///
    /// ## Why it matters
    ///
    /// If a published table has neither a primary key nor another replica identity, every `UPDATE` and `DELETE` on it
    /// fails on the publisher. Logical replication needs the replica identity, by default the primary key, to identify
    /// the changed row. The error of an `UPDATE` is "cannot update table because it does not have a replica identity
    /// and publishes updates".
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE events (payload text);
    /// CREATE PUBLICATION changes;
    /// -- migration:
    /// ALTER PUBLICATION changes ADD TABLE events;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE events (payload text);
    /// CREATE PUBLICATION changes;
    /// -- migration:
    /// ALTER TABLE events REPLICA IDENTITY FULL;
    /// ALTER PUBLICATION changes ADD TABLE events;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a table that has a primary key or a `REPLICA IDENTITY` at the end of the migration
    /// - a table that no migration defines completely
    /// - a table that is in no publication that the migrations create, or only in publications whose `publish` option
    ///   includes neither `update` nor `delete`
    ///
    /// ## Other linters
    ///
    /// `MigrationPilot` reports every dropped primary key. This rule reports a dropped primary key only if the table is
    /// published. `primary-key-dropped` reports the others.
    "replication-identity-lost", Compatibility, Warning,
    { sources: &["migrationpilot/MP055"] }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() || context.after.publications().next().is_none() {
        return;
    }
    for change in &context.effects.changes {
        if let ChangedObject::Publication { name } = &change.object
            && change.action != ChangeAction::Drop
        {
            return published(context, reporter, name, change.range);
        }
    }
    changed(context, reporter);
}

/// Tables that the statement adds to a publication.
fn published(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, name: &str, range: TextRange) {
    let Some(publication) = context.after.publication(name) else { return };
    let Some(refused) = refused(publication.updates, publication.deletes) else { return };
    let before = context
        .before
        .publication(name)
        .filter(|before| before.updates >= publication.updates && before.deletes >= publication.deletes);
    let end = ahead(context, name, Until::EndOfMigration);
    let mut tables = context.after.newly_published(before.map(AsRef::as_ref), publication);
    tables.retain(|table| {
        let still = || end.get_relation(table.oid).is_some_and(|table| end.lacks_replica_identity(table));
        context.after.lacks_replica_identity(table) && still()
    });
    let [first, ..] = tables.as_slice() else { return };
    let names = enumerate(tables.iter().map(|table| table.name.as_str()));
    let (them, have) = if tables.len() == 1 { ("it", "it has") } else { ("them", "they have") };
    let message =
        format!("{refused} on {names} as soon as the publication `{name}` includes {them}: {have} no replica identity");
    reporter.report(range, message).help(help(context, &RelationName::existing(first))).emit();
}

/// A published table loses its key, or is created without one.
fn changed(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let altered = context.effects.locks.iter().filter(|lock| lock.mode == LockMode::AccessExclusive);
    let altered = altered.map(|lock| (&lock.relation, lock.range));
    let created = context.effects.creates.iter().map(|relation| (relation, context.statement.range));
    let mut seen = FxHashSet::default();
    for (relation, range) in altered.chain(created) {
        let Some(after) = context.after.get_relation(relation.oid).filter(|_| seen.insert(relation.oid)) else {
            continue;
        };
        let publications: Vec<&Arc<Publication>> = context.after.publications_of(after).collect();
        let any = |publishes: fn(&Publication) -> bool| publications.iter().any(|publication| publishes(publication));
        let refused = refused(any(|publication| publication.updates), any(|publication| publication.deletes));
        let had = context
            .before
            .get_relation(relation.oid)
            .is_none_or(|before| !context.before.lacks_replica_identity(before));
        let Some(refused) = refused.filter(|_| had && context.after.lacks_replica_identity(after)) else { continue };
        let end = ahead(context, &after.name, Until::EndOfMigration);
        if end.get_relation(after.oid).is_none_or(|table| !end.lacks_replica_identity(table)) {
            continue;
        }
        let publishing = publications.iter().filter(|publication| publication.updates || publication.deletes);
        let names = enumerate(publishing.map(|publication| publication.name.as_str()));
        let message = format!(
            "{refused} on `{}` after this statement: the table is published by {names} and has no replica identity",
            after.name
        );
        let table = RelationName::existing(after);
        reporter.report(place(context, range), message).relation(&table).help(help(context, &table)).emit();
    }
}

/// The statements that a published table without an identity refuses.
fn refused(updates: bool, deletes: bool) -> Option<&'static str> {
    match (updates, deletes) {
        (true, true) => Some("UPDATE and DELETE fail"),
        (true, false) => Some("UPDATE fails"),
        (false, true) => Some("DELETE fails"),
        (false, false) => None,
    }
}

fn place(context: &RuleContext<'_>, range: TextRange) -> TextRange {
    match context.ast {
        Ast::CreateTable(create) => create.name.range(),
        Ast::AlterTable(alter) => alter.name.range(),
        _ => range,
    }
}

fn help(context: &RuleContext<'_>, table: &RelationName) -> String {
    format!(
        "add a primary key; or, for a table with few rows or few changes, use the whole row as its replica \
         identity:\n    ALTER TABLE {} REPLICA IDENTITY FULL;",
        sql_name(context, table)
    )
}
