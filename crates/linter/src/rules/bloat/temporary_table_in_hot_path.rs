//! Temporary tables that code creates again and again.

use super::catalog_rows::{per_hour, shown};
use crate::ast::Persistence;
use crate::diagnostic::Severity;
use crate::report::Reporter;
use crate::routine::{Creation, RoutineContext};
use crate::rule::declare_rule;

declare_rule! {
    /// A function, a procedure or a loop creates a temporary table.
    ///
    /// ## Why it matters
    ///
    /// A temporary table lives in the catalogs like any other: creating one writes a row for the table, for each column,
    /// default, index and dependency, and dropping it makes all of them dead. On a path that runs often `pg_attribute` and
    /// `pg_class` grow by gigabytes an hour, every query that is planned reads them, and when autovacuum cuts off their
    /// empty ends it locks out all sessions. The message gives the rows for each call; with a rate of calls in the
    /// configuration it also gives the growth in an hour.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE FUNCTION best_offers(customer bigint) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     CREATE TEMPORARY TABLE candidates (id bigint PRIMARY KEY, price numeric) ON COMMIT DROP;
    ///     INSERT INTO candidates SELECT id, price FROM offers WHERE customer_id = customer;
    ///     RETURN QUERY SELECT id FROM candidates ORDER BY price LIMIT 10;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE FUNCTION best_offers(customer bigint) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     RETURN QUERY
    ///     WITH candidates AS (SELECT id, price FROM offers WHERE customer_id = customer)
    ///     SELECT id FROM candidates ORDER BY price LIMIT 10;
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// For a temporary table that a migration creates once, in a DO block too, and for functions that no longer exist
    /// when all migrations have run. It is an error where a trigger, a loop, a policy or a configured rate of calls shows
    /// that the function runs often.
    "temporary-table-in-hot-path", Bloat, Warning,
    {}
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let runs_once = context.function().is_none();
    for creation in context.creations() {
        let in_loop = creation.context.loops > 0 && creation.context.iterations.is_none_or(|rounds| rounds > 1);
        if creation.persistence != Persistence::Temporary || (runs_once && !in_loop) {
            continue;
        }
        report(context, &creation, in_loop, reporter);
    }
}

fn report(context: &RoutineContext<'_>, creation: &Creation, in_loop: bool, reporter: &mut Reporter<'_>) {
    let hotness = context.hotness();
    // IF NOT EXISTS makes it once in each session, unless something drops it.
    let per_session = creation.if_not_exists && !creation.dropped;
    let when = match (in_loop, per_session) {
        (_, true) => format!("the first call of {} in each session", context.name()),
        (true, _) => "every round of the loop".to_owned(),
        (false, false) => format!("every call of {}", context.name()),
    };
    let name = &creation.name.name.text;
    let mut message = format!("{when} creates the temporary table `{name}`");
    if let Some(rows) = creation.rows {
        message.push_str(": ");
        message.push_str(&shown(rows, context.settings.versions));
        let rounds = creation.context.iterations.unwrap_or(1).max(1);
        if let Some(calls) = hotness.calls_per_hour.filter(|_| !per_session) {
            message.push_str(&per_hour(rows * rounds, calls));
        }
    }
    let help = "use a CTE, a subquery or an array instead; or a permanent (UNLOGGED) table with a column for the session, \
                created once";
    let mut finding = reporter.report(creation.range, message).help(help);
    if hotness.is_hot() && !per_session {
        finding = finding.severity(Severity::Error);
    }
    drop(hotness.label(finding));
}
