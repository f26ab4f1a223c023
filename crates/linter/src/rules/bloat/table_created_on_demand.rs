//! Permanent tables that code creates at run time.

use super::catalog_rows::shown;
use crate::report::Reporter;
use crate::rule::{RoutineContext, declare_rule};
use pgvet_model::routine::Creation;
use pgvet_syntax::ast::Persistence;
use pgvet_syntax::plpgsql::HOLE;

declare_rule! {
    /// A function or procedure that creates a permanent table when it is called.
    ///
    /// ## Why it matters
    ///
    /// The schema then depends on the calls of the application: tables appear that no migration creates, with grants,
    /// indexes and constraints that nobody reviews. Each of these tables adds rows to the system catalogs, which query
    /// planning, backups and `pg_dump` have to read. Every role that calls the function must be allowed to create
    /// tables. If the function is `SECURITY DEFINER`, its owner needs this privilege instead.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE FUNCTION new_tenant(tenant text) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     EXECUTE format('CREATE TABLE %I (id bigint PRIMARY KEY, payload jsonb)', 'events_' || tenant);
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE events (tenant text, id bigint, payload jsonb, PRIMARY KEY (tenant, id));
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - `DO` blocks, which run once
    /// - functions that create or attach partitions, or have the word `partition` in their name: they are usually
    ///   scheduled maintenance. If pgvet knows that the function runs often, it reports the function nevertheless.
    /// - a table that the migrations have already created
    "table-created-on-demand", Bloat, Warning,
    {}
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    if context.function().is_none() {
        return;
    }
    for creation in context.creations() {
        let is_maintenance = (creation.partition || makes_partitions(context)) && !context.hotness().is_hot();
        if creation.persistence != Persistence::Temporary && !is_maintenance {
            report(context, &creation, reporter);
        }
    }
}

/// A table that is made like another one is a partition where the code attaches it, or says in its name what it does.
fn makes_partitions(context: &RoutineContext<'_>) -> bool {
    let named = context.function().is_some_and(|function| function.name.to_lowercase().contains("partition"));
    named || context.text(context.routine.statement).to_ascii_lowercase().contains("attach partition")
}

fn report(context: &RoutineContext<'_>, creation: &Creation, reporter: &mut Reporter<'_>) {
    let name = &creation.name.name.text;
    let what = match (creation.partition, name.contains(HOLE)) {
        (true, _) => "a partition".to_owned(),
        (false, true) => "a table whose name is known only at run time".to_owned(),
        (false, false) => format!("the permanent table `{name}`"),
    };
    let mut message = format!("a call of {} creates {what}", context.name());
    if let Some(rows) = creation.rows {
        let needs = match (creation.partition, name.contains(HOLE)) {
            (true, true) => ": each partition needs",
            (false, true) => ": each table needs",
            (_, false) => ", which needs",
        };
        message = format!("{message}{needs} {}", shown(rows, "", context.settings.versions));
    }
    let help = match (creation.partition, name.contains(HOLE)) {
        (true, _) => "create partitions ahead of time, in a scheduled job",
        (false, true) => {
            "create one table in a migration, and store the variable part of the name in a column, such as `tenant_id`"
        }
        (false, false) => "create the table in a migration",
    };
    let hotness = context.hotness();
    reporter.report(creation.range, message).help(help).runs_often(&hotness).emit();
}
