//! Policies that let everybody write everything.

use super::api_roles::is_api_role;
use crate::ast::{Ast, BooleanTest, CreatePolicy, Expr, ExprKind, Literal, ObjectKind, OperatorForm};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::around::rest;
use crate::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// A permissive policy for writes has a condition that is always true.
    ///
    /// ## Why it matters
    ///
    /// With `USING (true)` or `WITH CHECK (true)` row-level security is on and protects nothing: whoever has the privilege may
    /// change, delete or insert every row, those of other users too. Permissive policies are added up, so that stricter ones
    /// beside it have no effect.
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
    /// For policies of `SELECT` alone, which publish rows on purpose; for restrictive ones; for those that are only for roles of
    /// the application itself (`service_role` and others that are not `PUBLIC` and no roles of users); and where the migration
    /// drops or changes the policy. A condition counts as true that is a constant, or compares constants.
    ///
    /// ## Other linters
    ///
    /// splinter asks the same of a live database, and leaves out `SELECT` as well.
    "policy-always-true", Security, Warning,
    { sources: &["splinter/rls_policy_always_true", "migrationpilot/MP079"] }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    match context.ast {
        Ast::CreatePolicy(create) => created(context, reporter, create),
        Ast::AlterPolicy(alter) => {
            let path = context.session.settings.search_path();
            let Some(table) = context.after.find_relation(&alter.table, &path) else { return };
            let policies = &context.after.relation(table).policies;
            let Some(policy) = policies.iter().find(|policy| policy.name == alter.name.text) else { return };
            let written = [alter.using.as_ref(), alter.check.as_ref()].into_iter().flatten().find(|it| is_true(it));
            if let Some(written) = written
                && policy.permissive
                && policy.command != "select"
                && is_for_users(&policy.roles)
            {
                report(reporter, written.range, &alter.name.text, &alter.table.name.text, &policy.command);
            }
        }
        _ => {}
    }
}

fn created(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, create: &CreatePolicy) {
    if !create.permissive || create.command == "select" || !is_for_users(&create.roles) {
        return;
    }
    let Some(condition) = open_condition(create) else { return };
    let is_this = |name: &str, table: &str| *name == create.name.text && *table == create.table.name.text;
    let changed = rest(context).any(|ast| match ast {
        Ast::Drop(drop) if drop.kind == ObjectKind::Policy => drop.objects.iter().any(|object| {
            let table = object.on.as_ref().map_or("", |on| on.name.text.as_str());
            is_this(&object.name.name.text, table)
        }),
        Ast::AlterPolicy(alter) => is_this(&alter.name.text, &alter.table.name.text),
        _ => false,
    });
    if !changed {
        report(reporter, condition, &create.name.text, &create.table.name.text, &create.command);
    }
}

/// The condition that lets every row be written: WITH CHECK of an INSERT, USING of the others.
fn open_condition(create: &CreatePolicy) -> Option<TextRange> {
    let decisive = match create.command.as_str() {
        "insert" => create.check.as_ref(),
        // A policy without WITH CHECK uses USING for new rows.
        "delete" => create.using.as_ref(),
        _ if create.check.is_some() && !create.check.as_ref().is_some_and(is_true) => return None,
        _ => create.using.as_ref(),
    };
    decisive.filter(|condition| is_true(condition)).map(|condition| condition.range)
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

fn report(reporter: &mut Reporter<'_>, range: TextRange, policy: &str, table: &str, command: &str) {
    let what = match command {
        "insert" => "insert any row into",
        "update" => "change every row of",
        "delete" => "delete every row of",
        _ => "read and write every row of",
    };
    let message = format!("the policy `{policy}` lets everybody with the privilege {what} `{table}`");
    let help = "compare a column with the user, such as `author = auth.uid()` or `owner = current_user`; where everybody may \
        read, a policy FOR SELECT is enough";
    drop(reporter.report(range, message).help(help));
}
