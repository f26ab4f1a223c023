//! DETACH PARTITION that locks the parent.

use crate::fix::{Applicability, Edit, Fix};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::everywhere_at_least;
use crate::rules::locking::partition_bound::default_partition;
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::{Oid, RelationKind};
use pgvet_model::effect::Lock;
use pgvet_syntax::ast::{AlterTableAction, Ast, LockMode};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// `DETACH PARTITION` without `CONCURRENTLY`.
    ///
    /// ## Why it matters
    ///
    /// The parent, the partition and the DEFAULT partition are locked in ACCESS EXCLUSIVE mode until the transaction
    /// ends: nobody can read or write through the parent. A query that reads another partition by its own name can
    /// still run. An `INSERT` or `UPDATE` of another partition may have to wait, because it checks the partition bound.
    /// The statement waits for every open transaction that has used these tables, and all later queries on them queue
    /// behind it. With `CONCURRENTLY` (PostgreSQL 14 and later), reads and writes of the parent continue while the
    /// statement waits.
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
    /// `CONCURRENTLY` runs only outside a transaction block, and only while the table has no DEFAULT partition. If the
    /// statement is interrupted, the detach stays pending until you run `ALTER TABLE events DETACH PARTITION
    /// events_2019 FINALIZE`.
    ///
    /// ## When it is not reported
    ///
    /// - a parent that the same transaction created, or that the same migration created and left empty
    ///
    /// ## Fix safety
    ///
    /// The fix adds `CONCURRENTLY`. The fix is unsafe, because the file can no longer run in a transaction, and the
    /// detach stays pending if the statement is cancelled. No fix is offered if PostgreSQL would refuse the statement:
    /// inside a transaction, for a table with a DEFAULT partition, and before PostgreSQL 14.
    "detach-partition-without-concurrently", Locking, Warning,
    {
        fixable: true,
        sources: &[
            "squawk/require-concurrent-partition-detach",
            "pgls/requireConcurrentDetachPartition",
            "pg-migration-lint/PGM004",
        ],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for lock in &context.effects.locks {
        if lock.mode != LockMode::AccessExclusive || !lock.relation.visibility.is_exposed() {
            continue;
        }
        let Some((range, partition)) = written(context, lock).or_else(|| hidden(context, lock)) else { continue };
        let name = &lock.relation.name;
        let message =
            format!("detaching this partition blocks all reads and writes of `{name}` until the transaction ends");
        let help = help(context, lock.relation.oid, &sql_name(context, &lock.relation), &partition, "");
        let fix = concurrently(context, lock);
        reporter.report(range, message).relation(&lock.relation).help(help).fix(fix).emit();
    }
}

fn concurrently(context: &RuleContext<'_>, lock: &Lock) -> Option<Fix> {
    let Ast::AlterTable(statement) = context.ast else { return None };
    let [command] = statement.commands.as_slice() else { return None };
    let AlterTableAction::DetachPartition { partition, .. } = &command.action else { return None };
    let parent = context.before.get_relation(lock.relation.oid)?;
    let refused = !everywhere_at_least(context, 14)
        || context.session.in_transaction()
        || !parent.known
        || default_partition(context, lock.relation.oid).is_some();
    if refused {
        return None;
    }
    let edit = Edit { range: TextRange::at(partition.range().end), text: " CONCURRENTLY".to_owned() };
    let title = "Detach the partition concurrently".to_owned();
    Some(Fix { title, applicability: Applicability::Unsafe, edits: vec![edit] })
}

/// Where the statement detaches a partition of the locked table, and that partition.
fn written(context: &RuleContext<'_>, lock: &Lock) -> Option<(TextRange, String)> {
    let Ast::AlterTable(statement) = context.ast else { return None };
    statement.commands.iter().filter(|_| lock.range == statement.name.range()).find_map(|command| {
        match &command.action {
            AlterTableAction::DetachPartition { partition, concurrently: false, finalize: false } => {
                Some((command.keyword, context.text(partition.range()).to_owned()))
            }
            _ => None,
        }
    })
}

/// Returns the same for code that the statement runs: the table has lost a partition that still exists.
fn hidden(context: &RuleContext<'_>, lock: &Lock) -> Option<(TextRange, String)> {
    if matches!(context.ast, Ast::AlterTable(_)) || lock.relation.kind != RelationKind::PartitionedTable {
        return None;
    }
    let before = context.before.get_relation(lock.relation.oid)?;
    let after = context.after.get_relation(lock.relation.oid)?;
    let mut lost = before.children.iter().filter(|child| !after.children.contains(*child));
    let partition = lost.find_map(|child| context.after.get_relation(*child))?;
    let name = identifier(&partition.name);
    Some((lock.range, format!("{}.{name}", identifier(&partition.schema))))
}

/// The statement that detaches without a strong lock on the parent, then `after`; or why there is none.
pub(super) fn help(context: &RuleContext<'_>, parent: Oid, parent_name: &str, partition: &str, after: &str) -> String {
    let short = "set a short lock_timeout, and retry if it expires";
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
    format!(
        "detach the partition concurrently, {place}{unless}:\n    ALTER TABLE {parent_name} DETACH PARTITION \
         {partition} CONCURRENTLY;{after}"
    )
}
