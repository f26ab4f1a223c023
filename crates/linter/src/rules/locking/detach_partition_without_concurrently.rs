//! DETACH PARTITION that locks the parent.

use crate::ast::{AlterTableAction, Ast, ObjectName};
use crate::catalog::Oid;
use crate::effect::LockMode;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::partition_bound::default_partition;

declare_rule! {
    /// `DETACH PARTITION` without `CONCURRENTLY`.
    ///
    /// ## Why it matters
    ///
    /// The parent, the partition and the DEFAULT partition are locked ACCESS EXCLUSIVE: nobody can read or write any
    /// partition until the transaction ends, and the lock waits for every query that runs, while all later ones queue
    /// behind it. `CONCURRENTLY` (PostgreSQL 14 and later) waits for them without a lock that stops others.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE events DETACH PARTITION events_2019;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE events DETACH PARTITION events_2019 CONCURRENTLY;
    /// ```
    ///
    /// It runs outside a transaction block only, and not while the table has a DEFAULT partition. When it is
    /// interrupted, the partition stays half detached until `DETACH PARTITION events_2019 FINALIZE`.
    ///
    /// ## When it is not reported
    ///
    /// For a parent that the same transaction created, or the same migration while it is empty.
    "detach-partition-without-concurrently", Locking, Warning,
    {
        sources: &[
            "squawk/require-concurrent-partition-detach",
            "pgls/requireConcurrentDetachPartition",
            "pg-migration-lint/PGM004",
        ],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::AlterTable(statement) = context.ast else { return };
    let detach = statement.commands.iter().find_map(|command| match &command.action {
        AlterTableAction::DetachPartition { partition, concurrently: false, finalize: false } => {
            Some((command, partition))
        }
        _ => None,
    });
    let Some((command, partition)) = detach.filter(|_| context.effects.fails.is_none()) else { return };
    let parent = context.effects.locks.iter().find(|lock| {
        lock.range == statement.name.range()
            && lock.mode == LockMode::AccessExclusive
            && lock.relation.visibility.is_exposed()
    });
    let Some(parent) = parent else { return };
    let message = format!(
        "detaching this partition blocks every read and write of `{}` until the transaction ends",
        parent.relation.name
    );
    let help = concurrently(context, parent.relation.oid, &statement.name, partition, "");
    drop(reporter.report(command.keyword, message).relation(&parent.relation).help(help));
}

/// The statement that detaches without a strong lock on the parent, then `after`; or why there is none.
pub(super) fn concurrently(
    context: &RuleContext<'_>,
    parent: Oid,
    parent_name: &ObjectName,
    partition: &ObjectName,
    after: &str,
) -> String {
    let parent_name = context.text(parent_name.range());
    help(context, parent, parent_name, context.text(partition.range()), after)
}

/// The same for names as SQL.
pub(super) fn help(context: &RuleContext<'_>, parent: Oid, parent_name: &str, partition: &str, after: &str) -> String {
    let short = "set a short lock_timeout, and try again when it strikes";
    if !context.target.at_least(14) {
        return format!("before PostgreSQL 14 there is no DETACH PARTITION CONCURRENTLY: {short}");
    }
    if let Some(default) = default_partition(context, parent) {
        return format!(
            "CONCURRENTLY is refused because `{parent_name}` has a DEFAULT partition, `{}`: {short}",
            default.name
        );
    }
    let place = if context.session.in_transaction() {
        "in a migration of its own that runs outside a transaction"
    } else {
        "outside a transaction"
    };
    let unknown = context.before.get_relation(parent).is_none_or(|relation| !relation.known);
    let unless = if unknown { ", unless the table has a DEFAULT partition" } else { "" };
    format!("{place}{unless}:\n    ALTER TABLE {parent_name} DETACH PARTITION {partition} CONCURRENTLY;{after}")
}
