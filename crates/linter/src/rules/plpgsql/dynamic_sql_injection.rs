//! Dynamic SQL with unquoted text of the caller.

use super::dynamic_sql_not_checked::query_of;
use super::taint::Taints;
use crate::report::Reporter;
use crate::routine::{Node, RoutineContext};
use crate::rule::declare_rule;

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
    /// For values that cannot be SQL (numbers, dates, `regclass`), for parameters that an `IF` compares with what is
    /// allowed before it raises an error, for values that `USING` passes, and in `DO` blocks, which have no caller. A
    /// function that executes its whole parameter is reported only if it is `SECURITY DEFINER`.
    "dynamic-sql-injection", Plpgsql, Warning,
    { sources: &["plpgsql_check/security"] }
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(function) = context.function() else { return };
    let mut taints = None;
    for step in context.routine.steps() {
        let Node::Statement(statement) = step.node else { continue };
        let Some(query) = query_of(&statement.kind) else { continue };
        let Some(tainted) = taints.get_or_insert_with(|| Taints::of(context)).text(&query.expression) else { continue };
        if !tainted.composed && !function.security_definer {
            continue;
        }
        let rights = if function.security_definer { " with the rights of its owner" } else { "" };
        let message =
            format!("a caller of {} can run any SQL here{rights}: `{}` is not quoted", context.name(), tainted.origin);
        let help = "quote names by format('%I', ...) and values by %L, or pass values by EXECUTE ... USING";
        drop(reporter.report(tainted.range, message).label(query.keyword, "it is executed here").help(help));
    }
}
