//! Row-level security enabled on a table in use that has no policy.

use crate::assumption::{Assumption, ClosedBy};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::compatibility::policy_recursion::bypasses;
use crate::rules::deployment::other_statements::{Until, ahead, any_later, earlier, is_about, means, rest_until};
use pgvet_model::effect::{ChangeAction, ChangedObject, Lock, ObjectChange, RelationName};
use pgvet_syntax::ast::{Ast, LockMode, Transaction};
use smol_str::SmolStr;

declare_rule! {
    /// `ENABLE ROW LEVEL SECURITY` on a table in use that has no policy when the transaction ends.
    ///
    /// ## Why it matters
    ///
    /// Without a policy, row-level security denies access: after the commit every role except the owner, superusers and
    /// roles with `BYPASSRLS` sees an empty table and cannot insert into it.
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
    /// - a table that has a policy before the statement, or gets one in the same transaction
    /// - a table that has row-level security already
    /// - a table that the same transaction created, or that the same migration created and left empty
    ///
    /// Every change of row-level security and policies takes an ACCESS EXCLUSIVE lock for a moment.
    /// `missing-lock-timeout` reports such a change if it can wait indefinitely for its lock.
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible` if only the owner and roles with `BYPASSRLS`, such as Supabase's `service_role`, seem to
    /// use the table: no migration grants the table to another role or forces row-level security for the owner, and no
    /// migration has created a policy for a table of the schema. The same applies if the migration revokes the privileges
    /// of other roles on the table.
    "row-level-security-without-policy", Compatibility, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let enables = |change: &&ObjectChange| {
        matches!(change.object, ChangedObject::RowSecurity { .. }) && change.action == ChangeAction::Enable
    };
    let change = context.effects.changes.iter().find(enables).filter(|_| context.effects.fails.is_none());
    let Some((change, table)) = change.and_then(|change| Some((change, change.object.table()?))) else { return };
    let lock = context.effects.locks.iter().find(|lock| {
        lock.relation.oid == table.oid
            && lock.mode == LockMode::AccessExclusive
            && lock.relation.visibility.is_exposed()
    });
    let Some(lock) = lock.filter(|lock| denies_all(context, lock)) else { return };
    let name = &lock.relation.name;
    let message = format!(
        "from now on, only the owner of `{name}` and roles that bypass row-level security can read or write its rows, \
         because the table has no policy"
    );
    let help = "create policies for the table before this statement, or in the same transaction";
    let is_unseen = context.before.get_relation(lock.relation.oid).is_none_or(|relation| !relation.known);
    let unseen = is_unseen.then(|| Assumption::NoPolicyUnseen { table: name.clone() });
    let closed = closed_by(context, lock).map(|although| Assumption::OthersUse { table: name.clone(), although });
    let finding = reporter.report(change.range, message).relation(&lock.relation).help(help);
    finding.assuming(unseen).assuming(closed).emit();
}

/// Whether the table has no policy and gets none before the transaction ends.
fn denies_all(context: &RuleContext<'_>, lock: &Lock) -> bool {
    let before = context.before.get_relation(lock.relation.oid);
    let already = before.is_some_and(|relation| relation.row_security || !relation.policies.is_empty());
    let follows = context.session.in_transaction() && policy_follows(context, &lock.relation);
    !already && !follows
}

/// The evidence that only the owner of the table uses it: no migration gives it to another role, and none has created a
/// policy for a table of its schema, or this one revokes the privileges of others. FORCE denies the owner access, too.
fn closed_by(context: &RuleContext<'_>, lock: &Lock) -> Option<ClosedBy> {
    let name = &lock.relation;
    let end = ahead(context, &name.name, Until::EndOfMigration);
    let table = end.get_relation(name.oid)?;
    let is_denied = |role: &SmolStr| table.owner.as_ref() != Some(role) && !bypasses(role);
    if table.force_row_security || end.privileges(name.oid).any(|given| is_denied(&given.grantee)) {
        return None;
    }
    let revokes = |ast: &Ast| matches!(ast, Ast::Grant(grant) if !grant.grant && is_about(context, grant, name));
    if earlier(context).any(revokes) || any_later(context, revokes) {
        return Some(ClosedBy::Revoked);
    }
    let is_policy = |ast: &Ast| match ast {
        Ast::CreatePolicy(create) => create.table.schema.as_ref().is_none_or(|own| own.text == table.schema),
        _ => false,
    };
    let has_policies = end.has_policies_in(&table.schema) || any_later(context, is_policy);
    (!has_policies).then_some(ClosedBy::NoPolicies)
}

/// Whether a later statement of the same transaction creates a policy for the table.
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
