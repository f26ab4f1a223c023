//! Dynamic SQL with unquoted text of the caller.

use super::taint::Taints;
use crate::ast::{Expr, ExprKind, Part};
use crate::catalog::Oid;
use crate::report::Reporter;
use crate::routine::{CallerKind, Node, RoutineContext};
use crate::rule::declare_rule;
use smol_str::SmolStr;
use std::rc::Rc;

declare_rule! {
    /// `EXECUTE` of SQL into which a function puts text of its caller without quotes.
    ///
    /// ## Why it matters
    ///
    /// Who may call the function may run any SQL with the rights that it runs with: those of its owner, if it is
    /// `SECURITY DEFINER`. Even honest callers make it fail, by a name in mixed case or a text with a quote.
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
    /// For values that cannot be SQL (numbers, dates, `regclass`), for what `replace` only looks for, for parameters that
    /// an `IF` compares with what is allowed before it raises an error, for values that `USING` passes, for functions that
    /// a migration calls itself, for parameters to which the functions that call it give texts of their own, and in `DO`
    /// blocks, which have no caller. A function that executes its whole parameter is reported only if it is `SECURITY
    /// DEFINER`. A parameter has one finding, at its first use.
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
        let rights = if function.security_definer { " with the rights of its owner" } else { "" };
        let message =
            format!("a caller of {} can run any SQL here{rights}: `{}` is not quoted", context.name(), tainted.origin);
        let help = "quote names by format('%I', ...) and values by %L, or pass values by EXECUTE ... USING";
        reporter.report(tainted.range, message).label(query.keyword, "it is executed here").help(help).emit();
    }
}

/// Do all calls in other functions give a parameter nothing that comes from their callers? There must be one.
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
