//! GRANT ... TO PUBLIC.

use crate::ast::{AlterDefaultPrivileges, Ast, Grant, ObjectKind};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::around::rest;
use crate::rules::text::join;
use smol_str::SmolStr;

declare_rule! {
    /// A privilege is given to `PUBLIC`: to every role that there is and will be.
    ///
    /// ## Why it matters
    ///
    /// Every login of the server has it from then on, that of a report tool or of another application too, and taking it back
    /// from one role has no effect. `CREATE` on a schema lets every role put functions and tables there that others then find
    /// along their `search_path`.
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
    /// For what `PUBLIC` has anyway (`EXECUTE` on functions, `USAGE` on types and languages, `CONNECT` and `TEMPORARY` on a
    /// database), for `USAGE` on a schema, which shows nothing by itself, for `SELECT` on views, which are often made to be
    /// shown, and where the migration takes it back.
    ///
    /// ## Other linters
    ///
    /// None of squawk, eugene, pgls and `strong_migrations` looks at privileges.
    "grant-to-public", Security, Warning,
    { sources: &["migrationpilot/MP085", "pglinter/S003"] }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let (grant, later_objects) = match context.ast {
        Ast::Grant(grant) => (grant, false),
        Ast::AlterDefaultPrivileges(AlterDefaultPrivileges { grant, .. }) => (grant, true),
        _ => return,
    };
    let is_public = grant.grantees.iter().any(|role| role == "public");
    if !grant.grant || !is_public || context.effects.fails.is_some() || rest(context).any(|ast| takes_back(ast, grant))
    {
        return;
    }
    let privileges: Vec<String> = excessive(context, grant);
    if privileges.is_empty() {
        return;
    }
    let on = match (later_objects, grant.objects.first()) {
        (true, _) => "all later objects".to_owned(),
        (false, Some(name)) if grant.all_in_schema => format!("everything in `{name}`"),
        (false, Some(name)) if grant.objects.len() == 1 => format!("`{name}`"),
        (false, Some(name)) => format!("`{name}` and {} more", grant.objects.len() - 1),
        (false, None) => "it".to_owned(),
    };
    let message = format!("every role, those of later too, gets {} on {on}", join(&privileges));
    drop(
        reporter
            .report(grant.keyword, message)
            .help("grant it to the roles that need it, or to a role that they are members of"),
    );
}

/// The privileges that PUBLIC neither has anyway nor is harmless with.
///
/// Source: PostgreSQL 18 documentation, "Privileges", table of default privileges.
fn excessive(context: &RuleContext<'_>, grant: &Grant) -> Vec<String> {
    let harmless: &[&str] = match grant.kind {
        ObjectKind::Table | ObjectKind::View if is_view(context, grant) => &["select"],
        ObjectKind::Table | ObjectKind::View | ObjectKind::MaterializedView => &[],
        ObjectKind::Sequence => &["usage", "select"],
        ObjectKind::Schema => &["usage"],
        ObjectKind::Database => &["connect", "temporary", "temp"],
        _ => return Vec::new(),
    };
    let all = [SmolStr::new_static("all privileges")];
    let written = if grant.privileges.is_empty() { &all[..] } else { &grant.privileges };
    let given = written.iter().filter(|privilege| !harmless.contains(&privilege.to_ascii_lowercase().as_str()));
    given.map(|privilege| privilege.to_ascii_uppercase()).collect()
}

/// Is every object that is named a view?
fn is_view(context: &RuleContext<'_>, grant: &Grant) -> bool {
    use crate::effect::RelationKind::{MaterializedView, View};
    let path = context.session.settings.search_path();
    let kind = |name| context.after.find_relation(name, &path).map(|oid| context.after.relation(oid).kind);
    let mut kinds = grant.objects.iter().map(kind);
    !grant.all_in_schema && !grant.objects.is_empty() && kinds.all(|kind| matches!(kind, Some(View | MaterializedView)))
}

/// A REVOKE of the same objects from PUBLIC.
fn takes_back(ast: &Ast, grant: &Grant) -> bool {
    let Ast::Grant(revoke) = ast else { return false };
    let names = |grant: &Grant| grant.objects.iter().map(|name| name.name.text.clone()).collect::<Vec<_>>();
    !revoke.grant && revoke.grantees.iter().any(|role| role == "public") && names(revoke) == names(grant)
}
