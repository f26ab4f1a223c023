//! EXCEPTION blocks that run once per row.

use super::subtransactions::{fix_help, label_callee};
use crate::report::Reporter;
use crate::routine::RoutineContext;
use crate::routine::subtransactions::{Bound, Source};
use crate::rule::declare_rule;

declare_rule! {
    /// A block with `EXCEPTION` runs, and writes, once for each row: in a loop without a constant bound, or in a function
    /// that a row trigger runs.
    ///
    /// ## Why it matters
    ///
    /// Every such block is a subtransaction. One that writes takes a transaction ID of its own, so that a load of a million
    /// rows uses a million of them and brings the next freeze nearer. When one transaction has more than 64 of them, the
    /// cache of its session overflows, and every snapshot on the server, standbys included, must look into `pg_subtrans`
    /// for each row version that it meets.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE FUNCTION import() RETURNS void LANGUAGE plpgsql AS $$
    /// DECLARE r record;
    /// BEGIN
    ///     FOR r IN SELECT * FROM staging LOOP
    ///         BEGIN
    ///             INSERT INTO orders (id, total) VALUES (r.id, r.total);
    ///         EXCEPTION WHEN unique_violation THEN
    ///             NULL;
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
    ///     INSERT INTO orders (id, total) SELECT id, total FROM staging ON CONFLICT (id) DO NOTHING;
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// For blocks that cannot write, for loops with a constant bound (`subtransaction-overflow` counts those), where the
    /// loop commits in each round, and for loops that go on only when the block has failed, such as retries.
    "subtransaction-per-row", Bloat, Warning,
    {}
    routine = check,
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
    for source in in_loops.into_iter().filter(|source| !(source.by_trigger && is_said_there(source))) {
        in_loop(context, source, reporter);
    }
    let hotness = context.hotness();
    if hotness.row_trigger().is_none() {
        return;
    }
    for source in others.into_iter().filter(|source| !is_said_there(source)) {
        let message = format!(
            "this block is a subtransaction for every row, because a row trigger runs {}: each takes a transaction ID, \
             and from the 65th row in a transaction on all snapshots get slower",
            context.name()
        );
        let finding = hotness.label(reporter.report(source.range, message).help(fix_help()));
        drop(label_callee(context.routines, source, finding));
    }
}

fn in_loop(context: &RoutineContext<'_>, source: &Source, reporter: &mut Reporter<'_>) {
    let what = match source.callee {
        None => "this block begins a subtransaction in every round of the loop".to_owned(),
        Some(oid) => {
            let name = context.catalog.get_function(oid).map(|function| function.display_name()).unwrap_or_default();
            match source.in_loop {
                Some(_) => format!("{name} begins a subtransaction in every round of the loop"),
                None => format!("{name} begins a subtransaction for every row"),
            }
        }
    };
    let message = format!(
        "{what}: each takes a transaction ID, and from the 65th in a transaction on all snapshots on the server get slower"
    );
    let mut finding = reporter.report(source.range, message).help(fix_help());
    if let Some(words) = source.in_loop {
        finding = finding.label(words, "this loop has no constant bound");
    }
    drop(label_callee(context.routines, source, finding));
}
