//! SECURITY DEFINER functions that look names up where their caller says.

use crate::catalog::Function;
use crate::report::Reporter;
use crate::routine::RoutineContext;
use crate::rule::declare_rule;
use crate::session::search_path;

declare_rule! {
    /// A function runs with the rights of its owner, and looks names up along the `search_path` of its caller.
    ///
    /// ## Why it matters
    ///
    /// `SECURITY DEFINER` gives the caller the rights of the owner for the time of the call. Where the function does not set
    /// `search_path`, the caller does: with a table, function or operator of the right name in a schema of his own, or in
    /// `pg_temp`, he lets the function run his code with these rights.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE FUNCTION is_admin(wanted text) RETURNS bool LANGUAGE plpgsql SECURITY DEFINER AS $$
    /// BEGIN
    ///     RETURN EXISTS (SELECT FROM admins WHERE name = wanted);
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE FUNCTION is_admin(wanted text) RETURNS bool LANGUAGE plpgsql SECURITY DEFINER
    ///     SET search_path = app, pg_temp AS $$
    /// BEGIN
    ///     RETURN EXISTS (SELECT FROM admins WHERE name = wanted);
    /// END $$;
    /// ```
    ///
    /// `pg_temp` at the end keeps temporary tables from coming first, which they do where it is not named.
    ///
    /// ## When it is not reported
    ///
    /// What counts is the function after the last migration: `ALTER FUNCTION ... SET search_path` is seen, and so is
    /// `CREATE OR REPLACE` that loses it. A `search_path` without `pg_temp` is a note only. Functions in C and other languages
    /// that pgvet does not read are left out.
    ///
    /// ## Other linters
    ///
    /// squawk, eugene and pg-migration-lint do not look at functions; splinter and pgspot look at a database or a single
    /// statement.
    "security-definer-search-path", Security, Warning,
    { sources: &["splinter/function_search_path_mutable", "pgspot/PS003", "pgspot/PS004", "migrationpilot/MP099"] }
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(function) = context.function().filter(|function| function.security_definer) else { return };
    let range = context.routine.name_range;
    let signature = signature(function);
    let Some((_, path)) = function.settings.iter().find(|(name, _)| name == "search_path") else {
        let message = format!(
            "{} runs with the rights of its owner, but looks names up along the search_path of its caller",
            function.display_name()
        );
        let schemas = if function.schema == "public" { "public" } else { function.schema.as_str() };
        let help = format!(
            "let the function set it, with the schemas that it needs, or with '' and qualified names:\n    \
             ALTER FUNCTION {signature} SET search_path = {schemas}, pg_temp;"
        );
        drop(reporter.report(range, message).help(help));
        return;
    };
    let schemas = search_path(path);
    let has_temporary_last = schemas.last().is_some_and(|last| last == "pg_temp");
    if !schemas.is_empty() && !has_temporary_last {
        let message = format!(
            "{} runs with the rights of its owner, and finds temporary tables of its caller first",
            function.display_name()
        );
        let help = format!("name pg_temp last:\n    ALTER FUNCTION {signature} SET search_path = {path}, pg_temp;");
        drop(reporter.report(range, message).severity(crate::diagnostic::Severity::Info).help(help));
    }
}

/// The name, which is enough for ALTER FUNCTION where there is one function of it.
fn signature(function: &Function) -> String {
    let name = crate::rules::text::identifier(&function.name);
    match function.schema.as_str() {
        "public" => name,
        schema => format!("{}.{name}", crate::rules::text::identifier(schema)),
    }
}
