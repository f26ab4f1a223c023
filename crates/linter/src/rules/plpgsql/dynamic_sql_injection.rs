//! Dynamic SQL with unquoted text from the caller.

use super::taint::Taints;
use crate::report::Reporter;
use crate::rule::{RoutineContext, declare_rule};
use pgvet_model::catalog::Oid;
use pgvet_model::routine::{CallerKind, Node};
use pgvet_syntax::ast::{Expr, ExprKind, Part};
use smol_str::SmolStr;
use std::rc::Rc;

declare_rule! {
    /// `EXECUTE` of SQL that contains unquoted text from the caller of the function.
    ///
    /// ## Why it matters
    ///
    /// Anybody who controls the text can run any SQL. If the function is `SECURITY DEFINER`, the SQL runs with the
    /// privileges of the function's owner, otherwise with the privileges of the calling role. The function also fails
    /// for harmless text, if a name contains capital letters or a value contains a quote.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE FUNCTION count_rows(name text) RETURNS bigint LANGUAGE plpgsql AS $$
    /// DECLARE result bigint;
    /// BEGIN
    ///     EXECUTE 'SELECT count(*) FROM ' || name INTO result;
    ///     RETURN result;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE FUNCTION count_rows(name text) RETURNS bigint LANGUAGE plpgsql AS $$
    /// DECLARE result bigint;
    /// BEGIN
    ///     EXECUTE format('SELECT count(*) FROM %I', name) INTO result;
    ///     RETURN result;
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - values that cannot be SQL: numbers, dates, `regclass`
    /// - a parameter that is only the search text of `replace()`
    /// - parameters that the code compares with a list of allowed values, if an `IF` raises an error for all other
    ///   values
    /// - values that are passed with `USING`
    /// - functions that a migration itself calls
    /// - parameters for which every calling function passes a constant
    /// - `DO` blocks, which have no caller
    /// - a function that executes a whole parameter as SQL, unless it is `SECURITY DEFINER`
    ///
    /// Each parameter is reported once, at its first use.
    "dynamic-sql-injection", Plpgsql, Warning,
    { sources: &["plpgsql_check/security"] }
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(function) = context.function() else { return };
    if context.called_by_migration {
        return;
    }
    let mut taints = None;
    let mut said: Vec<SmolStr> = Vec::new();
    for step in context.routine.steps() {
        let Node::Statement(statement) = step.node else { continue };
        let Some(query) = statement.kind.dynamic_query() else { continue };
        let Some(tainted) = taints.get_or_insert_with(|| Taints::of(context)).text(&query.expression) else { continue };
        if (!tainted.composed && !function.security_definer) || said.contains(&tainted.origin) {
            continue;
        }
        said.push(tainted.origin.clone());
        if is_given_own_text(context, &tainted.origin) {
            continue;
        }
        let rights = if function.security_definer { " with the privileges of the function's owner" } else { "" };
        let (reason, help) =
            if tainted.composed { ("is not quoted", QUOTE) } else { ("is executed unchanged", WHOLE_STATEMENT) };
        let message =
            format!("a caller of {} can run any SQL here{rights}: `{}` {reason}", context.name(), tainted.origin);
        reporter.report(tainted.range, message).label(query.keyword, "the SQL is executed here").help(help).emit();
    }
}

const QUOTE: &str = "quote names with format('%I', ...) and values with format('%L', ...), or pass values with EXECUTE \
                     ... USING. Do not accept whole clauses from the caller";

const WHOLE_STATEMENT: &str = "let callers pass names and values instead of a whole statement; or revoke EXECUTE on \
                               the function from PUBLIC, and grant it only to roles that may run arbitrary SQL with \
                               the owner's privileges";

/// Whether there are calls in other functions, and none passes a value from its own caller as this parameter.
fn is_given_own_text(context: &RoutineContext<'_>, parameter: &SmolStr) -> bool {
    let Some(function) = context.function() else { return false };
    let mut inputs = function.parameters.iter().filter(|own| own.mode.is_input());
    let Some(position) = inputs.position(|own| own.name.as_ref() == Some(parameter)) else { return false };
    let mut callers: Vec<Oid> = Vec::new();
    for site in context.callers() {
        match &site.kind {
            CallerKind::Function(caller) if caller.oid == function.oid => {}
            CallerKind::Function(caller) if callers.contains(&caller.oid) => {}
            CallerKind::Function(caller) => callers.push(caller.oid),
            CallerKind::Policy(..) | CallerKind::Default(..) | CallerKind::View(_) => return false,
        }
    }
    let gives_own_text = |caller: &Oid| {
        let Some(routine) = context.routines.function(*caller) else { return false };
        let caller = RoutineContext { routine: Rc::clone(&routine), ..*context };
        let taints = Taints::of(&caller);
        let mut found = true;
        for sql in routine.steps().iter().flat_map(|step| &step.sql) {
            sql.ast.visit(&mut |part| {
                if let Part::Expr(Expr { kind: ExprKind::Call(call), .. }) = part
                    && call.name == function.name
                {
                    let named = call.arguments.iter().find(|argument| argument.name.as_ref() == Some(parameter));
                    let argument = named.or_else(|| call.arguments.get(position).filter(|own| own.name.is_none()));
                    found &= argument.is_none_or(|argument| taints.expression(&argument.value).is_none());
                }
            });
        }
        found
    };
    !callers.is_empty() && callers.iter().all(gives_own_text)
}
