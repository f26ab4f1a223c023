//! Triggers and rules that are created, dropped, enabled or disabled on a table in use.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::statement::timeouts::lock_timeout_in_effect;
use pgvet_model::catalog::Oid;
use pgvet_model::effect::{ChangedObject, Lock, LockCause};

declare_rule! {
    /// Creating, dropping, enabling or disabling a trigger or rule of a table in use, without a `lock_timeout`.
    ///
    /// ## Why it matters
    ///
    /// Creating, enabling and disabling a trigger takes a SHARE ROW EXCLUSIVE lock, which blocks writes. Dropping a
    /// trigger, and any change of rules, takes ACCESS EXCLUSIVE, which also blocks reads. The work is short, but the
    /// statement waits for open transactions. For SHARE ROW EXCLUSIVE, it waits for transactions that have written to
    /// the table. For ACCESS EXCLUSIVE, it waits for all transactions that have used the table.
    ///
    /// Later writes queue behind the statement. If it needs ACCESS EXCLUSIVE, later reads queue as well. PostgreSQL
    /// holds the lock until the transaction ends.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TRIGGER audit AFTER UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION audit();
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// SET lock_timeout = '2s';
    /// CREATE TRIGGER audit AFTER UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION audit();
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - statements that run while a `lock_timeout` is in effect
    /// - triggers and rules of views
    /// - a table that the same transaction created, or that the same migration created and left empty
    "trigger-blocks-writes", Locking, Info,
    {
        sources: &["pgls/avoidCreateTrigger", "pgls/avoidEnableDisableTrigger", "atlas/PG308"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() || lock_timeout_in_effect(context) {
        return;
    }
    let mut seen: Vec<Oid> = Vec::new();
    for change in &context.effects.changes {
        let (ChangedObject::Trigger { table, .. } | ChangedObject::Rule { table, .. }) = &change.object else {
            continue;
        };
        let lock = context.effects.locks.iter().find(|lock| lock.relation.oid == table.oid && is_target(lock));
        let Some(lock) = lock.filter(|_| !seen.contains(&table.oid)) else { continue };
        seen.push(table.oid);
        let (stopped, queueing) =
            if lock.mode.blocks_reads() { ("read and write", "queries") } else { ("write", "writes") };
        let message = format!(
            "this takes {} on `{}` and blocks every {stopped} until the transaction ends",
            lock.mode.sql(),
            lock.relation.name
        );
        let set = context.set_command();
        let help = format!(
            "set a lock_timeout first, so that {queueing} do not queue behind this statement for long:\n    {set} \
                    lock_timeout = '2s';"
        );
        reporter.report(change.range, message).relation(&lock.relation).help(help).emit();
    }
}

fn is_target(lock: &Lock) -> bool {
    lock.cause == LockCause::Target
        && lock.mode.blocks_writes()
        && lock.relation.kind.is_table()
        && lock.relation.visibility.is_exposed()
}
