//! Policies that let everybody write everything.

use super::api_roles::is_api_role;
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{any_later, is_about, means};
use pgvet_model::catalog::{Catalog, PUBLIC, Policy, Privilege, PrivilegeKind, Relation};
use pgvet_model::effect::{ChangeAction, ChangedObject, RelationName};
use pgvet_syntax::ast::{Ast, BooleanTest, Expr, ExprKind, Literal, ObjectKind, OperatorForm, Part, QueryBody};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

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
    /// - `WITH CHECK (true)` of a policy for `UPDATE` without `USING`, unless another policy selects rows that may be
    ///   changed
    ///
    /// `USING` selects the rows that may be read, changed or deleted, and `WITH CHECK` limits the new rows of `INSERT` and
    /// `UPDATE`. pgvet judges both together. `USING (true)` with a limiting `WITH CHECK` lets users delete any row, if
    /// the policy is for all commands, and take over any row: with `WITH CHECK (author = auth.uid())`, an `UPDATE` that
    /// also sets `author` succeeds for the rows of others. It recognizes conditions such as `true` and `1 = 1` as always
    /// true.
    ///
    /// ## Confidence
    ///
    /// In the following cases, the confidence is `possible`, and the finding is shown only with
    /// `--confidence possible`:
    ///
    /// - A restrictive policy for the same command and role also limits the rows.
    /// - The policy only lets users insert any row, and no column of the table can say which user a row belongs to: no foreign
    ///   key leads to a table of users, no default is the current user, and no policy of the project compares a column of
    ///   this name with the current user. Public forms have such policies on purpose.
    /// - `GRANT` gives the roles of the policy the privilege only on some columns.
    /// - `WITH CHECK` depends only on the user, such as `is_editor()`, and not on the new row. Users for whom it is false
    ///   cannot change rows.
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
    let Some(relation) = context.after.get_relation(table.oid) else { return };
    let Some(open) = open(&policy, relation).filter(|_| !is_changed_later(context, name, table)) else { return };
    // ALTER POLICY may leave the condition as it was.
    let old = policy_in(context.before);
    let is_written = |condition: &Expr| {
        let mut kept = old.iter().flat_map(|old| [&old.using, &old.check]).flatten();
        let is_kept = kept.any(|known| std::ptr::eq(std::sync::Arc::as_ptr(known), condition));
        context.statement.range.contains(condition.range) && !is_kept
    };
    let range = if is_written(open.condition) { open.condition.range } else { name_range };
    let users = users(&policy.roles);
    let has_owners = context.after.may_have_owners(relation);
    let Open { privilege, what, .. } = open;
    let message = format!("with policy `{}`, {users} with {privilege} on `{}` can {what}", policy.name, table.name);
    let help = match open.limit.filter(|limit| is_written(limit)) {
        Some(limit) => format!(
            "USING selects the rows that may be changed or deleted. Write the condition of WITH CHECK there, too: \
             USING ({})",
            one_line(context.text(limit.range)),
        ),
        None if !has_owners => help_without_owners(&policy, table, open.commands == INSERT),
        None => "in USING and WITH CHECK, compare a column with the current user, for example `owner = current_user`, \
                 or `author = auth.uid()` in Supabase. If everybody may only read the rows, make the policy FOR SELECT"
            .to_owned(),
    };
    let mut finding = reporter.report(range, message).help(help);
    if !has_owners && open.commands == INSERT {
        finding = finding.assuming(Assumption::OneRoleInserts { table: table.name.clone() });
    }
    if writes_only_columns(context, table, &policy, open.commands) {
        finding = finding.assuming(Assumption::WritesOtherColumns { table: table.name.clone() });
    }
    if open.by_user {
        finding = finding.assuming(Assumption::HoldsForUsers { policy: policy.name.clone() });
    }
    if is_restricted(context, &policy, relation, table) {
        finding = finding.assuming(Assumption::RestrictiveAllows { table: table.name.clone() });
    }
    finding.emit();
}

/// The commands that a policy opens.
const INSERT: &[&str] = &["insert"];
const UPDATE: &[&str] = &["update"];
const DELETE: &[&str] = &["delete"];
const WRITES: &[&str] = &["insert", "update", "delete"];

/// The next step for a table without a column that says which user a row belongs to.
fn help_without_owners(policy: &Policy, table: &RelationName, inserts: bool) -> String {
    let (policy, table) = (&policy.name, &table.name);
    if inserts {
        return format!(
            "no column of `{table}` can be compared with the current user. If only some roles insert rows, name them in \
             the TO clause of policy `{policy}`, and GRANT INSERT on the table only to them. To accept rows from everybody, \
             GRANT INSERT only on the columns that they may fill"
        );
    }
    format!(
        "no column of `{table}` can be compared with the current user. Name the roles that may change rows in the TO clause \
         of policy `{policy}`, and GRANT the privileges on the table only to them, or add a column for the owner of each row. \
         If everybody may only read the rows, make the policy FOR SELECT"
    )
}

/// Whether GRANT gives the roles of a policy the privilege for each of the commands only on some columns, as far as the
/// migrations show. There is no DELETE of columns.
fn writes_only_columns(context: &RuleContext<'_>, table: &RelationName, policy: &Policy, commands: &[&str]) -> bool {
    let is_public = |role: &SmolStr| role == PUBLIC;
    let is_of_policy = |role: &SmolStr| {
        policy.roles.is_empty() || is_public(role) || policy.roles.iter().any(|own| is_public(own) || own == role)
    };
    let is_command = |privilege: &str| commands.contains(&privilege);
    let is_given = |whole: bool| {
        let of_role = |given: &&Arc<Privilege>| is_of_policy(&given.grantee) && given.column.is_none() == whole;
        let mut given = context.after.privileges(table.oid).filter(of_role);
        let is_granted_here = |ast: &Ast| {
            let Ast::Grant(grant) = ast else { return false };
            let names = || PrivilegeKind::Table.named(&grant.privileges);
            grant.grant
                && grant.grantees.iter().any(is_of_policy)
                && is_about(context, grant, table)
                && names().iter().any(|(name, column)| is_command(name) && column.is_none() == whole)
        };
        given.any(|given| is_command(&given.privilege)) || any_later(context, is_granted_here)
    };
    is_given(false) && !is_given(true)
}

/// A text without line breaks.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a restrictive policy also applies to the command, when the migration ends.
fn is_restricted(context: &RuleContext<'_>, policy: &Policy, relation: &Relation, table: &RelationName) -> bool {
    let is_for = |command: &str, roles: &[SmolStr]| {
        let same_command = command == "all" || policy.command == "all" || command == policy.command;
        let is_public = |roles: &[SmolStr]| roles.is_empty() || roles.iter().any(|role| role == "public");
        same_command && (is_public(roles) || roles.iter().any(|role| policy.roles.contains(role)))
    };
    let mut others = relation.policies.iter();
    others.any(|other| !other.permissive && is_for(&other.command, &other.roles))
        || any_later(context, |ast| match ast {
            Ast::CreatePolicy(create) => {
                !create.permissive && is_for(&create.command, &create.roles) && means(context, &create.table, table)
            }
            _ => false,
        })
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

/// What a policy lets users do.
struct Open<'p> {
    /// The condition that is always true.
    condition: &'p Expr,
    privilege: &'static str,
    what: &'static str,
    /// A WITH CHECK that is not always true.
    limit: Option<&'p Expr>,
    /// Whether it depends on the user alone.
    by_user: bool,
    /// The commands for which the condition is always true.
    commands: &'static [&'static str],
}

/// What a policy opens by a condition that is always true. Without WITH CHECK, new rows have to satisfy USING.
///
/// Source: PostgreSQL 18 documentation, CREATE POLICY, "Policies Applied by Command Type".
fn open<'p>(policy: &'p Policy, relation: &Relation) -> Option<Open<'p>> {
    let (using, check) = (policy.using.as_deref(), policy.check.as_deref());
    let of = |commands, condition, privilege, what| Open {
        condition,
        privilege,
        what,
        limit: None,
        by_user: false,
        commands,
    };
    let always = |condition: Option<&'p Expr>| condition.filter(|condition| is_true(condition));
    let limit = check.filter(|check| !is_true(check));
    match policy.command.as_str() {
        "insert" => Some(of(INSERT, always(check)?, "the INSERT privilege", "insert any row")),
        "delete" => Some(of(DELETE, always(using)?, "the DELETE privilege", "delete all its rows")),
        "update" => match (always(using), limit) {
            (Some(condition), None) => Some(of(UPDATE, condition, "the UPDATE privilege", "change all its rows")),
            (Some(_), Some(limit)) if is_literally(limit, false) => None,
            (Some(condition), Some(limit)) => {
                let by_user = !depends_on_row(limit);
                let what = if by_user {
                    "change all its rows"
                } else {
                    "change any of its rows to one that satisfies WITH CHECK"
                };
                Some(Open { limit: Some(limit), by_user, ..of(UPDATE, condition, "the UPDATE privilege", what) })
            }
            (None, _) => {
                let condition = always(check).filter(|_| using.is_some() || lets_update(relation))?;
                Some(of(UPDATE, condition, "the UPDATE privilege", "write any values into the rows that it can change"))
            }
        },
        _ => match (always(using), limit) {
            (Some(condition), None) => Some(of(WRITES, condition, "privileges", "read and write all its rows")),
            (Some(condition), Some(_)) => {
                Some(Open { limit, ..of(DELETE, condition, "privileges", "read and delete all its rows") })
            }
            (None, _) => Some(of(INSERT, always(check)?, "the INSERT privilege", "insert any row")),
        },
    }
}

/// Whether a policy of the table selects rows that may be changed.
fn lets_update(relation: &Relation) -> bool {
    let mut policies = relation.policies.iter().filter(|policy| policy.permissive && policy.using.is_some());
    policies.any(|policy| matches!(policy.command.as_str(), "all" | "update"))
}

/// Whether a condition may read columns of the row.
fn depends_on_row(condition: &Expr) -> bool {
    let mut found = false;
    condition.visit(&mut |part| {
        found |= match part {
            Part::Expr(part) => matches!(part.kind, ExprKind::Column(_) | ExprKind::Star(_)),
            Part::Query(query) => matches!(&query.body, QueryBody::Select(select) if !select.from.is_empty()),
            _ => false,
        };
    });
    found
}

/// PUBLIC, or a role of users.
fn is_for_users(roles: &[SmolStr]) -> bool {
    roles.is_empty() || roles.iter().any(|role| role == "public" || is_api_role(role))
}

fn is_true(condition: &Expr) -> bool {
    match &condition.kind {
        ExprKind::Literal(Literal::Boolean(_)) => is_literally(condition, true),
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

fn is_literally(condition: &Expr, value: bool) -> bool {
    condition.kind == ExprKind::Literal(Literal::Boolean(value))
}
