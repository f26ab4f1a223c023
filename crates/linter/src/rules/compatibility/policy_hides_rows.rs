//! Policies that show or allow less than before.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{Earlier, MigrationContext, declare_rule};
use crate::rules::deployment::lasting::Lasting;
use crate::rules::text::{enumerate, join};
use pgvet_model::catalog::{Policy, Relation};
use pgvet_model::effect::{ChangeAction, ChangedObject, RelationName, Visibility};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::collections::BTreeSet;

declare_rule! {
    /// A migration that drops the last policy for a command on a table with row-level security, or adds a restrictive
    /// policy.
    ///
    /// ## Why it matters
    ///
    /// With row-level security a command reaches only the rows that a permissive policy allows. Without a permissive
    /// policy it reaches no rows. A restrictive policy hides further rows. A `SELECT`, `UPDATE` or `DELETE` of deployed
    /// code does not fail, but it no longer finds these rows. Only superusers, roles with `BYPASSRLS` and, unless
    /// row-level security is forced, the owner of the table see all rows.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE documents (id bigint PRIMARY KEY, owner text);
    /// ALTER TABLE documents ENABLE ROW LEVEL SECURITY;
    /// CREATE POLICY own ON documents USING (owner = current_user);
    /// -- migration:
    /// DROP POLICY own ON documents;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE documents (id bigint PRIMARY KEY, owner text);
    /// ALTER TABLE documents ENABLE ROW LEVEL SECURITY;
    /// CREATE POLICY own ON documents USING (owner = current_user);
    /// -- migration:
    /// BEGIN;
    /// DROP POLICY own ON documents;
    /// CREATE POLICY own ON documents USING (owner = session_user);
    /// COMMIT;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - tables that have no row-level security before the migration, or none after it. `row-level-security-without-policy`
    ///   reports a statement that enables row-level security without a policy.
    /// - tables that the same migration created
    /// - a table that has another permissive policy for the command and the role when the migration ends. pgvet does
    ///   not compare the conditions of the old and the new policy.
    ///
    /// ## Confidence
    ///
    /// If the table still has policies for other commands or roles, the confidence is `possible`, and the finding is
    /// shown only with `--confidence possible`.
    ///
    /// ## Other linters
    ///
    /// squawk reports every change of a policy, because of the lock that it takes. No other known linter compares the
    /// policies before and after the migration.
    "policy-hides-rows", Compatibility, Warning,
    {}
    migration = check,
}

/// The last change of the policies of a table.
struct Changed<'a> {
    table: &'a RelationName,
    run: &'a Earlier,
    range: TextRange,
    /// A policy that is new, and where it is created.
    created: Vec<(&'a SmolStr, TextRange)>,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    for changed in changed(context) {
        let oid = changed.table.oid;
        let (Some(before), Some(after)) = (context.before.get_relation(oid), context.after.get_relation(oid)) else {
            continue;
        };
        if !before.row_security || !after.row_security {
            continue;
        }
        report_lost(reporter, &changed, before, after);
        for (name, range) in &changed.created {
            let policy = after.policies.get(*name).filter(|policy| !policy.permissive);
            if let Some(policy) = policy.filter(|policy| !before.policies.contains(&policy.name)) {
                report_restrictive(reporter, changed.table, policy, before, changed.run.in_file(*range));
            }
        }
    }
}

/// The existing tables whose policies lasting statements of the migration change, in their order.
fn changed<'a>(context: &MigrationContext<'a>) -> Vec<Changed<'a>> {
    let mut found: Vec<Changed<'a>> = Vec::new();
    let mut at: FxHashMap<pgvet_model::catalog::Oid, usize> = FxHashMap::default();
    for run in Lasting::of(context.migration).statements.iter().flat_map(|statement| context.ran_by(statement)) {
        for change in &run.changes {
            let ChangedObject::Policy { table, name } = &change.object else { continue };
            if table.visibility != Visibility::Existing {
                continue;
            }
            let index = *at.entry(table.oid).or_insert(found.len());
            if index == found.len() {
                found.push(Changed { table, run, range: change.range, created: Vec::new() });
            }
            let entry = &mut found[index];
            if change.action == ChangeAction::Create {
                entry.created.push((name, change.range));
            } else {
                (entry.run, entry.range) = (run, change.range);
            }
        }
    }
    found
}

/// The commands that a policy is for.
fn commands(policy: &Policy) -> Vec<&str> {
    const ALL: [&str; 4] = ["select", "insert", "update", "delete"];
    if policy.command == "all" { ALL.to_vec() } else { vec![&policy.command] }
}

/// Whether a permissive policy is for the command and the role.
fn allows(table: &Relation, command: &str, role: &str) -> bool {
    table.policies.iter().any(|policy| {
        let is_for_role = policy.roles.is_empty() || policy.roles.iter().any(|own| own == role || own == "public");
        policy.permissive && is_for_role && commands(policy).contains(&command)
    })
}

fn report_lost(reporter: &mut Reporter<'_>, changed: &Changed<'_>, before: &Relation, after: &Relation) {
    let mut lost: Vec<(String, String)> = Vec::new();
    for policy in before.policies.iter().filter(|policy| policy.permissive) {
        let everybody = [SmolStr::new_static("public")];
        let roles = if policy.roles.is_empty() { &everybody[..] } else { &policy.roles };
        for role in roles {
            for command in commands(policy).into_iter().filter(|command| !allows(after, command, role)) {
                let entry = (command.to_uppercase(), role.to_string());
                if !lost.contains(&entry) {
                    lost.push(entry);
                }
            }
        }
    }
    if lost.is_empty() {
        return;
    }
    let name = &changed.table.name;
    let is_all = !after.policies.iter().any(|policy| policy.permissive);
    let message = if is_all {
        format!("`{name}` has no policy left: only its owner and roles that bypass row-level security find rows in it")
    } else {
        partly_lost(name, &lost)
    };
    let help = "in the same transaction, create a policy for these roles and commands; or first deploy code that does not \
                access these rows as one of these roles";
    let mut finding = reporter.report(changed.run.in_file(changed.range), message).relation(changed.table).help(help);
    if !is_all {
        finding = finding.assuming(Assumption::UsedThroughPolicy { table: name.clone() });
    }
    finding.emit();
}

/// What happens to commands for which a role has no policy any more, while other policies remain.
fn partly_lost(table: &str, lost: &[(String, String)]) -> String {
    let is_lost = |command: &&str| lost.iter().any(|(other, _)| other == command);
    let readers: Vec<String> =
        ["SELECT", "UPDATE", "DELETE"].into_iter().filter(|command| is_lost(command)).map(str::to_owned).collect();
    let roles: BTreeSet<&str> = lost.iter().map(|(_, role)| role.as_str()).collect();
    let who = if roles.contains("public") { "some roles".to_owned() } else { enumerate(roles) };
    let find = if readers.len() == 1 { "finds" } else { "find" };
    let what = match (readers.is_empty(), is_lost(&"INSERT")) {
        (false, false) => format!("{} by {who} {find} no rows of `{table}`", join(&readers)),
        (false, true) => format!("{} by {who} {find} no rows of `{table}`, and INSERT fails", join(&readers)),
        (true, _) => format!("INSERT by {who} into `{table}` fails"),
    };
    format!("{what}: no policy allows this any more")
}

fn report_restrictive(
    reporter: &mut Reporter<'_>,
    table: &RelationName,
    policy: &Policy,
    before: &Relation,
    range: TextRange,
) {
    if !before.policies.iter().any(|old| old.permissive) {
        return;
    }
    let name = &table.name;
    let message = format!(
        "the restrictive policy `{}` hides rows of `{name}` that other policies show to deployed code",
        policy.name
    );
    let help = "first deploy code that satisfies the condition of the policy, for example by setting the value that \
                the policy reads with current_setting()";
    reporter.report(range, message).relation(table).help(help).emit();
}
