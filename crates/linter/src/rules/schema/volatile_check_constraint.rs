//! CHECK constraints whose answer changes.

use crate::ast::{ConstraintKind, Expr, ExprKind, FunctionBody, FunctionCall};
use crate::builtin;
use crate::catalog::{Catalog, Volatility};
use crate::declared::{DeclarationContext, Declared};
use crate::report::Reporter;
use crate::rule::declare_rule;

declare_rule! {
    /// A `CHECK` calls a function whose result depends on more than the row.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL checks a row when it is written, and believes the constraint from then on. With the time, a setting or the rows of
    /// another table in it, rows that were fine become wrong without anybody noticing, and the next restore of a dump fails on them,
    /// or on tables that are not filled yet.
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
    /// For functions that are `IMMUTABLE` and read no table; for constraints that a later migration drops along with their column or
    /// table; and for casts, most of which depend on settings that hardly change.
    ///
    /// ## Other linters
    ///
    /// `MigrationPilot` knows the functions of PostgreSQL; pgvet those of the project as well.
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
            found = changing(context.catalog, part);
        }
    });
    let Some((name, why)) = found else { return };
    let message = format!(
        "this CHECK of `{}` calls {name}, {why}: rows that were fine become wrong unnoticed",
        context.relation.name
    );
    let help = "compare with columns of the row, or check it with a trigger when the row is written";
    drop(reporter.report(constraint.keyword, message).relation(&context.relation_name(context.relation)).help(help));
}

fn changing(catalog: &Catalog, part: &Expr) -> Option<(String, &'static str)> {
    match &part.kind {
        ExprKind::SqlValue(name) if name.starts_with("current_") || name.starts_with("local") => {
            Some((name.to_ascii_uppercase(), "which changes with time or session"))
        }
        ExprKind::Call(call) => called(catalog, call),
        _ => None,
    }
}

fn called(catalog: &Catalog, call: &FunctionCall) -> Option<(String, &'static str)> {
    let name = format!("{}()", call.name);
    let own: Vec<_> = catalog.functions().filter(|function| function.name == call.name).collect();
    if let Some(function) = own.first() {
        let reads = match &*function.body {
            FunctionBody::Source { text, .. } => {
                matches!(function.language.as_str(), "sql" | "plpgsql") && reads_table(text)
            }
            _ => false,
        };
        return match function.volatility {
            _ if reads => Some((name, "which reads a table")),
            Volatility::Volatile if own.iter().all(|other| other.volatility == Volatility::Volatile) => {
                Some((name, "which is VOLATILE"))
            }
            _ => None,
        };
    }
    let builtin = builtin::functions(&call.name);
    // Of overloads that differ the one that is meant may be immutable.
    let all_change = !builtin.is_empty() && builtin.iter().all(|row| row.volatility != Volatility::Immutable);
    all_change.then_some((name, "which changes with time or session"))
}

/// FROM and a name behind it, outside of functions such as `extract(... FROM ...)`.
fn reads_table(text: &str) -> bool {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let has = |word: &str| words.iter().any(|other| other.eq_ignore_ascii_case(word));
    has("select") && has("from") && !has("extract") && !has("trim") && !has("substring") && !has("unnest")
}
