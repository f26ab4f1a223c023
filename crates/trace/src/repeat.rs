//! Several runs of the same migrations become one: medians, and the spread between the fastest and the slowest.

use crate::observation::{Deadlock, Held, LockTrace, MigrationTrace, Spread, StatementTrace, TransactionTrace};
use crate::rank::median;
use crate::runner::blocked;
use std::time::Duration;

/// Takes everything but times from the first run, and medians of times over all. Runs that differ, for
/// example because one failed, are skipped.
pub(crate) fn merge(mut runs: Vec<MigrationTrace>) -> Option<MigrationTrace> {
    if runs.is_empty() {
        return None;
    }
    // A deadlock needs a moment that another run may miss.
    let deadlocks: Vec<Deadlock> = runs.iter_mut().flat_map(|run| std::mem::take(&mut run.deadlocks)).collect();
    let mut first = runs.remove(0);
    first.deadlocks = deadlocks;
    let same = |run: &MigrationTrace| {
        let sql = |trace: &MigrationTrace| trace.statements.iter().map(|one| one.sql.clone()).collect::<Vec<_>>();
        sql(run) == sql(&first)
    };
    runs.retain(same);
    if runs.is_empty() {
        return Some(first);
    }
    first.duration = median(runs.iter().map(|run| run.duration).chain([first.duration]).collect());
    let mut clock = Duration::ZERO;
    for at in 0..first.statements.len() {
        let others: Vec<&StatementTrace> = runs.iter().map(|run| &run.statements[at]).collect();
        merge_statement(&mut first.statements[at], &others, clock);
        clock += first.statements[at].duration;
    }
    for transaction in &mut first.transactions {
        let TransactionTrace { statements, blocked: known, .. } = transaction;
        *known = blocked(statements, &first.statements);
    }
    Some(first)
}

fn merge_statement(statement: &mut StatementTrace, others: &[&StatementTrace], clock: Duration) {
    let mut durations: Vec<Duration> = others.iter().map(|other| other.duration).chain([statement.duration]).collect();
    durations.sort_unstable();
    statement.spread =
        Some(Spread { runs: durations.len(), least: durations[0], most: durations[durations.len() - 1] });
    statement.duration = median(durations);
    for lock in &mut statement.locks {
        lock.acquired = clock + lock.acquired.saturating_sub(statement.started);
        let same = |other: &&LockTrace| {
            other.mode == lock.mode
                && other.relation.name == lock.relation.name
                && other.relation.schema == lock.relation.schema
        };
        let found = others.iter().filter_map(|other| other.locks.iter().find(same));
        let all: Vec<Held> = found.map(|lock| lock.held).chain([lock.held]).collect();
        let part = |part: fn(&Held) -> Duration| median(all.iter().map(part).collect());
        lock.held = Held { best: part(|held| held.best), low: part(|held| held.low), high: part(|held| held.high) };
    }
    statement.started = clock;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(milliseconds: &[u64]) -> MigrationTrace {
        let statement = |milliseconds: &u64| StatementTrace {
            duration: Duration::from_millis(*milliseconds),
            ..StatementTrace::default()
        };
        MigrationTrace { statements: milliseconds.iter().map(statement).collect(), ..MigrationTrace::default() }
    }

    #[test]
    fn times_become_medians_with_their_spread() {
        let merged = merge(vec![run(&[10, 1]), run(&[30, 2]), run(&[20, 9])]).unwrap();
        let millis = Duration::from_millis;
        assert_eq!(merged.statements[0].duration, millis(20));
        assert_eq!(merged.statements[0].spread, Some(Spread { runs: 3, least: millis(10), most: millis(30) }));
        assert_eq!((merged.statements[1].duration, merged.statements[1].started), (millis(2), millis(20)));
    }

    #[test]
    fn a_run_that_stopped_elsewhere_does_not_count() {
        let merged = merge(vec![run(&[10]), run(&[30, 2])]).unwrap();
        assert_eq!((merged.statements.len(), merged.statements[0].spread), (1, None));
    }
}
