//! REVOKE of privileges that the role has in another way.

use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::rules::deployment::lasting::Lasting;
use crate::rules::text::{enumerate, join, qualified, signature_of};
use pgvet_model::catalog::{
    Function, NamedKind, NamedObject, Oid, PUBLIC, Privilege, PrivilegeKind, Relation, TypeDef,
};
use pgvet_model::effect::{ChangeAction, ChangedObject};
use pgvet_model::version::PgVersion;
use pgvet_syntax::ast::{FutureObjects, Grant, ObjectKind};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;
use std::sync::Arc;

declare_rule! {
    /// A `REVOKE` from a role that keeps the privilege through `PUBLIC` or a role of which it is a member.
    ///
    /// ## Why it matters
    ///
    /// `REVOKE` removes only what was granted to the role itself. Every role also has the privileges of `PUBLIC`, and
    /// PostgreSQL grants `EXECUTE` on every new function to `PUBLIC`. A function stays callable for the role from which
    /// `EXECUTE` was revoked, and PostgreSQL gives no warning.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE FUNCTION pay_out(account bigint) RETURNS void LANGUAGE sql SECURITY DEFINER
    ///     SET search_path = '' BEGIN ATOMIC SELECT 1; END;
    /// REVOKE EXECUTE ON FUNCTION pay_out(bigint) FROM anon;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE FUNCTION pay_out(account bigint) RETURNS void LANGUAGE sql SECURITY DEFINER
    ///     SET search_path = '' BEGIN ATOMIC SELECT 1; END;
    /// REVOKE EXECUTE ON FUNCTION pay_out(bigint) FROM PUBLIC, anon;
    /// GRANT EXECUTE ON FUNCTION pay_out(bigint) TO service;
    /// ```
    ///
    /// The same is reported for `ALTER DEFAULT PRIVILEGES IN SCHEMA ... REVOKE ... FROM PUBLIC`: default privileges for
    /// one schema can only add privileges. Revoke without `IN SCHEMA`.
    ///
    /// ## When it is not reported
    ///
    /// - a privilege that the same migration also revokes from `PUBLIC`
    /// - functions that no migration creates
    /// - functions that return `trigger` or `event_trigger`, which nobody can call
    /// - a role that has the privilege itself when the migration ends
    /// - a role that keeps the privilege as a member of another role, if the migration revokes one that the role had
    ///   itself
    ///
    /// ## Other linters
    ///
    /// No other known linter reports this.
    "revoke-without-effect", Security, Warning,
    {}
    migration = check,
}

/// Why a role keeps a privilege.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    /// PostgreSQL gives the privilege to PUBLIC by default.
    PublicByDefault,
    /// A migration granted it to PUBLIC.
    Public,
    /// The role is a member of another one.
    Member(SmolStr),
}

/// A privilege that a role keeps.
struct Kept {
    role: SmolStr,
    privilege: SmolStr,
    object: Object,
    reason: Reason,
}

/// An object, for messages and as SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Object {
    shown: String,
    sql: String,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let lasting = Lasting::of(context.migration).statements;
    for run in lasting.iter().flat_map(|statement| context.ran_by(statement)).filter(|run| !run.refused) {
        for change in run.changes.iter().filter(|change| change.action == ChangeAction::Revoke) {
            let ChangedObject::Privileges { grant, future, on } = &change.object else { continue };
            if grant.grant_option {
                continue;
            }
            let range = run.in_file(change.range);
            match future {
                Some(future) => check_defaults(context, reporter, range, grant, future),
                None => report(reporter, range, grant.kind, &kept(context, grant, on)),
            }
        }
    }
}

/// What the roles of a REVOKE keep.
fn kept(context: &MigrationContext<'_>, grant: &Grant, on: &[Oid]) -> Vec<Kept> {
    let roles = || grant.grantees.iter().filter(|role| *role != PUBLIC);
    match (PrivilegeKind::of(grant.kind), NamedKind::of(grant.kind)) {
        (Some(kind), _) => {
            let objects = objects(context, kind, grant, on);
            roles().flat_map(|role| kept_on(context, kind, grant, role, &objects)).collect()
        }
        (None, Some(kind)) => {
            let objects = named_objects(context, kind, grant, on);
            roles().flat_map(|role| kept_on_named(context, kind, grant, role, &objects)).collect()
        }
        (None, None) => Vec::new(),
    }
}

fn kept_on(
    context: &MigrationContext<'_>,
    kind: PrivilegeKind,
    grant: &Grant,
    role: &SmolStr,
    objects: &[(Oid, Object)],
) -> Vec<Kept> {
    let mut kept = Vec::new();
    for (privilege, column) in kind.named(&grant.privileges) {
        // REVOKE on columns leaves a privilege on the table, which PostgreSQL's documentation describes.
        if column.is_some() {
            continue;
        }
        let of = |grantee: &SmolStr| Privilege { grantee: grantee.clone(), privilege: privilege.clone(), column: None };
        let had_itself = |oid: Oid| context.before.privileges(oid).any(|given| **given == of(role));
        for (oid, object) in objects {
            let has = |role: &SmolStr| context.after.privileges(*oid).any(|given| **given == of(role));
            if has(role) || !context.after.has_privilege(kind, *oid, &of(role)) {
                continue;
            }
            let mut others = context.after.roles_of(role).into_iter().filter(|other| other != role && other != PUBLIC);
            let reason = if has(&SmolStr::new_static(PUBLIC)) {
                Reason::Public
            } else if let Some(other) = others.find(|other| has(other)) {
                if had_itself(*oid) {
                    continue;
                }
                Reason::Member(other)
            } else {
                Reason::PublicByDefault
            };
            kept.push(Kept { role: role.clone(), privilege: privilege.clone(), object: object.clone(), reason });
        }
    }
    kept
}

fn kept_on_named(
    context: &MigrationContext<'_>,
    kind: NamedKind,
    grant: &Grant,
    role: &SmolStr,
    objects: &[NamedObject],
) -> Vec<Kept> {
    // PUBLIC lost CREATE on the schema `public` with PostgreSQL 15.
    let since_15 = context.settings.versions.to >= PgVersion(15);
    let mut kept = Vec::new();
    for object in objects {
        let NamedObject { schema, name, .. } = object;
        let sql = qualified(schema.as_deref().unwrap_or("public"), name);
        for (privilege, _) in kind.named(&grant.privileges) {
            let wanted =
                |grantee: &str| Privilege { grantee: grantee.into(), privilege: privilege.clone(), column: None };
            let has = |grantee: &str| context.after.has_privilege_on_named(object, &wanted(grantee), since_15);
            if has(PUBLIC) && !context.after.is_granted_on_named(object, &wanted(role)) {
                let noun = noun(grant.kind);
                let object = Object { shown: format!("{noun}`{name}`"), sql: sql.clone() };
                kept.push(Kept { role: role.clone(), privilege: privilege.clone(), object, reason: Reason::Public });
            }
        }
    }
    kept
}

/// The schemas, languages and databases of a REVOKE, or its types that exist at the end of the migration.
fn named_objects(context: &MigrationContext<'_>, kind: NamedKind, grant: &Grant, on: &[Oid]) -> Vec<NamedObject> {
    if kind == NamedKind::Type {
        let types = on.iter().filter_map(|oid| context.after.get_type(*oid));
        let object =
            |found: &Arc<TypeDef>| NamedObject { kind, schema: Some(found.schema.clone()), name: found.name.clone() };
        return types.map(object).collect();
    }
    grant.objects.iter().map(|written| NamedObject { kind, schema: None, name: written.name.text.clone() }).collect()
}

fn noun(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Schema => "schema ",
        ObjectKind::Type => "type ",
        ObjectKind::Domain => "domain ",
        ObjectKind::Language => "language ",
        ObjectKind::Database => "database ",
        ObjectKind::Sequence => "sequence ",
        _ => "",
    }
}

fn report(reporter: &mut Reporter<'_>, range: TextRange, kind: ObjectKind, kept: &[Kept]) {
    let mut reasons: Vec<&Reason> = Vec::new();
    for one in kept {
        if !reasons.contains(&&one.reason) {
            reasons.push(&one.reason);
        }
    }
    for reason in reasons {
        let of_reason: Vec<&Kept> = kept.iter().filter(|one| one.reason == *reason).collect();
        report_reason(reporter, range, kind, reason, &of_reason);
    }
}

fn report_reason(reporter: &mut Reporter<'_>, range: TextRange, kind: ObjectKind, reason: &Reason, kept: &[&Kept]) {
    let roles = unique(kept.iter().map(|one| one.role.as_str()));
    let privileges: Vec<String> =
        unique(kept.iter().map(|one| one.privilege.as_str())).iter().map(|name| name.to_uppercase()).collect();
    let privileges = join(&privileges);
    let mut seen = FxHashSet::default();
    let objects: Vec<&Object> = kept.iter().map(|one| &one.object).filter(|object| seen.insert(&object.sql)).collect();
    let on = match objects.as_slice() {
        [only] => only.shown.clone(),
        [first, others @ ..] => format!("{} and {} more", first.shown, others.len()),
        [] => return,
    };
    let keep = if roles.len() == 1 { "keeps" } else { "keep" };
    let why = match reason {
        Reason::PublicByDefault => "PUBLIC has it by default".to_owned(),
        Reason::Public => "PUBLIC has it".to_owned(),
        Reason::Member(role) if roles.len() == 1 => format!("it is a member of `{role}`"),
        Reason::Member(role) => format!("they are members of `{role}`"),
    };
    let message =
        format!("{} {keep} {privileges} on {on} despite this REVOKE, because {why}", enumerate(roles.iter().copied()));
    let Some(words) = keyword(kind) else { return };
    let names: Vec<&str> = objects.iter().map(|object| object.sql.as_str()).collect();
    let (from, then) = match reason {
        Reason::Member(role) => {
            (qualified("public", role), "revoke the privilege from the other role, or the membership")
        }
        _ => ("PUBLIC".to_owned(), "revoke the privilege from PUBLIC, and grant it to the roles that need it"),
    };
    let help = format!("{then}:\n    REVOKE {privileges} ON {words}{} FROM {from};", names.join(", "));
    reporter.report(range, message).help(help).emit();
}

fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    names.for_each(|name| {
        if !found.contains(&name) {
            found.push(name);
        }
    });
    found
}

/// The kind of an object in GRANT and REVOKE.
fn keyword(kind: ObjectKind) -> Option<&'static str> {
    Some(match kind {
        ObjectKind::Table | ObjectKind::View => "",
        ObjectKind::Sequence => "SEQUENCE ",
        ObjectKind::Function | ObjectKind::Procedure | ObjectKind::Routine => "ROUTINE ",
        ObjectKind::Schema => "SCHEMA ",
        ObjectKind::Type | ObjectKind::Domain => "TYPE ",
        ObjectKind::Language => "LANGUAGE ",
        ObjectKind::Database => "DATABASE ",
        _ => return None,
    })
}

/// ALTER DEFAULT PRIVILEGES ... REVOKE EXECUTE ON FUNCTIONS, while PostgreSQL still grants it to PUBLIC.
///
/// Source: PostgreSQL 18 documentation, ALTER DEFAULT PRIVILEGES: per-schema default privileges are added to the global
/// ones.
fn check_defaults(
    context: &MigrationContext<'_>,
    reporter: &mut Reporter<'_>,
    range: TextRange,
    grant: &Grant,
    future: &FutureObjects,
) {
    let is_function = PrivilegeKind::of(grant.kind) == Some(PrivilegeKind::Function);
    if !is_function || context.after.closes_functions() {
        return;
    }
    let is_public = grant.grantees.iter().any(|role| role == PUBLIC);
    // What was granted for the schema itself can be revoked.
    let was_granted =
        || grant.grantees.iter().any(|role| context.before.has_default_for_functions(role, &future.schemas));
    if is_public && (future.schemas.is_empty() || was_granted()) {
        return;
    }
    let roles: Vec<&str> = grant.grantees.iter().map(SmolStr::as_str).collect();
    let message = if is_public {
        "new functions can still be executed by every role despite this REVOKE, because default privileges for a \
         schema do not limit those that PostgreSQL gives to PUBLIC"
            .to_owned()
    } else {
        format!(
            "{} can still execute new functions despite this REVOKE, because PUBLIC has EXECUTE on them by default",
            enumerate(roles)
        )
    };
    let creators: Vec<String> = future.creators.iter().map(|role| qualified("public", role)).collect();
    let creators = if creators.is_empty() { String::new() } else { format!(" FOR ROLE {}", creators.join(", ")) };
    let help = format!(
        "revoke the privilege from PUBLIC without IN SCHEMA, and grant it to the roles that need it:\n    \
         ALTER DEFAULT PRIVILEGES{creators} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;"
    );
    reporter.report(range, message).help(help).emit();
}

/// The objects of a REVOKE that exist at the end of the migration.
fn objects(context: &MigrationContext<'_>, kind: PrivilegeKind, grant: &Grant, on: &[Oid]) -> Vec<(Oid, Object)> {
    let catalog = context.after;
    let mut found: Vec<(Oid, Object)> = if kind == PrivilegeKind::Function {
        let object = |function: &Arc<Function>| {
            let shown = format!("`{}`", function.display_name());
            (function.oid, Object { shown, sql: signature_of(catalog, context.settings, function) })
        };
        let functions = on.iter().filter_map(|oid| catalog.get_function(*oid));
        functions.filter(|function| is_callable(function)).map(object).collect()
    } else {
        let object = |relation: &Arc<Relation>| {
            let shown = format!("{}`{}`", noun(grant.kind), relation.name);
            (relation.oid, Object { shown, sql: qualified(&relation.schema, &relation.name) })
        };
        on.iter().filter_map(|oid| catalog.get_relation(*oid)).map(object).collect()
    };
    found.sort_by_key(|(oid, _)| *oid);
    found.dedup_by_key(|(oid, _)| *oid);
    found
}

/// Whether SQL can call the function: PostgreSQL refuses calls of trigger functions, and does not check the privilege
/// when a trigger fires.
fn is_callable(function: &Function) -> bool {
    !matches!(function.result_name(), Some("trigger" | "event_trigger"))
}
