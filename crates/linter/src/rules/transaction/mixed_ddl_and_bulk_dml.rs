//! A table is altered after its rows were changed.

use super::{first_words, split_help};
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::statement::locks::assumed_transaction;
use crate::rules::text::sql_name;
use pgvet_model::effect::{Lock, LockCause, RowsReason};
use pgvet_model::session::Change;
use pgvet_syntax::ast::Ast;

declare_rule! {
    /// A transaction that changes all rows of a table and then alters the table, or that alters a table with pending
    /// checks of a deferred foreign key.
    ///
    /// ## Why it matters
    ///
    /// After it has changed the rows, the transaction needs a stronger lock on the table. It then waits for every other
    /// open transaction that has used the table. If one of these transactions waits for a changed row, the two
    /// deadlock. PostgreSQL then cancels one of the two transactions, and hours of work can be lost. If a deferred
    /// foreign key still has to be checked, PostgreSQL refuses `ALTER TABLE`, because the table "has pending trigger
    /// events".
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- transaction
    /// UPDATE orders SET total = 0;
    /// ALTER TABLE orders DROP COLUMN price;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- autocommit
    /// UPDATE orders SET total = 0 WHERE id BETWEEN 1 AND 10000;
    /// ALTER TABLE orders DROP COLUMN price;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - changes that a WHERE clause limits
    /// - tables that the same transaction created, unless a deferred foreign key check is pending
    /// - tables that the transaction alters before it changes their rows, which `work-after-strong-lock` reports
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible` if the transaction may have changed no rows: only duplicates are deleted, or an earlier
    /// migration has run the same statement.
    "mixed-ddl-and-bulk-dml", Transaction, Warning,
    {
        sources: &["bytebase/statement.disallow-mix-in-ddl-dml", "gitlab/migrations_with_ddl_and_dml"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(block) = &context.session.block else { return };
    let is_ddl = matches!(
        context.ast,
        Ast::AlterTable(_)
            | Ast::Drop(_)
            | Ast::Truncate(_)
            | Ast::CreateIndex(_)
            | Ast::CreateTrigger(_)
            | Ast::Rename(_)
    );
    if !is_ddl {
        return;
    }
    for lock in context.effects.locks.iter().filter(|lock| lock.cause == LockCause::Target && lock.mode.blocks_writes())
    {
        let name = &lock.relation.name;
        if let Some(change) = block.changes.of(lock.relation.oid).find(|change| is_pending(context, change)) {
            let message = format!(
                "PostgreSQL refuses this, because a deferred foreign key check is pending for rows that the \
                 transaction wrote to `{name}`"
            );
            let help = format!("run SET CONSTRAINTS ALL IMMEDIATE first, or {}", split_help(context, "this statement"));
            let finding = reporter.report(first_words(context), message).relation(&lock.relation).help(help);
            let finding = finding.assuming(assumed_transaction(context, change.place));
            finding.label_in(change.place.file, change.place.range, "the rows are changed here").emit();
            return;
        }
        // Nothing shows whether any row refers to the deleted ones.
        let bulk = |change: &&Change| !change.rows.is_few() && !change.rows.are_referring();
        if let Some(change) = block.changes.of(lock.relation.oid).find(bulk).filter(|_| is_upgrade(context, lock)) {
            let message = format!(
                "this can deadlock with sessions that use `{name}`, because the transaction has changed rows of \
                 `{name}` and now needs {} on the table",
                lock.mode.sql()
            );
            let finding = reporter.report(first_words(context), message).relation(&lock.relation);
            let finding = finding.label_in(change.place.file, change.place.range, "the rows are changed here");
            // One row is enough for a deadlock, but of these there may be none.
            let may_be_none = matches!(change.rows.reason, RowsReason::Duplicates { .. } | RowsReason::RunBefore);
            let few = may_be_none.then(|| Assumption::many(name, &change.rows));
            let finding = finding.assuming(assumed_transaction(context, change.place)).assuming(few);
            let help = match change.rows.reason {
                RowsReason::Duplicates { .. } => format!(
                    "begin the transaction with LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE: in separate transactions, new \
                     duplicates can appear in between",
                    sql_name(context, &lock.relation)
                ),
                _ => split_help(context, "this statement"),
            };
            finding.help(help).emit();
            return;
        }
    }
}

/// Whether the table is in use, and this is the transaction's first strong lock on it.
pub(super) fn is_upgrade(context: &RuleContext<'_>, lock: &Lock) -> bool {
    let block = context.session.block.as_ref();
    lock.relation.visibility.is_exposed() && !block.is_some_and(|block| block.locks.blocks_writes(lock.relation.oid))
}

/// Whether the change queued a check that only runs at COMMIT, so that PostgreSQL treats the table as in use.
///
/// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `CheckTableNotInUse`.
fn is_pending(context: &RuleContext<'_>, change: &Change) -> bool {
    matches!(context.ast, Ast::AlterTable(_) | Ast::Drop(_) | Ast::Truncate(_))
        && change.checked_at_commit
        && !checked_since(context, change)
}

/// Whether there is a SET CONSTRAINTS between the change and this statement.
fn checked_since(context: &RuleContext<'_>, change: &Change) -> bool {
    let checks = |ast: &Ast| matches!(ast, Ast::Other(node) if node == "ConstraintsSetStmt");
    let in_file = context.earlier.iter().filter(|run| run.outer < context.outer().start && checks(&run.ast));
    let same_code = context.code.map_or(&[][..], |code| code.earlier).iter();
    let same_code = same_code.filter(|run| run.statement.ast().is_some_and(checks));
    let mut ranges = in_file.map(|run| run.range).chain(same_code.map(|run| run.code.shown.range(run.statement.range)));
    ranges.any(|range| change.place.range.end <= range.start)
}
