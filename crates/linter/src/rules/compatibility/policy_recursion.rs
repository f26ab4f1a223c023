//! Policies because of which queries of their tables fail.

mod circle;

use crate::assumption::Assumption;
use crate::cause::Cause;
use crate::confidence::Confidence;
use crate::report::Reporter;
use crate::rule::{Earlier, MigrationContext, declare_rule};
use crate::rules::text::{either, enumerate, identifier, join, qualified, signature_of};
use circle::{Circle, Circles, Command, Step, Way};
use pgvet_model::catalog::{Catalog, ConditionReads, Oid, Policy, Relation};
use pgvet_model::effect::{ChangeAction, ChangedObject, ObjectChange, RelationName};
use pgvet_model::routine::{Routine, Routines};
use pgvet_model::version::PgVersion;
use pgvet_syntax::ast::Ast;
use pgvet_syntax::source::TextRange;
use rustc_hash::{FxHashSet, FxHasher};
use smol_str::SmolStr;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

declare_rule! {
    /// Row-level security policies that read their own table, directly or through the policies of other tables.
    ///
    /// ## Why it matters
    ///
    /// If a policy reads a table with row-level security, PostgreSQL applies the policies of that table, too. If these
    /// read the first table again, every query fails with `infinite recursion detected in policy for relation`, even if
    /// the tables are empty. Nothing fails when the policies are created, and queries of the owner still work. If the
    /// policy calls a function that reads the table, queries fail with `stack depth limit exceeded` as soon as PostgreSQL
    /// calls the function for a row.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE members (team bigint, person text);
    /// ALTER TABLE members ENABLE ROW LEVEL SECURITY;
    /// CREATE POLICY same_team ON members
    ///     USING (team IN (SELECT own.team FROM members own WHERE own.person = current_user));
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE members (team bigint, person text);
    /// ALTER TABLE members ENABLE ROW LEVEL SECURITY;
    /// CREATE FUNCTION own_teams() RETURNS SETOF bigint LANGUAGE sql STABLE SECURITY DEFINER
    ///     SET search_path = '' AS $$
    ///         SELECT own.team FROM public.members own WHERE own.person = session_user
    ///     $$;
    /// CREATE POLICY same_team ON members USING (team IN (SELECT own_teams()));
    /// ```
    ///
    /// A `SECURITY DEFINER` function runs as its owner, to whom the policies do not apply. In such a function,
    /// `current_user` is the owner: use `session_user`, a parameter, or a setting such as the one that `auth.uid()`
    /// reads.
    ///
    /// ## When it is not reported
    ///
    /// - a policy for `INSERT`, `UPDATE` or `DELETE` that reads its own table, if no policy for `SELECT` on that table
    ///   contains a subquery
    /// - a table that is read without row-level security, or through a `SECURITY DEFINER` function
    /// - a view that reads the tables as its owner: without `security_invoker`, or before PostgreSQL 15
    /// - policies that apply only to the owner of the table, unless row-level security is forced
    /// - restrictive policies for a command for which there is no permissive policy
    /// - policies that a later statement of the same migration repairs or drops
    /// - queries that failed in the same way before the migration, unless it creates or alters a policy of the circle
    ///
    /// ## Confidence
    ///
    /// Recursion through a function is `likely`, because PostgreSQL must call the function for at least one row. If
    /// another part of the condition or another policy decides whether it does, the confidence is `possible`, and the
    /// finding is shown only with `--confidence possible`. Only functions without branches are examined.
    ///
    /// ## Other linters
    ///
    /// No other known linter reports this.
    "policy-recursion", Compatibility, Error,
    { confidence: Confidence::Certain }
    migration = check,
}

/// A command that fails.
struct Broken<'c> {
    table: &'c Relation,
    command: Command,
    /// `None`: for every role to which policies apply.
    role: Option<&'c SmolStr>,
    circle: Circle<'c>,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    if !context.ran.iter().any(may_close_circle) || context.after.row_secured().next().is_none() {
        return;
    }
    let routines = |catalog| Routines::new(context.migrations, catalog, &context.settings.functions, context.reader);
    let (before, after) = (routines(context.before), routines(context.after));
    let (before, after) = (|oid| before.function(oid), |oid| after.function(oid));
    let found = find(context, &before, &after);
    for group in groups(found) {
        report(context, reporter, &group);
    }
}

/// Commands that fail for the same reason and the same roles, which are one finding.
struct Group<'c> {
    /// The tables of the circle.
    tables: BTreeSet<Oid>,
    by_function: bool,
    /// `None`: all to which policies apply.
    roles: Option<BTreeSet<&'c SmolStr>>,
    broken: Vec<Broken<'c>>,
}

impl Group<'_> {
    /// All commands that fail for one circle have one remedy, whichever migration adds them.
    fn cause(&self, database: u32) -> Cause {
        let mut hasher = FxHasher::default();
        (&self.tables, self.by_function).hash(&mut hasher);
        Cause::Policies { circle: hasher.finish(), database }
    }

    fn commands(&self) -> BTreeSet<(Oid, Command)> {
        self.broken.iter().map(|broken| (broken.table.oid, broken.command)).collect()
    }
}

fn groups(found: Vec<Broken<'_>>) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for broken in found {
        let (tables, by_function) = (broken.circle.tables(), broken.circle.function().is_some());
        let roles = broken.role.map(|role| BTreeSet::from([role]));
        let is_same =
            |group: &&mut Group<'_>| group.tables == tables && group.by_function == by_function && group.roles == roles;
        match groups.iter_mut().find(is_same) {
            Some(group) => group.broken.push(broken),
            None => groups.push(Group { tables, by_function, roles, broken: vec![broken] }),
        }
    }
    let mut merged: Vec<Group<'_>> = Vec::new();
    for group in groups {
        let is_same = |other: &&mut Group<'_>| {
            let same_circle = other.tables == group.tables && other.by_function == group.by_function;
            same_circle && other.roles.is_some() == group.roles.is_some() && other.commands() == group.commands()
        };
        match merged.iter_mut().find(is_same) {
            Some(other) => other.roles.iter_mut().for_each(|roles| roles.extend(group.roles.iter().flatten())),
            None => merged.push(group),
        }
    }
    merged
}

/// Whether the statement can make policies read each other.
fn may_close_circle(run: &Earlier) -> bool {
    let is_fit = |change: &ObjectChange| match change.object {
        ChangedObject::Policy { .. } => change.action != ChangeAction::Drop,
        ChangedObject::RowSecurity { .. } | ChangedObject::Function { .. } => true,
        _ => false,
    };
    run.changes.iter().any(is_fit)
        || matches!(&*run.ast, Ast::CreateView(_) | Ast::AlterTable(_) | Ast::AlterFunction(_))
}

/// The commands that fail since the migration.
fn find<'c>(
    context: &MigrationContext<'c>,
    before: &'c dyn Fn(Oid) -> Option<Rc<Routine>>,
    after: &'c dyn Fn(Oid) -> Option<Rc<Routine>>,
) -> Vec<Broken<'c>> {
    let has_invoker_views = context.settings.versions.from >= PgVersion(15);
    let mut found: Vec<Broken<'c>> = Vec::new();
    let mut known: FxHashSet<(Oid, Command)> = FxHashSet::default();
    for role in roles(context.after) {
        // Other roles have further policies, and so fail in the same way at least.
        let mut known_of_role = known.clone();
        let circles = |catalog, routine| Circles::new(catalog, routine, role, has_invoker_views);
        for (old, new) in [
            (circles(context.before, before), circles(context.after, after)),
            (circles(context.before, before).with_functions(), circles(context.after, after).with_functions()),
        ] {
            let mut broken = Vec::new();
            for (table, command) in
                commands(context.after).filter(|(table, command)| !known_of_role.contains(&(table.oid, *command)))
            {
                let Some(circle) = new.of(table, command) else { continue };
                let was_broken =
                    || context.before.get_relation(table.oid).is_some_and(|table| old.of(table, command).is_some());
                if changed(context, &circle).is_some() || !was_broken() {
                    broken.push(Broken { table, command, role, circle });
                }
            }
            known_of_role.extend(broken.iter().map(|broken| (broken.table.oid, broken.command)));
            found.extend(broken);
        }
        if role.is_none() {
            known = known_of_role;
        }
    }
    found
}

/// The commands on tables with row-level security whose policies read something.
fn commands(catalog: &Catalog) -> impl Iterator<Item = (&Relation, Command)> {
    let reads = |reads: &ConditionReads| !reads.relations.is_empty() || !reads.calls.is_empty();
    let is_fit = move |policy: &Arc<Policy>| reads(&policy.using_reads) || reads(&policy.check_reads);
    let tables = catalog.row_secured().filter(move |table| table.policies.iter().any(is_fit));
    tables.flat_map(|table| Command::ALL.into_iter().map(move |command| (table, command)))
}

/// Roles that policies name, after a role that none of them names.
fn roles(catalog: &Catalog) -> Vec<Option<&SmolStr>> {
    let policies = catalog.row_secured().flat_map(|table| &table.policies);
    let mut roles: Vec<Option<&SmolStr>> = vec![None];
    for role in policies.flat_map(|policy| &policy.roles).filter(|role| *role != "public" && !bypasses(role)) {
        if !roles.contains(&Some(role)) {
            roles.push(Some(role));
        }
    }
    roles
}

/// Whether no policy applies to the role: Supabase creates it with BYPASSRLS.
///
/// Source: Supabase documentation, "Postgres Roles".
pub(super) fn bypasses(role: &str) -> bool {
    role == "service_role"
}

/// The statement that creates or alters a policy on the way to the circle last, or enables it, with the policy.
fn changed<'a, 'c>(
    context: &MigrationContext<'a>,
    circle: &'c Circle<'c>,
) -> Option<(&'a Earlier, &'a ObjectChange, &'c Step<'c>)> {
    let fits = |change: &ObjectChange, step: &Step<'_>| match &change.object {
        ChangedObject::Policy { table, name } => {
            change.action != ChangeAction::Drop && step.table.oid == table.oid && step.policy.name == *name
        }
        ChangedObject::RowSecurity { table } => change.action == ChangeAction::Enable && table.oid == step.table.oid,
        ChangedObject::Function { oid, .. } => matches!(step.way, Way::Function { function, .. } if function == *oid),
        _ => false,
    };
    let step_of = |change: &ObjectChange| circle.steps.iter().find(|step| fits(change, step));
    changes(context).find_map(|(run, change)| Some((run, change, step_of(change)?)))
}

/// The changes of the migration, the last first.
fn changes<'a>(context: &MigrationContext<'a>) -> impl Iterator<Item = (&'a Earlier, &'a ObjectChange)> {
    let runs = context.ran.iter().rev().filter(|run| !run.refused);
    runs.flat_map(|run| run.changes.iter().rev().map(move |change| (run, change)))
}

/// Where the migration closes a circle.
struct Place<'c> {
    range: TextRange,
    /// The policy to change.
    step: &'c Step<'c>,
}

fn place<'c>(context: &MigrationContext<'_>, circle: &'c Circle<'c>) -> Option<Place<'c>> {
    if let Some((run, change, step)) = changed(context, circle) {
        return Some(Place { range: run.in_file(change.range), step });
    }
    // A view that now uses the privileges of the role that queries it, or a function in a function.
    let mut last = context.ran.iter().rev().filter(|run| !run.refused && may_close_circle(run));
    last.next().map(|run| Place { range: run.range, step: &circle.steps[0] })
}

fn report(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>, group: &Group<'_>) {
    let Group { tables, broken, roles, .. } = group;
    let of_circle = |broken: &&Broken<'_>| tables.contains(&broken.table.oid);
    let Some(first) = broken.iter().find(of_circle).or_else(|| broken.first()) else { return };
    let Some(place) = place(context, &first.circle) else { return };
    let failing: Vec<&Broken<'_>> = broken.iter().filter(of_circle).collect();
    let leading: Vec<&Broken<'_>> = broken.iter().filter(|broken| !of_circle(broken)).collect();
    let (failing, leading) = if failing.is_empty() { (leading, Vec::new()) } else { (failing, leading) };
    let (subject, fail) = subject(&failing, &leading);
    let roles = failing_roles(roles.as_ref());
    let function = first
        .circle
        .function()
        .and_then(|(oid, conditional)| Some((context.after.get_function(oid)?.display_name(), conditional)));
    let error = match &function {
        None => "\"infinite recursion detected in policy for relation\"".to_owned(),
        Some((name, _)) => format!("\"stack depth limit exceeded\" when PostgreSQL calls `{name}` for a row"),
    };
    let message = format!("{subject} {fail} for {roles} with {error}, because {}", steps(context.after, &first.circle));
    let assumption = function.map(|(function, conditional)| {
        let function = function.into();
        if conditional { Assumption::CallsForRowThough { function } } else { Assumption::CallsForRow { function } }
    });
    let table = RelationName::existing(place.step.table);
    let help = help(context, place.step);
    let cause = group.cause(context.migration.database);
    reporter.report(place.range, message).relation(&table).assuming(assumption).caused_by(cause).help(help).emit();
}

/// The commands that fail, by tables, and the verb.
fn subject(failing: &[&Broken<'_>], leading: &[&Broken<'_>]) -> (String, &'static str) {
    let mut by_table: Vec<(&Relation, BTreeSet<Command>)> = Vec::new();
    for broken in failing {
        match by_table.iter_mut().find(|(table, _)| table.oid == broken.table.oid) {
            Some((_, commands)) => _ = commands.insert(broken.command),
            None => by_table.push((broken.table, BTreeSet::from([broken.command]))),
        }
    }
    let mut by_commands: Vec<(BTreeSet<Command>, Vec<&str>)> = Vec::new();
    for (table, commands) in by_table {
        match by_commands.iter_mut().find(|(known, _)| *known == commands) {
            Some((_, tables)) => tables.push(&table.name),
            None => by_commands.push((commands, vec![&table.name])),
        }
    }
    let mut parts: Vec<String> = by_commands.iter().map(|(commands, tables)| commands_on(commands, tables)).collect();
    if !leading.is_empty() {
        let tables: BTreeSet<&str> = leading.iter().map(|broken| broken.table.name.as_str()).collect();
        parts.push(format!("queries of {}", enumerate(tables)));
    }
    let is_one = parts.len() == 1 && by_commands.iter().all(|(commands, _)| commands.len() == 1 && !is_read(commands));
    (join(&parts), if is_one { "fails" } else { "fail" })
}

fn is_read(commands: &BTreeSet<Command>) -> bool {
    commands.contains(&Command::Select)
}

/// Commands that read columns of a table also fail if its rows cannot be read.
fn commands_on(commands: &BTreeSet<Command>, tables: &[&str]) -> String {
    let names: Vec<String> = commands.iter().map(|command| command.keyword().to_owned()).collect();
    let (names, tables) = (join(&names), enumerate(tables.iter().copied()));
    if is_read(commands) && commands.len() < Command::ALL.len() {
        format!("{names} on {tables} (and writes with WHERE or RETURNING)")
    } else {
        format!("{names} on {tables}")
    }
}

fn failing_roles(roles: Option<&BTreeSet<&SmolStr>>) -> String {
    match roles {
        None => "every role to which the policies apply".to_owned(),
        Some(roles) => {
            let roles: Vec<String> = roles.iter().map(|role| format!("`{role}`")).collect();
            format!("members of {}", either(&roles))
        }
    }
}

/// The policies that read each other.
fn steps(catalog: &Catalog, circle: &Circle<'_>) -> String {
    let step = |step: &Step<'_>| {
        let (policy, table, read) = (&step.policy.name, &step.table.name, &step.read.name);
        let itself = if step.table.oid == step.read.oid { " itself" } else { "" };
        let function = match step.way {
            Way::Subquery => None,
            Way::Function { function, .. } => catalog.get_function(function),
        };
        match function {
            None => format!("policy `{policy}` of `{table}` reads `{read}`{itself}"),
            Some(function) => {
                let function = function.display_name();
                format!(
                    "policy `{policy}` of `{table}` calls `{function}`, which reads `{read}` with the privileges of its caller"
                )
            }
        }
    };
    let mut parts: Vec<String> = circle.steps.iter().map(step).collect();
    if let Some(table) = circle.readable_without_subquery {
        parts.push(format!("a policy for SELECT on `{}` contains a subquery", table.name));
    }
    join(&parts)
}

fn help(context: &MigrationContext<'_>, step: &Step<'_>) -> String {
    let (policy, read) = (&step.policy.name, qualified(&step.read.schema, &step.read.name));
    let owner = if step.read.force_row_security {
        format!("its owner must have BYPASSRLS, because row-level security of `{read}` is forced")
    } else {
        format!("its owner must be the owner of `{read}` or have BYPASSRLS")
    };
    let user = "In such a function, current_user is the owner of the function";
    let function = match step.way {
        Way::Subquery => None,
        Way::Function { function, .. } => context.after.get_function(function),
    };
    match function {
        None => format!(
            "move the query of `{read}` from policy `{policy}` into a function with SECURITY DEFINER and a fixed \
             search_path, and call that function in the policy; {owner}, so that the policies of `{read}` do not apply. \
             {user}: compare with session_user, auth.uid() or a parameter instead"
        ),
        Some(function) => {
            let has_path = function.settings.iter().any(|(name, _)| name == "search_path");
            let path = if has_path {
                String::new()
            } else {
                format!(" SET search_path = {}, pg_temp", identifier(&function.schema))
            };
            let signature = signature_of(context.after, context.settings, function);
            format!(
                "run the function with the privileges of its owner; {owner}, so that the policies of `{read}` do not \
                 apply. {user}:\n    ALTER FUNCTION {signature} SECURITY DEFINER{path};"
            )
        }
    }
}
