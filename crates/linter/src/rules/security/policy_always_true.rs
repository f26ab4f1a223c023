//! Policies that let everybody write everything.

use super::api_roles::is_api_role;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{any_later, means};
use pgvet_model::catalog::Catalog;
use pgvet_model::effect::{ChangeAction, ChangedObject, RelationName};
use pgvet_syntax::ast::{Ast, BooleanTest, Expr, ExprKind, Literal, ObjectKind, OperatorForm};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// A permissive policy for writes has a condition that is always true.
    ///
    /// ## Why it matters
    ///
    /// With `USING (true)` or `WITH CHECK (true)`, row-level security does not restrict the command of the policy. If a
    /// role that the policy names has the privilege on the table, it can write any row, including rows of other users.
    /// Permissive policies are combined with OR, so a stricter permissive policy for the same command has no effect.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE posts (id bigint PRIMARY KEY, author uuid);
    /// CREATE POLICY edit ON posts FOR UPDATE TO authenticated USING (true);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE posts (id bigint PRIMARY KEY, author uuid);
    /// CREATE POLICY edit ON posts FOR UPDATE TO authenticated USING (author = auth.uid());
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - policies for `SELECT` alone, which publish rows on purpose
    /// - restrictive policies
    /// - policies that apply to none of the roles `PUBLIC`, `anon`, `authenticated`, `web_anon`, `anonymous` and
    ///   `webuser`. pgvet treats these as roles of users, and all others, such as `service_role`, as roles of the
    ///   application.
    /// - a policy that the migration drops, or alters so that its condition is no longer always true
    ///
    /// pgvet checks both conditions of a policy for `UPDATE` or for all commands: `USING` selects the rows that may be
    /// changed, and `WITH CHECK` limits their new values. It recognizes conditions such as `true` and `1 = 1` as always
    /// true.
    ///
    /// ## Other linters
    ///
    /// splinter checks the same on a live database, and also ignores `SELECT`.
    "policy-always-true", Security, Warning,
    { sources: &["splinter/rls_policy_always_true", "migrationpilot/MP079"] }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    for change in &context.effects.changes {
        if let ChangedObject::Policy { table, name } = &change.object
            && let ChangeAction::Create | ChangeAction::Alter = change.action
        {
            report(context, reporter, table, name, change.range);
        }
    }
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    table: &RelationName,
    name: &str,
    name_range: TextRange,
) {
    let policy_in = |catalog: &Catalog| catalog.get_relation(table.oid)?.policies.get(name).cloned();
    let Some(policy) = policy_in(context.after) else { return };
    if !policy.permissive || policy.command == "select" || !is_for_users(&policy.roles) {
        return;
    }
    let Some((open, condition)) = open_condition(&policy.command, policy.using.as_deref(), policy.check.as_deref())
    else {
        return;
    };
    if is_changed_later(context, name, table) {
        return;
    }
    // ALTER POLICY may leave the condition as it was.
    let old = policy_in(context.before);
    let mut kept = old.iter().flat_map(|old| [&old.using, &old.check]).flatten();
    let is_kept = kept.any(|known| std::ptr::eq(std::sync::Arc::as_ptr(known), condition));
    let is_written = context.statement.range.contains(condition.range) && !is_kept;
    let range = if is_written { condition.range } else { name_range };
    let (privilege, what) = match (policy.command.as_str(), open) {
        ("insert", _) | ("all", Open::Check) => ("the INSERT privilege", "insert any row"),
        ("update", Open::Using) => ("the UPDATE privilege", "change all its rows"),
        ("update", Open::Check) => ("the UPDATE privilege", "write any values into the rows that it can change"),
        ("delete", _) => ("the DELETE privilege", "delete all its rows"),
        _ => ("privileges", "read and write all its rows"),
    };
    let users = users(&policy.roles);
    let message = format!("with policy `{}`, {users} with {privilege} on `{}` can {what}", policy.name, table.name);
    let help = "in USING and WITH CHECK, compare a column with the current user, for example `owner = current_user`, \
                or `author = auth.uid()` in Supabase. If everybody may only read the rows, make the policy FOR SELECT";
    reporter.report(range, message).help(help).emit();
}

/// The roles of a policy, in a message.
fn users(roles: &[SmolStr]) -> String {
    if roles.is_empty() || roles.iter().any(|role| role == "public") {
        return "every role".to_owned();
    }
    let members = roles.iter().map(|role| format!("`{role}`")).collect::<Vec<_>>().join(" or ");
    format!("every member of {members}")
}

/// Whether a later statement of the migration drops or alters the policy, where it is judged again.
fn is_changed_later(context: &RuleContext<'_>, policy: &str, table: &RelationName) -> bool {
    any_later(context, |ast| match ast {
        Ast::Drop(drop) if drop.kind == ObjectKind::Policy => drop.objects.iter().any(|object| {
            let on = object.on.as_ref();
            object.name.name.text == policy && on.is_some_and(|on| means(context, on, table))
        }),
        Ast::AlterPolicy(alter) => alter.name.text == policy && means(context, &alter.table, table),
        _ => false,
    })
}

/// The condition of a policy that accepts every row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// For existing rows.
    Using,
    /// For new rows.
    Check,
}

/// The condition that is always true. Without WITH CHECK the rows that are written have to satisfy USING.
fn open_condition<'p>(command: &str, using: Option<&'p Expr>, check: Option<&'p Expr>) -> Option<(Open, &'p Expr)> {
    let (using, check) = (using.map(|using| (Open::Using, using)), check.map(|check| (Open::Check, check)));
    let conditions = match command {
        "insert" => [check, None],
        "select" | "delete" => [using, None],
        _ => [using, check],
    };
    conditions.into_iter().flatten().find(|(_, condition)| is_true(condition))
}

/// PUBLIC, or a role of users.
fn is_for_users(roles: &[SmolStr]) -> bool {
    roles.is_empty() || roles.iter().any(|role| role == "public" || is_api_role(role))
}

fn is_true(condition: &Expr) -> bool {
    match &condition.kind {
        ExprKind::Literal(Literal::Boolean(value)) => *value,
        ExprKind::Literal(Literal::String(text)) => matches!(text.as_str(), "t" | "true"),
        ExprKind::Cast { operand, .. } => is_true(operand),
        ExprKind::BooleanTest { operand, test: BooleanTest::True } => is_true(operand),
        ExprKind::Or(parts) => parts.iter().any(is_true),
        ExprKind::And(parts) => parts.iter().all(is_true),
        ExprKind::Operator { operator, form: OperatorForm::Plain, operands, .. } if operator == "=" => {
            matches!(operands.as_slice(), [left, right]
                if matches!(left.kind, ExprKind::Literal(_)) && left.kind == right.kind)
        }
        _ => false,
    }
}
