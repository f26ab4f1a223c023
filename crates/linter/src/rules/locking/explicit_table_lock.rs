//! LOCK TABLE that locks more than it says, or waits without limit.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::statement::timeouts::lock_timeout_in_effect;
use crate::rules::text::enumerate;
use pgvet_model::effect::Lock;
use pgvet_syntax::ast::{Ast, LockMode, LockTable};

declare_rule! {
    /// `LOCK TABLE` without a lock mode, or without a limit on how long it waits.
    ///
    /// ## Why it matters
    ///
    /// Without a mode, the statement takes an ACCESS EXCLUSIVE lock, which blocks reads and writes. A weaker mode is
    /// usually enough. While the statement waits for the transactions that use the table, later conflicting queries
    /// queue behind it. Without `NOWAIT` or a `lock_timeout`, the wait lasts until the last of those transactions ends.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// BEGIN;
    /// LOCK TABLE orders;
    /// COMMIT;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// BEGIN;
    /// LOCK TABLE orders IN SHARE ROW EXCLUSIVE MODE NOWAIT;
    /// COMMIT;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a lock mode that blocks neither reads nor writes
    /// - a statement with a lock mode, while a `lock_timeout` is in effect
    /// - a table that the same transaction created, or that the same migration created and left empty
    "explicit-table-lock", Locking, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::LockTable(statement) = context.ast else { return };
    let waits = !statement.nowait && !lock_timeout_in_effect(context);
    let harmless = !statement.mode.blocks_writes() || (statement.explicit_mode && !waits);
    if harmless || context.effects.fails.is_some() {
        return;
    }
    let locks = context.effects.locks.iter();
    let locks: Vec<&Lock> =
        locks.filter(|lock| lock.mode == statement.mode && lock.relation.visibility.is_exposed()).collect();
    if locks.is_empty() {
        return;
    }
    let tables = enumerate(locks.iter().map(|lock| lock.relation.name.as_str()));
    let stopped = if statement.mode.blocks_reads() { "read and write of" } else { "write to" };
    let message = if statement.explicit_mode {
        format!("this LOCK TABLE can wait indefinitely, and every later {stopped} {tables} queues behind it")
    } else {
        format!("LOCK TABLE without a mode takes ACCESS EXCLUSIVE and blocks every {stopped} {tables}")
    };
    let mut finding = reporter.report(statement.keyword, message).help(help(context, statement));
    for lock in locks {
        finding = finding.relation(&lock.relation);
    }
    finding.emit();
}

fn help(context: &RuleContext<'_>, statement: &LockTable) -> String {
    let name = |(name, only): &(pgvet_syntax::ast::ObjectName, bool)| {
        format!("{}{}", if *only { "ONLY " } else { "" }, context.text(name.range()))
    };
    let tables: Vec<String> = statement.tables.iter().map(name).collect();
    let mode = if statement.explicit_mode { statement.mode } else { LockMode::ShareRowExclusive };
    format!(
        "name the weakest lock mode that the following statements need, and add NOWAIT to fail instead of waiting:\n    \
         LOCK TABLE {} IN {} MODE NOWAIT;",
        tables.join(", "),
        mode.sql()
    )
}
