//! More subtransactions in a transaction than a session caches.

use super::subtransactions::{fix_help, label_callee};
use super::transactions::{Begin, transactions};
use crate::report::Reporter;
use crate::rule::{MigrationContext, RoutineContext, declare_rule};
use pgvet_model::routine::Bound;
use pgvet_model::routine::subtransactions::{CACHED, Source};

declare_rule! {
    /// A transaction that starts more than 64 subtransactions that write.
    ///
    /// ## Why it matters
    ///
    /// For each session, PostgreSQL keeps the IDs of up to 64 subtransactions in shared memory
    /// (`PGPROC_MAX_CACHED_SUBXIDS`). The 65th subtransaction makes this cache overflow. From then until the
    /// transaction ends, every session must read `pg_subtrans` to see whether a row is visible. In combination with a
    /// long transaction, these reads have brought whole servers and their standbys to a halt. `RELEASE SAVEPOINT` does
    /// not remove an ID from the cache.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// DO $$
    /// BEGIN
    ///     FOR i IN 1..1000 LOOP
    ///         BEGIN
    ///             INSERT INTO orders (id) VALUES (i);
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
    /// INSERT INTO orders (id) SELECT generate_series(1, 1000) ON CONFLICT (id) DO NOTHING;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - subtransactions that cannot write
    /// - up to 64 subtransactions in a transaction
    /// - loops without a constant bound, which `subtransaction-per-row` reports
    ///
    /// pgvet counts the subtransactions along the control flow. A loop with a constant bound multiplies the count. Of
    /// several branches, only the one that starts the most subtransactions is counted. `COMMIT` resets the count.
    "subtransaction-overflow", Bloat, Error,
    {}
    routine = check,
    migration = check_migration,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let found = context.routines.subtransactions(&context.routine);
    let Bound::AtMost(most) = found.most else { return };
    // A loop that exceeds the limit by itself is reported at the loop, others at the one that exceeds it.
    let Some(source) = source_to_blame(&found.sources).filter(|_| most > CACHED) else { return };
    let routines = context.routines;
    let is_said_there =
        |oid| routines.is_reported(oid) && routines.subtransactions_of_call(oid) > Bound::AtMost(CACHED);
    if source.callee.is_some_and(is_said_there) {
        return;
    }
    let message = format!(
        "{} starts {} subtransactions in one transaction, more than the {CACHED} that PostgreSQL caches: queries in \
         every session can get slower until the transaction ends",
        context.name(),
        found.most
    );
    let mut finding = reporter.report(source.range, message).help(fix_help());
    if let Some(words) = source.in_loop {
        finding = finding.label(words, "each iteration of this loop starts subtransactions");
    }
    label_callee(context.routines, source, finding).emit();
}

/// The source that begins most of them, if that alone is too many; else the one with which they are too many.
fn source_to_blame(sources: &[Source]) -> Option<&Source> {
    let limit = Bound::AtMost(CACHED);
    let mut sum = Bound::ZERO;
    let passes = |source: &&Source| {
        sum = sum + source.bound;
        sum > limit
    };
    let alone = sources.iter().find(|source| source.bound > limit);
    alone.or_else(|| sources.iter().find(passes)).or_else(|| sources.last())
}

/// SAVEPOINTs, and code that together with them, or several times, begins too many.
fn check_migration(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    for transaction in transactions(context) {
        let (mut sum, mut alone) = (Bound::ZERO, false);
        let passed = transaction.begins.iter().find(|begin: &&Begin| {
            // Code that begins too many by itself is reported where it is.
            alone |= begin.bound > Bound::AtMost(CACHED);
            sum = sum + begin.bound;
            sum > Bound::AtMost(CACHED)
        });
        let Some(passed) = passed.filter(|_| !alone) else { continue };
        let total = transaction.begins.iter().fold(Bound::ZERO, |sum, begin| sum + begin.bound);
        let Bound::AtMost(_) = total else { continue };
        let message = format!(
            "the transaction starts {total} subtransactions, more than the {CACHED} that PostgreSQL caches: queries \
             in every session can get slower until the transaction ends"
        );
        let help = "split the work into several transactions, or remove most of the savepoints";
        let mut finding = reporter.report(passed.range, message).help(help);
        if let Some(first) = transaction.begins.first() {
            finding = finding.label(first.range, "the first subtransaction");
        }
        finding.emit();
    }
}
