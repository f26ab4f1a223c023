//! Strong locks that a function call hides.

use super::target::{self, Target};
use crate::report::Reporter;
use crate::rule::{RoutineContext, declare_rule};
use pgvet_syntax::ast::{Ast, Persistence};
use pgvet_syntax::plpgsql::HOLE;
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;

declare_rule! {
    /// A function that alters, drops, truncates or locks a table.
    ///
    /// ## Why it matters
    ///
    /// Statements that alter, drop, truncate or lock a table take a lock that blocks reads or writes. In a migration,
    /// the lock is planned and visible. In a function, PostgreSQL takes it whenever application code calls the
    /// function, even at the busiest time of day, and holds it until the caller's transaction ends.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE totals (name text, value bigint);
    /// CREATE FUNCTION recompute() RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     TRUNCATE totals;
    ///     INSERT INTO totals SELECT name, sum(value) FROM orders GROUP BY name;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE totals (name text, value bigint);
    /// CREATE FUNCTION recompute() RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     DELETE FROM totals;
    ///     INSERT INTO totals SELECT name, sum(value) FROM orders GROUP BY name;
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - `DO` blocks, which are part of the migration, and functions that a migration itself calls
    /// - temporary tables, and objects that the function creates
    /// - `CREATE TABLE`
    /// - statements whose lock does not block queries, such as `REFRESH MATERIALIZED VIEW CONCURRENTLY`
    /// - all but the first of these statements in a function
    /// - tables whose names are known only at run time, which `dynamic-ddl-on-unknown-object` reports
    "ddl-in-function", Plpgsql, Warning,
    {}
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    if context.function().is_none() {
        return;
    }
    let steps = context.routine.steps();
    let mut own: FxHashSet<SmolStr> = FxHashSet::default();
    let mut found: Vec<(TextRange, Target<'_>)> = Vec::new();
    for step in &steps {
        for sql in &step.sql {
            own.extend(created(sql.ast));
            let Some(target) = target::of(sql.ast) else { continue };
            let name = &target.name.name.text;
            let in_pg_temp = target.name.schema.as_ref().is_some_and(|schema| schema.text == "pg_temp");
            let is_temporary = in_pg_temp
                || match context.relation(target.name) {
                    Some(relation) => relation.is_temporary(),
                    None => context.routines.makes_temporary(name),
                };
            if name != HOLE && !own.contains(name) && !is_temporary {
                let range = sql.place(target.name.range());
                found.push((range, target));
            }
        }
    }
    // A table may be made after an IF that empties it.
    found.retain(|(_, target)| !own.contains(&target.name.name.text));
    let Some((range, target)) = found.first() else { return };
    if context.called_by_migration {
        return;
    }
    let message = format!(
        "{2} runs {0}, so every call {3} `{1}` until the caller's transaction ends",
        target.verb,
        target.name,
        context.name(),
        target.blocks
    );
    let mut finding = reporter.report(*range, message);
    for (range, target) in found.iter().skip(1).take(3) {
        finding = finding.label(*range, format!("{} of `{}`, too", target.verb, target.name));
    }
    let help = match target.verb {
        "TRUNCATE" => "use DELETE instead, which does not block readers",
        "REFRESH MATERIALIZED VIEW" => {
            "use CONCURRENTLY, which does not block readers but needs a unique index on the \
                                       view"
        }
        "LOCK TABLE" => {
            "lock only the rows that the function changes, or name the weakest lock mode that the following \
             statements need. Set a short lock_timeout for the function"
        }
        _ => "run the statement in a migration; if a function must run it, set a short lock_timeout for that function",
    };
    if let Some(relation) = context.relation(target.name) {
        finding = finding.relation(&context.relation_name(relation));
    }
    finding.help(help).runs_often(&context.hotness()).emit();
}

/// The table that a statement creates.
fn created(ast: &Ast) -> Option<SmolStr> {
    match ast {
        Ast::CreateTable(create) => Some(create.name.name.text.clone()),
        Ast::CreateTableAs(create) => Some(create.into.name.name.text.clone()),
        Ast::Select(query) => match &query.body {
            pgvet_syntax::ast::QueryBody::Select(select) => select
                .into
                .as_ref()
                .filter(|into| into.persistence == Persistence::Temporary)
                .map(|into| into.name.name.text.clone()),
            _ => None,
        },
        _ => None,
    }
}
