//! EXCEPTION blocks that run once per row.

use super::subtransactions::{deletes_what_is_unused, fix_help, label_callee};
use super::transactions::transactions;
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{MigrationContext, RoutineContext, declare_rule};
use pgvet_model::routine::Bound;
use pgvet_model::routine::subtransactions::Source;

declare_rule! {
    /// A PL/pgSQL block with `EXCEPTION` that writes, and that runs once for each row: in a loop without a constant
    /// bound, or in a function that a row trigger runs.
    ///
    /// ## Why it matters
    ///
    /// Each run of a block with `EXCEPTION` is a subtransaction. A subtransaction that writes takes its own transaction
    /// ID, so a load of a million rows consumes a million transaction IDs. The next anti-wraparound vacuum then comes
    /// sooner. If one transaction has more than 64 of these subtransactions, the subtransaction cache of its session
    /// overflows. Every session on the server and its standbys then has to read `pg_subtrans` to see whether a row
    /// version is visible.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE FUNCTION import() RETURNS void LANGUAGE plpgsql AS $$
    /// DECLARE r record;
    /// BEGIN
    ///     FOR r IN SELECT * FROM staging LOOP
    ///         BEGIN
    ///             UPDATE orders SET total = r.total WHERE id = r.id;
    ///         EXCEPTION WHEN check_violation THEN
    ///             RAISE WARNING 'order % keeps its total', r.id;
    ///         END;
    ///     END LOOP;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE FUNCTION import() RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     UPDATE orders SET total = staging.total FROM staging WHERE staging.id = orders.id AND staging.total >= 0;
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - blocks that cannot write
    /// - blocks that do not write themselves, but call functions whose code pgvet does not know, if the block uses the
    ///   results of these functions. If `PERFORM` calls an unknown function, pgvet assumes that the function writes.
    /// - functions that a query calls only once, because the call is in FROM without a column as argument, in a
    ///   subquery that does not depend on the row, or in a query that finds a single row by a unique index
    /// - loops with a constant bound, which `subtransaction-overflow` counts
    /// - loops that commit in each iteration
    /// - loops that continue only when the block has failed, such as retries
    /// - blocks that `exception-driven-upsert` reports
    ///
    /// ## Confidence
    ///
    /// In two cases the confidence is `possible`, and the finding is shown only with `--confidence possible`:
    ///
    /// - The loop runs once for each database object, such as each table, of which there are usually few. pgvet
    ///   recognizes these loops because they read the system catalogs, the commands of an event trigger, or a table
    ///   that is filled only from the catalogs, or because each iteration creates or alters another object.
    /// - A row trigger tries to delete a row and catches `foreign_key_violation` if another row still refers to it.
    ///   Most of these subtransactions fail, and PostgreSQL removes failed subtransactions from the cache.
    "subtransaction-per-row", Bloat, Warning,
    { yields_to: &[&crate::rules::data::exception_driven_upsert::RULE.meta] }
    routine = check,
    migration = check_migration,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let found = context.routines.subtransactions(&context.routine);
    if found.sources.is_empty() {
        return;
    }
    let (in_loops, others): (Vec<&Source>, Vec<&Source>) =
        found.sources.iter().partition(|source| source.bound == Bound::Unbounded);
    // What a function of a reported migration begins is said there.
    let is_said_there = |source: &&Source| source.callee.is_some_and(|oid| context.routines.is_reported(oid));
    // What a function makes many by itself is a problem of that function.
    let is_said =
        |source: &&Source| context.routines.is_many_in_callee(source) || source.by_trigger && is_said_there(source);
    for source in in_loops.into_iter().filter(|source| !is_said(source)) {
        in_loop(context, source, reporter);
    }
    let hotness = context.hotness();
    if hotness.row_trigger().is_none() {
        return;
    }
    for source in others.into_iter().filter(|source| !is_said_there(source)) {
        let message = format!(
            "a row trigger runs {}, so this block starts a subtransaction for every row: with more than 64 in one \
             transaction, queries in every session can get slower",
            context.name()
        );
        let mut finding = reporter.report(source.range, message).help(fix_help()).runs_often(&hotness);
        if source.callee.is_none() && deletes_what_is_unused(context, source) {
            finding = finding.assuming(Assumption::UnusedRows);
        }
        label_callee(context.routines, source, finding).emit();
    }
}

fn in_loop(context: &RoutineContext<'_>, source: &Source, reporter: &mut Reporter<'_>) {
    let what = match source.callee {
        None => "this block starts a subtransaction in every iteration of the loop".to_owned(),
        Some(oid) => {
            let name = context.catalog.get_function(oid).map(|function| function.display_name()).unwrap_or_default();
            match source.in_loop {
                Some(_) => format!("{name} starts a subtransaction in every iteration of the loop"),
                None => format!("{name} starts a subtransaction for every row"),
            }
        }
    };
    let message = format!("{what}: with more than 64 in one transaction, queries in every session can get slower");
    let mut finding = reporter.report(source.range, message).help(fix_help());
    let is_often = context.hotness().row_trigger().is_some();
    if source.of_objects && !is_often {
        finding = finding.assuming(Assumption::ManyObjects);
    }
    if let Some(words) = source.in_loop {
        let which = if source.of_objects {
            "this loop iterates over database objects"
        } else {
            "this loop has no fixed number of iterations"
        };
        finding = finding.label(words, which);
    }
    label_callee(context.routines, source, finding).emit();
}

/// Statements of the migration itself that call such a function, or fire such a trigger, for each row.
fn check_migration(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let routines = context.routines();
    let begins = transactions(context).into_iter().flat_map(|transaction| transaction.begins);
    for source in begins.filter_map(|begin| begin.source) {
        let Some(callee) = source.callee.filter(|_| source.bound == Bound::Unbounded) else { continue };
        let is_said_there = source.by_trigger && routines.is_reported(callee);
        if is_said_there || routines.is_many_in_callee(&source) {
            continue;
        }
        let name = context.after.get_function(callee).map(|function| function.display_name()).unwrap_or_default();
        let what = if source.by_trigger { "the trigger function " } else { "" };
        let message = format!(
            "{what}{name} starts a subtransaction for every row: with more than 64 in one transaction, queries in every \
             session can get slower until this transaction ends"
        );
        label_callee(&routines, &source, reporter.report(source.range, message).help(fix_help())).emit();
    }
}
