//! Row-level security switched on or changed on a table in use.

use crate::ast::{AlterTableAction, Ast, ObjectKind, ObjectName, RowSecurity, Transaction};
use crate::diagnostic::Severity;
use crate::effect::{Lock, LockMode, RelationName};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::around::{Until, means, rest_until};
use crate::rules::timeouts::lock_timeout_in_effect;
use crate::source::TextRange;

declare_rule! {
    /// Row-level security that is enabled without a policy, or changed without a `lock_timeout`, on a table in use.
    ///
    /// ## Why it matters
    ///
    /// Where no policy exists the default is to deny: from the commit on everybody but the owner sees an empty table and
    /// can write nothing. Besides, every change of row-level security and policies takes an ACCESS EXCLUSIVE lock: the
    /// work is short, but the lock waits for every query that runs, while all later ones queue behind it.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// SET lock_timeout = '2s';
    /// CREATE POLICY own_orders ON orders USING (owner = current_user);
    /// ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// When a policy exists, or follows in the same transaction, and a `lock_timeout` is in effect; without the latter it
    /// is a note only. For a table that the same transaction created, or the same migration while it is empty.
    "row-level-security-locks", Locking, Warning,
    {
        sources: &["squawk/ban-alter-row-level-security", "squawk/ban-create-policy"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some((range, table, enables)) = place(context.ast) else { return };
    if context.effects.fails.is_some() {
        return;
    }
    let lock = context.effects.locks.iter().find(|lock| {
        lock.range == table.range() && lock.mode == LockMode::AccessExclusive && lock.relation.visibility.is_exposed()
    });
    let Some(lock) = lock else { return };
    let name = &lock.relation.name;
    if enables && denies_all(context, lock) {
        let message =
            format!("`{name}` has no policy: nobody but its owner and superusers will see its rows or write any");
        let help = "create its policies before, or in the same transaction";
        reporter.report(range, message).relation(&lock.relation).help(help).emit();
    } else if !lock_timeout_in_effect(context) {
        let message = format!("this blocks every read and write of `{name}` until the transaction ends");
        let set = if context.session.in_transaction() { "SET LOCAL" } else { "SET" };
        let help = format!("so that nobody queues behind it for long, before it:\n    {set} lock_timeout = '2s';");
        reporter.report(range, message).relation(&lock.relation).severity(Severity::Info).help(help).emit();
    }
}

/// Where the statement changes row-level security, of which table, and whether it switches it on.
fn place(ast: &Ast) -> Option<(TextRange, &ObjectName, bool)> {
    match ast {
        Ast::AlterTable(statement) => statement.commands.iter().find_map(|command| match command.action {
            AlterTableAction::RowSecurity(change) => {
                Some((command.keyword, &statement.name, change == RowSecurity::Enable))
            }
            _ => None,
        }),
        Ast::CreatePolicy(create) => Some((create.name.range, &create.table, false)),
        Ast::AlterPolicy(alter) => Some((alter.name.range, &alter.table, false)),
        Ast::Drop(drop) if drop.kind == ObjectKind::Policy => {
            Some((drop.keyword, drop.objects.first()?.on.as_ref()?, false))
        }
        _ => None,
    }
}

/// Does the table have no policy, and get none before the transaction ends?
fn denies_all(context: &RuleContext<'_>, lock: &Lock) -> bool {
    let before = context.before.get_relation(lock.relation.oid);
    let already = before.is_some_and(|relation| relation.row_security || !relation.policies.is_empty());
    let follows = context.session.in_transaction() && policy_follows(context, &lock.relation);
    !already && !follows
}

/// Does a later statement of the same transaction create a policy for the table?
fn policy_follows(context: &RuleContext<'_>, table: &RelationName) -> bool {
    for ast in rest_until(context, Until::Commit) {
        match &*ast {
            Ast::CreatePolicy(create) if means(context, &create.table, table) => return true,
            Ast::Transaction(Transaction::Commit { .. } | Transaction::Rollback { .. }) => return false,
            _ => {}
        }
    }
    false
}
