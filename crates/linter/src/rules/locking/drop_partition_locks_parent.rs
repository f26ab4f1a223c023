//! DROP TABLE of a partition.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::dropped_later::is_dropped_later;
use crate::rules::text::sql_name;
use pgvet_model::catalog::Oid;
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::TextRange;
use rustc_hash::{FxHashMap, FxHashSet};

use super::detach_partition_without_concurrently::help as detach_help;

declare_rule! {
    /// `DROP TABLE` of a partition, which locks its parent.
    ///
    /// ## Why it matters
    ///
    /// The parent, and a DEFAULT partition if there is one, are locked in ACCESS EXCLUSIVE mode until the transaction
    /// ends: nobody can read or write through the parent. The statement waits for every open transaction that has used
    /// these tables, and all later queries on them queue behind it. A partition that was detached first is a separate
    /// table, and dropping it no longer locks the parent.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE events ATTACH PARTITION events_2019 FOR VALUES FROM ('2019-01-01') TO ('2020-01-01');
    /// DROP TABLE events_2019;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE events ATTACH PARTITION events_2019 FOR VALUES FROM ('2019-01-01') TO ('2020-01-01');
    /// ALTER TABLE events DETACH PARTITION events_2019 CONCURRENTLY;
    /// DROP TABLE events_2019;
    /// ```
    ///
    /// `CONCURRENTLY` is not possible while a DEFAULT partition exists.
    ///
    /// ## When it is not reported
    ///
    /// - a table that no migration shows to be a partition
    /// - a parent that is dropped by the same statement, or later in the same migration
    /// - a parent that the same transaction created, or that the same migration created and left empty
    "drop-partition-locks-parent", Locking, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let mut places: FxHashMap<Oid, TextRange> = FxHashMap::default();
    for lock in &context.effects.locks {
        places.entry(lock.relation.oid).or_insert(lock.range);
    }
    let place = |dropped: &RelationName| places.get(&dropped.oid).copied().unwrap_or(context.statement.range);
    // In the order of the text, so that of several partitions the first is reported.
    let mut drops: Vec<(TextRange, &RelationName)> =
        context.effects.drops.iter().map(|dropped| (place(dropped), dropped)).collect();
    drops.sort_by_key(|(range, _)| *range);
    let mut seen: FxHashSet<Oid> = FxHashSet::default();
    for (range, dropped) in drops {
        let partition = context.before.get_relation(dropped.oid).filter(|relation| relation.is_partition());
        for parent in partition.iter().flat_map(|partition| &partition.parents) {
            if seen.insert(*parent)
                && let Some(parent) = locked_parent(context, *parent)
            {
                report(context, range, dropped, parent, reporter);
            }
        }
    }
}

fn report(
    context: &RuleContext<'_>,
    range: TextRange,
    partition: &RelationName,
    parent: &RelationName,
    reporter: &mut Reporter<'_>,
) {
    let message = format!(
        "dropping partition `{}` blocks all reads and writes of `{}` until the transaction ends",
        partition.name, parent.name
    );
    let (name, parent_name) = (sql_name(context, partition), sql_name(context, parent));
    let after = format!("\n    DROP TABLE {name};");
    let help = detach_help(context, parent.oid, &parent_name, &name, &after);
    reporter.report(range, message).relation(parent).help(help).emit();
}

/// Returns the parent if the statement locks it, others can see it, and it is not dropped.
fn locked_parent<'c>(context: &RuleContext<'c>, parent: Oid) -> Option<&'c RelationName> {
    let locks = context.effects.locks.iter();
    let mut parents = locks.filter(|lock| lock.relation.oid == parent && lock.mode == LockMode::AccessExclusive);
    let parent = &parents.find(|lock| lock.relation.visibility.is_exposed())?.relation;
    let dropped = context.effects.drops.iter().any(|dropped| dropped.oid == parent.oid);
    (!dropped && !is_dropped_later(context, parent)).then_some(parent)
}
