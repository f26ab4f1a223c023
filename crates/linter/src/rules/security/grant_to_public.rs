//! GRANT ... TO PUBLIC.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::rest;
use crate::rules::text::{enumerate, join};
use pgvet_model::effect::{ChangeAction, ChangedObject};
use pgvet_syntax::ast::{Ast, FutureObjects, Grant, NamedPrivilege, ObjectKind, ObjectName};
use smol_str::SmolStr;

declare_rule! {
    /// A privilege is granted to `PUBLIC`: to every current and future role.
    ///
    /// ## Why it matters
    ///
    /// From then on every role that can connect has the privilege, including the roles of reporting tools and other
    /// applications. Revoking the privilege from a single role has no effect. `CREATE` on a schema lets every role
    /// create functions and tables in it. Other roles can then use these by mistake, because they find them through
    /// their `search_path`.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE users (id bigint PRIMARY KEY, email text);
    /// GRANT SELECT, UPDATE ON users TO PUBLIC;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE users (id bigint PRIMARY KEY, email text);
    /// GRANT SELECT, UPDATE ON users TO app;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - privileges that `PUBLIC` has by default: `EXECUTE` on functions, `USAGE` on types and languages, `CONNECT` and
    ///   `TEMPORARY` on a database
    /// - `USAGE` on a schema, which alone gives no access to its objects
    /// - `SELECT` on views, which are often created to be public
    /// - a privilege that the migration revokes
    ///
    /// ## Other linters
    ///
    /// squawk, eugene, pgls and `strong_migrations` do not check privileges.
    "grant-to-public", Security, Warning,
    { sources: &["migrationpilot/MP085", "pglinter/S003"] }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    for change in context.effects.changes.iter().filter(|_| context.effects.fails.is_none()) {
        let ChangedObject::Privileges { grant, future, .. } = &change.object else { continue };
        if change.action == ChangeAction::Grant && is_public(grant) {
            let scope = future.as_ref().map_or(Scope::Existing, Scope::Future);
            report(context, grant, scope, reporter);
        }
    }
}

fn report(context: &RuleContext<'_>, grant: &Grant, scope: Scope<'_>, reporter: &mut Reporter<'_>) {
    let rest = rest(context);
    let revoked: Vec<&Grant> =
        rest.iter().filter_map(|ast| granted(ast)).filter(|(_, other)| *other == scope).map(|it| it.0).collect();
    let is_revoked = |privilege: &NamedPrivilege| {
        revoked.iter().any(|revoke| covers_objects(context, revoke, grant) && covers(revoke, privilege))
    };
    let privileges: Vec<String> =
        excessive(context, grant).into_iter().filter(|privilege| !is_revoked(privilege)).map(written).collect();
    if privileges.is_empty() {
        return;
    }
    let on = match (scope, grant.objects.first()) {
        (Scope::Future(future), _) => in_future(grant.kind, future),
        (Scope::Existing, Some(name)) if grant.all_in_schema => {
            format!("all {} in schema `{name}`", plural(grant.kind))
        }
        (Scope::Existing, Some(name)) if grant.objects.len() == 1 => {
            let schema = if grant.kind == ObjectKind::Schema { "schema " } else { "" };
            format!("{schema}`{name}`")
        }
        (Scope::Existing, Some(name)) => match grant.objects.len() - 1 {
            1 => format!("`{name}` and 1 more object"),
            more => format!("`{name}` and {more} more objects"),
        },
        (Scope::Existing, None) => "it".to_owned(),
    };
    let message = format!("every current and future role gets {} on {on}", join(&privileges));
    reporter
        .report(grant.keyword, message)
        .help("grant the privilege to the roles that need it, or to a group role that has these roles as members")
        .emit();
}

/// The objects to which default privileges apply.
///
/// Source: PostgreSQL 18 documentation, ALTER DEFAULT PRIVILEGES.
fn in_future(kind: ObjectKind, FutureObjects { creators, schemas }: &FutureObjects) -> String {
    let names = |names: &[SmolStr]| enumerate(names.iter().map(SmolStr::as_str));
    let who = match creators.as_slice() {
        [] => "the current role creates".to_owned(),
        [only] => format!("`{only}` creates"),
        several => format!("{} create", names(several)),
    };
    let place = match schemas.as_slice() {
        [] => String::new(),
        [_] => format!(" in schema {}", names(schemas)),
        _ => format!(" in schemas {}", names(schemas)),
    };
    format!("all {} that {who}{place} from now on", plural(kind))
}

/// The word for several objects of a kind.
fn plural(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Table | ObjectKind::View => "tables",
        ObjectKind::Sequence => "sequences",
        ObjectKind::Schema => "schemas",
        ObjectKind::Procedure => "procedures",
        ObjectKind::Routine => "routines",
        ObjectKind::Function => "functions",
        _ => "objects",
    }
}

/// The objects of a GRANT or REVOKE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope<'a> {
    Existing,
    Future(&'a FutureObjects),
}

fn granted(ast: &Ast) -> Option<(&Grant, Scope<'_>)> {
    match ast {
        Ast::Grant(grant) => Some((grant, Scope::Existing)),
        Ast::AlterDefaultPrivileges(alter) => Some((&alter.grant, Scope::Future(&alter.future))),
        _ => None,
    }
}

fn is_public(grant: &Grant) -> bool {
    grant.grantees.iter().any(|role| role == "public")
}

/// The privileges that are neither a default of PUBLIC nor harmless.
///
/// Source: PostgreSQL 18 documentation, "Privileges", table of default privileges.
fn excessive<'g>(context: &RuleContext<'_>, grant: &'g Grant) -> Vec<&'g NamedPrivilege> {
    let harmless: &[&str] = match grant.kind {
        ObjectKind::Table | ObjectKind::View if is_view(context, grant) => &["select"],
        ObjectKind::Table | ObjectKind::View | ObjectKind::MaterializedView => &[],
        ObjectKind::Sequence => &["usage", "select"],
        ObjectKind::Schema => &["usage"],
        ObjectKind::Database => &["connect", "temporary", "temp"],
        _ => return Vec::new(),
    };
    let written = if grant.privileges.is_empty() { &ALL[..] } else { &grant.privileges };
    let is_harmless = |name: &SmolStr| harmless.iter().any(|other| name.eq_ignore_ascii_case(other));
    written.iter().filter(|privilege| !privilege.name.as_ref().is_some_and(is_harmless)).collect()
}

/// The privileges of a statement without a list.
static ALL: [NamedPrivilege; 1] = [NamedPrivilege { name: None, columns: Vec::new() }];

fn written(privilege: &NamedPrivilege) -> String {
    let name = privilege.name.as_ref().map_or_else(|| "ALL PRIVILEGES".to_owned(), |name| name.to_ascii_uppercase());
    if privilege.columns.is_empty() { name } else { format!("{name} ({})", privilege.columns.join(", ")) }
}

/// Whether every named object is a view.
fn is_view(context: &RuleContext<'_>, grant: &Grant) -> bool {
    use pgvet_model::catalog::RelationKind::{MaterializedView, View};
    let path = context.session.settings.search_path();
    let kind = |name| context.after.find_relation(name, &path).map(|oid| context.after.relation(oid).kind);
    let mut kinds = grant.objects.iter().map(kind);
    !grant.all_in_schema && !grant.objects.is_empty() && kinds.all(|kind| matches!(kind, Some(View | MaterializedView)))
}

/// Whether a REVOKE from PUBLIC names all objects of the GRANT.
fn covers_objects(context: &RuleContext<'_>, revoke: &Grant, grant: &Grant) -> bool {
    let same_sort = revoke.kind == grant.kind && revoke.all_in_schema == grant.all_in_schema;
    let is_named = |object: &ObjectName| revoke.objects.iter().any(|other| is_same(context, object, other));
    !revoke.grant && !revoke.grant_option && is_public(revoke) && same_sort && grant.objects.iter().all(is_named)
}

/// A name without schema is found along the path.
fn is_same(context: &RuleContext<'_>, ours: &ObjectName, theirs: &ObjectName) -> bool {
    let schema = |name: &ObjectName| name.schema.as_ref().map(|schema| schema.text.clone());
    if ours.name.text != theirs.name.text || schema(ours) == schema(theirs) {
        return ours.name.text == theirs.name.text;
    }
    let path = context.session.settings.search_path();
    let found = context.after.find_relation(ours, &path);
    found.is_some() && found == context.after.find_relation(theirs, &path)
}

/// Whether it revokes the privilege. ALL revokes each.
fn covers(revoke: &Grant, privilege: &NamedPrivilege) -> bool {
    let same_name = |revoked: &NamedPrivilege| match (&revoked.name, &privilege.name) {
        (Some(revoked), Some(name)) => revoked.eq_ignore_ascii_case(name),
        (revoked, _) => revoked.is_none(),
    };
    let has_columns = |revoked: &NamedPrivilege| {
        let takes = |column| revoked.columns.contains(column);
        revoked.columns.is_empty() || (!privilege.columns.is_empty() && privilege.columns.iter().all(takes))
    };
    revoke.privileges.is_empty() || revoke.privileges.iter().any(|revoked| same_name(revoked) && has_columns(revoked))
}
