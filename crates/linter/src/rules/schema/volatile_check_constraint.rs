//! CHECK constraints whose answer changes.

use crate::declared::{DeclarationContext, Declared};
use crate::report::Reporter;
use crate::rule::declare_rule;
use pgvet_model::builtin::{self, Volatility};
use pgvet_model::catalog::Function;
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::{ConstraintKind, Expr, ExprKind, FunctionBody, FunctionCall, Part};

declare_rule! {
    /// A `CHECK` constraint with a function whose result depends on more than the row.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL checks a row only when it is inserted or updated. If the constraint depends on the time, a setting or
    /// the rows of another table, a row that passed can later violate it, and nobody notices. Any later UPDATE of this
    /// row fails, even if it changes only another column. Restoring a dump fails if a row violates the constraint at
    /// that time, or if a table that the function reads is still empty.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE events (id bigint PRIMARY KEY, ends_at timestamptz CHECK (ends_at > now()));
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE events (id bigint PRIMARY KEY, made_at timestamptz DEFAULT now(), ends_at timestamptz, CHECK (ends_at > made_at));
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - functions that are `IMMUTABLE` or `STABLE` and read no table, except those that return the time or session
    ///   state
    /// - constraints that a later migration drops, directly or with their column or table
    /// - casts and functions of text search and formatting, which depend on settings that hardly ever change
    ///
    /// ## Other linters
    ///
    /// `MigrationPilot` knows the functions of PostgreSQL. pgvet also knows those that the migrations define.
    "volatile-check-constraint", Schema, Warning,
    { recommended: false, sources: &["migrationpilot/MP087"] }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Declared::Constraint { constraint, .. } = context.declared else { return };
    let ConstraintKind::Check(expression) = &constraint.kind else { return };
    if constraint.name.as_ref().is_some_and(|name| context.relation.constraint(&name.text).is_none()) {
        return;
    }
    let mut found: Option<(String, &'static str)> = None;
    expression.walk(&mut |part| {
        if found.is_none() {
            found = changing(context, part);
        }
    });
    let Some((name, why)) = found else { return };
    let message = format!(
        "this CHECK on `{}` uses {name}, {why}: updating an accepted row or restoring a dump can fail later",
        context.relation.name
    );
    let help = "use only columns of the row and immutable functions, or check the row in a trigger when it is written";
    reporter.report(constraint.keyword, message).relation(&RelationName::existing(context.relation)).help(help).emit();
}

fn changing(context: &DeclarationContext<'_>, part: &Expr) -> Option<(String, &'static str)> {
    match &part.kind {
        ExprKind::SqlValue(name, _) => Some((name.to_ascii_uppercase(), CHANGES)),
        ExprKind::Call(call) => called(context, call),
        _ => None,
    }
}

const CHANGES: &str = "whose result depends on the time or the session";

/// Functions of the clock and of the session that are not VOLATILE, as `now()` is not.
///
/// Source: PostgreSQL 18 documentation, tables "Date/Time Functions", "Configuration Settings Functions", "Session
/// Information Functions" and "Transaction ID and Snapshot Information Functions".
const OF_CLOCK_OR_SESSION: &[&str] = &[
    "current_database",
    "current_query",
    "current_schema",
    "current_schemas",
    "current_setting",
    "inet_client_addr",
    "inet_client_port",
    "inet_server_addr",
    "inet_server_port",
    "now",
    "pg_backend_pid",
    "pg_conf_load_time",
    "pg_current_snapshot",
    "pg_current_xact_id",
    "pg_current_xact_id_if_assigned",
    "pg_postmaster_start_time",
    "pg_trigger_depth",
    "statement_timestamp",
    "transaction_timestamp",
    "txid_current",
    "txid_current_if_assigned",
    "txid_current_snapshot",
];

fn called(context: &DeclarationContext<'_>, call: &FunctionCall) -> Option<(String, &'static str)> {
    let mut name = format!("{}()", call.name);
    let own = context.catalog.functions_called(call, context.search_path);
    let own: Vec<&Function> =
        own.into_iter().filter_map(|oid| context.catalog.get_function(oid)).map(|function| &**function).collect();
    if !own.is_empty() {
        let all = |is: fn(&Function) -> bool| own.iter().all(|function| is(function));
        return match () {
            () if all(reads_table) => Some((name, "which reads a table")),
            () if all(|function| function.volatility == Volatility::Volatile) => Some((name, "which is VOLATILE")),
            () => None,
        };
    }
    let builtin = builtin::functions(&call.name);
    // age(timestamp) counts from today; age(timestamp, timestamp) does not.
    let is_of_today = call.name == "age" && call.arguments.len() == 1;
    if is_of_today {
        "age(timestamp)".clone_into(&mut name);
    }
    // Of overloads that differ the one that is meant may be immutable.
    let is_volatile = !builtin.is_empty() && builtin.iter().all(|row| row.volatility == Volatility::Volatile);
    let is_of_clock_or_session = is_of_today || OF_CLOCK_OR_SESSION.contains(&call.name.as_str());
    match () {
        () if builtin.is_empty() => None,
        () if is_of_clock_or_session => Some((name, CHANGES)),
        () => is_volatile.then_some((name, "whose result can differ at each call")),
    }
}

fn reads_table(function: &Function) -> bool {
    match &*function.body {
        FunctionBody::Source { text, .. } => matches!(function.language.as_str(), "sql" | "plpgsql") && has_from(text),
        FunctionBody::Atomic { statements, .. } => {
            let mut found = false;
            for statement in statements {
                statement.visit(&mut |part| found |= matches!(part, Part::Read(_)));
            }
            found
        }
        FunctionBody::Library | FunctionBody::Missing => false,
    }
}

/// FROM and a name behind it, outside of functions such as `extract(... FROM ...)`.
fn has_from(text: &str) -> bool {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let has = |word: &str| words.iter().any(|other| other.eq_ignore_ascii_case(word));
    has("select") && has("from") && !has("extract") && !has("trim") && !has("substring") && !has("unnest")
}
