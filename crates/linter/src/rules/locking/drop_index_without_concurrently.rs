//! DROP INDEX that blocks the table.

use super::{Held, held};
use crate::fix::{Applicability, Edit, Fix};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::offer::{leave_transaction, offer};
use crate::rules::advice::{constraint, index};
use crate::rules::deployment::dropped_later::is_dropped_later;
use crate::rules::deployment::other_statements::{Until, means, rest_until};
use crate::rules::text::{enumerate, sql_name};
use pgvet_model::catalog::RelationKind;
use pgvet_model::effect::RelationName;
use pgvet_model::execute::command_lock_level;
use pgvet_syntax::ast::{AlterTable, Ast, Drop, DropBehavior, LockMode, ObjectKind};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// `DROP INDEX` without `CONCURRENTLY` on a table that is in use.
    ///
    /// ## Why it matters
    ///
    /// Dropping the index takes an ACCESS EXCLUSIVE lock on its table. The work is short, but the statement waits for
    /// every open transaction that has used the table, and later queries on the table, even SELECT, queue behind it.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// DROP INDEX orders_status_idx;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// DROP INDEX CONCURRENTLY orders_status_idx;
    /// ```
    ///
    /// `CONCURRENTLY` drops one index at a time and cannot run in a transaction block. PostgreSQL refuses it for the
    /// index of a partitioned table. There, set a short `lock_timeout`, and retry if the timeout expires.
    ///
    /// ## When it is not reported
    ///
    /// - an index of a table that the same transaction created, or that the same migration created and left empty
    /// - an index of a table that the same migration drops later
    /// - an index of a table on which the transaction already holds ACCESS EXCLUSIVE, or takes it with a later ALTER
    ///   TABLE
    /// - `DROP INDEX IF EXISTS` of an index that no migration creates
    ///
    /// ## Fix safety
    ///
    /// The fix adds `CONCURRENTLY`. The fix is unsafe, because the file can no longer run in a transaction. No fix is
    /// offered if PostgreSQL would refuse the statement: inside a transaction, for several indexes, with `CASCADE`, and
    /// for indexes of partitioned tables.
    "drop-index-without-concurrently", Locking, Warning,
    {
        fixable: true,
        sources: &[
            "squawk/require-concurrent-index-deletion",
            "strong_migrations/remove_index",
            "pgls/requireConcurrentIndexDeletion", "atlas/PG102"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::Drop(statement) = context.ast else { return };
    if statement.kind != ObjectKind::Index || statement.concurrently || context.effects.fails.is_some() {
        return;
    }
    let mut locked: Vec<&RelationName> = Vec::new();
    for lock in &context.effects.locks {
        let strong = lock.mode == LockMode::AccessExclusive && lock.relation.visibility.is_exposed();
        if strong && !locked.iter().any(|known| known.oid == lock.relation.oid) {
            locked.push(&lock.relation);
        }
    }
    let indexes: Vec<&RelationName> = locked.iter().copied().filter(|relation| relation.kind.is_index()).collect();
    let mut tables: Vec<&RelationName> = locked.into_iter().filter(|relation| !relation.kind.is_index()).collect();
    // The index of a new table hurts nobody; that of an unknown table is all that is known.
    let unknown = indexes.iter().any(|index| context.before.get_relation(index.oid).is_none_or(|index| !index.known));
    if tables.is_empty() && !unknown {
        return;
    }
    if !tables.is_empty() && tables.iter().all(|table| is_dropped_later(context, table)) {
        return;
    }
    if !tables.is_empty() && tables.iter().all(|table| held(context, table, LockMode::AccessExclusive) == Held::Surely)
    {
        return;
    }
    if !tables.is_empty() && tables.iter().all(|table| is_locked_later(context, table)) {
        return;
    }
    // Partitions are locked with their parent, which stands for them.
    let named = tables.clone();
    tables.retain(|table| !is_partition_of(context, table, &named));
    let blocked = if tables.is_empty() {
        "its table".to_owned()
    } else {
        enumerate(tables.iter().map(|table| table.name.as_str()))
    };
    let message = format!("dropping this index blocks all reads and writes of {blocked} until the transaction ends");
    let partitioned = tables.iter().any(|table| table.kind == RelationKind::PartitionedTable)
        || indexes.iter().any(|one| index::is_partitioned(context, one));
    let names: Vec<String> =
        statement.objects.iter().map(|object| context.text(object.name.range()).to_owned()).collect();
    let mut finding = reporter.report(statement.keyword, message);
    for relation in if tables.is_empty() { &indexes } else { &tables } {
        finding = finding.relation(relation);
    }
    if partitioned {
        let name = indexes.first().map_or_else(|| names.join(", "), |index| sql_name(context, index));
        let advice = constraint::give_up_and_retry().sql(format!("DROP INDEX {name}"));
        finding.help(advice.then("PostgreSQL refuses CONCURRENTLY for the index of a partitioned table")).emit();
        return;
    }
    finding = offer(context, finding, index::drop_concurrently(context, &names, statement.if_exists));
    finding.fix(concurrently(context, statement)).emit();
}

/// Whether a later ALTER TABLE of the transaction needs the same lock on the table, or even drops the index with a column.
fn is_locked_later(context: &RuleContext<'_>, table: &RelationName) -> bool {
    let needs_lock = |alter: &AlterTable| {
        let modes = alter.commands.iter().map(|command| command_lock_level(&command.action, context.target));
        modes.max() == Some(LockMode::AccessExclusive) && means(context, &alter.name, table)
    };
    let later = || rest_until(context, Until::Commit);
    context.is_surely_in_block()
        && later().iter().any(|ast| matches!(&**ast, Ast::AlterTable(alter) if needs_lock(alter)))
}

fn is_partition_of(context: &RuleContext<'_>, table: &RelationName, parents: &[&RelationName]) -> bool {
    let relation = context.before.get_relation(table.oid);
    relation.is_some_and(|relation| parents.iter().any(|parent| relation.parents.contains(&parent.oid)))
}

fn concurrently(context: &RuleContext<'_>, statement: &Drop) -> Option<Fix> {
    let alone = statement.objects.len() == 1 && statement.behavior == DropBehavior::Restrict;
    let mut edits = leave_transaction(context).filter(|_| alone)?;
    let edit = Edit { range: TextRange::at(statement.keyword.end), text: " CONCURRENTLY".to_owned() };
    edits.push(edit);
    Some(Fix { title: "Drop the index concurrently".to_owned(), applicability: Applicability::Unsafe, edits })
}
