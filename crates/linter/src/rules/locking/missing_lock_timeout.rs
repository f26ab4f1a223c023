//! A strong lock that is waited for without limit.

use crate::ast::{Ast, ObjectKind};
use crate::diagnostic::Diagnostic;
use crate::fix::{Applicability, Fix};
use crate::report::Reporter;
use crate::rule::{RuleContext, RunContext, declare_rule};
use crate::rules::advice::offer::{leave_transaction, line_before};
use crate::rules::timeouts::{first_strong_lock, lock_timeout_in_effect, lost, waited_before};
use crate::settings::LockTimeout;
use crate::statement::Statement;

declare_rule! {
    /// A lock that stops reads or writes of a table in use, while no `lock_timeout` is in effect.
    ///
    /// ## Why it matters
    ///
    /// However short the work is: the lock must wait for every transaction that uses the table, and every later query
    /// queues behind it. One forgotten transaction or long report, and the table is as good as locked until that ends.
    /// With a `lock_timeout` the migration gives up after a moment and can be tried again.
    ///
    /// Where no migration of the run ever sets `lock_timeout` this is said once, with the number of transactions. Perhaps
    /// the program that runs the migrations sets it, or their role: then `lock-timeout = "runner"` in the configuration
    /// says so.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE orders ADD COLUMN note text;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// SET lock_timeout = '2s';
    /// ALTER TABLE orders ADD COLUMN note text;
    /// ```
    ///
    /// In a transaction `SET LOCAL lock_timeout = '2s'` keeps it to that transaction.
    ///
    /// ## When it is not reported
    ///
    /// A second time in the same transaction, or outside of transactions in the same file; for `LOCK TABLE`, which is
    /// `explicit-table-lock`; where the migration did set a timeout that does not act, which is `timeout-not-in-effect`;
    /// for statements such as `CREATE INDEX CONCURRENTLY`, which a timeout would harm; for a table that the same
    /// transaction created, or the same migration while it is empty.
    ///
    /// ## Fix safety
    ///
    /// In a transaction the fix writes `SET LOCAL lock_timeout` before the statement, and is safe: a migration
    /// that gives up is undone as a whole. Elsewhere it writes `SET lock_timeout`, and is unsafe: what ran
    /// before the statement that gives up stays, and the setting stays for the session. It is not offered in
    /// files with CONCURRENTLY, which must be able to wait, for an index that can be built or dropped so, and where one
    /// finding stands for many migrations.
    "missing-lock-timeout", Locking, Warning,
    {
        fixable: true,
        sources: &["squawk/require-lock-timeout", "eugene/E9", "pgls/lockTimeoutWarning"],
    }
    statement = check,
    run = merge,
}

const INSIDE: &str = "at the start of the transaction:\n    SET LOCAL lock_timeout = '2s';";
const OUTSIDE: &str = "at the start of the file:\n    SET lock_timeout = '2s';";
const RUNNER: &str = "if the program that runs the migrations sets it, or their role, say so in the configuration: \
                      lock-timeout = \"runner\"";

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let settled = context.settings.lock_timeout == LockTimeout::Runner || lock_timeout_in_effect(context);
    if settled || matches!(context.ast, Ast::LockTable(_)) || waited_before(context) {
        return;
    }
    let Some(lock) = first_strong_lock(context) else { return };
    if lost(context.migration, context.statement.range.start).is_some() {
        return;
    }
    let stopped = if lock.mode.blocks_reads() { "query" } else { "write" };
    let message = format!(
        "without lock_timeout this may wait for its {} lock on `{}` for any time, and every later {stopped} of it waits behind",
        lock.mode.sql(),
        lock.relation.name
    );
    let help = if context.session.in_transaction() { INSIDE } else { OUTSIDE };
    let finding = reporter.report(lock.range, message).relation(&lock.relation).help(help);
    finding.fix(set_before(context)).emit();
}

/// The setting on a line before the statement; not where something follows that must be able to wait.
fn set_before(context: &RuleContext<'_>) -> Option<Fix> {
    let waits = |statement: &Statement| statement.ast().is_some_and(Ast::is_concurrent);
    let in_transaction = context.session.in_transaction();
    if can_be_concurrent(context) || !in_transaction && context.migration.statements().any(waits) {
        return None;
    }
    let (sql, applicability) = if in_transaction {
        ("SET LOCAL lock_timeout = '2s'", Applicability::Safe)
    } else {
        ("SET lock_timeout = '2s'", Applicability::Unsafe)
    };
    Some(Fix { title: format!("Write {sql} before it"), applicability, edits: vec![line_before(context, sql)] })
}

/// Is there a CONCURRENTLY to be written, beside which a timeout would do harm?
fn can_be_concurrent(context: &RuleContext<'_>) -> bool {
    let knows_it = match context.ast {
        Ast::CreateIndex(_) | Ast::Reindex(_) | Ast::RefreshMaterializedView(_) => true,
        Ast::Drop(drop) => drop.kind == ObjectKind::Index,
        _ => false,
    };
    knows_it && leave_transaction(context).is_some()
}

/// With fewer than one migration in this many that sets it, its lack is a habit of the project.
const RARE: usize = 10;

/// Leaves one finding per file outside of transactions, and one of the whole run where hardly any migration sets the
/// timeout.
fn merge(run: &RunContext<'_>, found: &mut Vec<Diagnostic>) {
    found.sort_by_key(|finding| (finding.file, finding.range.start));
    let mut outside = None;
    found.retain(|finding| {
        let again = finding.help.as_deref() == Some(OUTSIDE) && outside == Some(finding.file);
        if finding.help.as_deref() == Some(OUTSIDE) {
            outside = Some(finding.file);
        }
        !again
    });
    let transactions = found.len();
    if run.sets_lock_timeout * RARE > transactions || (run.sets_lock_timeout > 0 && transactions < RARE) {
        return;
    }
    let severity = found.iter().map(|finding| finding.severity).max();
    let newest = found.last().map(|finding| finding.file);
    let at = found.iter().position(|finding| Some(finding.file) == newest);
    let (Some(at), Some(severity)) = (at, severity) else { return };
    let mut only = found.swap_remove(at);
    only.severity = severity;
    if transactions > 1 {
        only.message = format!(
            "{} lock_timeout: {transactions} transactions may wait for their locks for any time, \
             and every later query of those tables waits behind",
            if run.sets_lock_timeout == 0 { "no migration sets" } else { "hardly any migration sets" }
        );
    }
    let first = only.help.unwrap_or_default();
    only.help = Some(format!("{first}\n{RUNNER}"));
    // The one finding stands for transactions that a fix of one would leave as they are.
    if transactions > 1 {
        only.fixes.clear();
    }
    *found = vec![only];
}
