//! Indexes that production uses.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{Until, ahead};
use pgvet_model::catalog::{Catalog, Index, Relation};
use pgvet_model::effect::{RelationName, RemovalReason, RemovedObject, Visibility};
use pgvet_model::production::IndexUse;
use pgvet_model::routine::grouped;

declare_rule! {
    /// An index is dropped although production uses it, as the statistics from `pgvet snapshot` show.
    ///
    /// ## Why it matters
    ///
    /// Queries that used the index read more of the table, or all of it. A query can then take minutes instead of
    /// milliseconds, and many of these queries at the same time can use up all connections. Building the index again
    /// takes as long as the first build.
    ///
    /// Each server counts the scans of an index since its statistics were reset. A query on a replica is counted only
    /// on that replica, so an index without scans on the primary may still be in use.
    ///
    /// ## Example
    ///
    /// The statistics of production contain scans of the index:
    ///
    /// ```sql,reported
    /// -- set: index public.orders_customer scans=5200 days=30
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint, status text);
    /// CREATE INDEX orders_customer ON orders (customer_id);
    /// -- migration: autocommit
    /// DROP INDEX CONCURRENTLY orders_customer;
    /// ```
    ///
    /// Use instead:
    ///
    /// Find the queries that use the index: `auto_explain` logs query plans, and `pg_stat_statements` lists queries.
    /// Create an index that replaces the old one before you drop it.
    ///
    /// ```sql,clean
    /// -- set: index public.orders_customer scans=5200 days=30
    /// -- history:
    /// CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint, status text);
    /// CREATE INDEX orders_customer ON orders (customer_id);
    /// -- migration: autocommit
    /// CREATE INDEX CONCURRENTLY orders_customer_status ON orders (customer_id, status);
    /// DROP INDEX CONCURRENTLY orders_customer;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - an index for which the statistics show no scans, or for which there are no statistics
    /// - an index that another index can replace: the other index has the same method and the same leading columns, and
    ///   exists now or at the end of the migration
    /// - an index of a table that the migration drops
    ///
    /// ## Incidents
    ///
    /// - [OpenMetadata #30032](https://github.com/open-metadata/OpenMetadata/pull/30032): the columns of a key were
    ///   reordered, and a query that used the old key read the whole table and timed out
    ///
    /// ## Other linters
    ///
    /// No other known linter takes into account how often production uses an index.
    "used-index-dropped", Compatibility, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for removal in context.effects.removals.iter().filter(|removal| removal.reason == RemovalReason::Named) {
        let dropped = match &removal.object {
            RemovedObject::Relation(relation) if relation.kind.is_index() => Some(relation.oid),
            RemovedObject::Constraint { table, constraint } => {
                let table = context.before.get_relation(table.oid);
                table.and_then(|table| table.constraint(constraint)?.index())
            }
            _ => None,
        };
        let Some(dropped) = dropped.and_then(|oid| context.before.get_relation(oid)) else { continue };
        let Some(used) = context.settings.index_use(&dropped.schema, &dropped.name) else { continue };
        let Some(index) = dropped.index() else { continue };
        let Some(table) = context.after.get_relation(index.table) else { continue };
        let end = ahead(context, &table.name, Until::EndOfMigration);
        let exists = !dropped.birth.is_of(context.deployment()) && end.get_relation(index.table).is_some();
        if exists && !is_replaced(&end, index) {
            let message =
                format!("dropping `{}` slows down queries on `{}`: {}", dropped.name, table.name, counted(used));
            let help = format!(
                "find the queries that use `{0}`: auto_explain logs their plans, and pg_stat_statements shows queries \
                 on the indexed columns. Before you drop `{0}`, create an index that replaces it",
                dropped.name
            );
            let name = RelationName { visibility: Visibility::Existing, ..RelationName::existing(table) };
            reporter.report(removal.range, message).relation(&name).help(help).emit();
        }
    }
}

/// Whether another index has the same columns first.
fn is_replaced(end: &Catalog, dropped: &Index) -> bool {
    let Some(columns) = dropped.plain_columns() else { return false };
    let replaces = |other: &Relation| {
        let Some(other) = other.index() else { return false };
        let is_whole = other.predicate.is_none() || other.predicate == dropped.predicate;
        is_whole
            && other.method == dropped.method
            && other.plain_columns().is_some_and(|others| others.starts_with(&columns))
    };
    let table = end.get_relation(dropped.table);
    let indexes = table.into_iter().flat_map(|table| &table.indexes).filter_map(|oid| end.get_relation(*oid));
    indexes.into_iter().any(|index| replaces(index))
}

/// `production has used this index 5,200 times in 30 days`.
fn counted(used: IndexUse) -> String {
    let times = if used.scans == 1 { "once".to_owned() } else { format!("{} times", grouped(used.scans)) };
    match used.seconds {
        Some(seconds) => format!("production has used this index {times} in {}", period(seconds)),
        None => format!("production has used this index {times} since its statistics were reset"),
    }
}

fn period(seconds: u64) -> String {
    let (count, unit) = match seconds {
        ..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    if count == 1 { format!("1 {unit}") } else { format!("{count} {unit}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_said_with_their_window() {
        let used = |scans, seconds| counted(IndexUse { scans, seconds });
        assert_eq!(used(5200, Some(2_592_000)), "production has used this index 5,200 times in 30 days");
        assert_eq!(used(1, Some(3_600)), "production has used this index once in 60 minutes");
        assert_eq!(used(2, None), "production has used this index 2 times since its statistics were reset");
    }
}
