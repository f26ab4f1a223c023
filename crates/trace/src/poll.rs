//! Samples of a backend's locks while a statement runs, taken from another database.
//!
//! A connection that holds a snapshot in the same database would stall CREATE INDEX CONCURRENTLY; from another one it
//! does not.

use crate::connection::Connection;
use crate::observation::Held;
use crate::probe::{lock, locks_sql};
use crate::progress::{self, Progress};
use pgvet_syntax::ast::LockMode;
use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, Instant};

/// The result of one query of `pg_locks`, and when it was sent and answered.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    start: Instant,
    end: Instant,
    locks: Vec<(u32, LockMode)>,
    waiting: Vec<(u32, LockMode)>,
}

/// The backend to look at, and how.
pub(crate) struct Watch<'a> {
    pub(crate) observer: &'a Connection,
    pub(crate) pid: i32,
    pub(crate) interval: Duration,
    pub(crate) major: u8,
    /// Called with the progress of the statement, if a caller wants it.
    pub(crate) progress: Option<&'a mut dyn FnMut(&Progress)>,
}

/// Runs a statement and looks at the locks of its backend.
pub(crate) async fn watch<T>(watch: Watch<'_>, statement: impl Future<Output = T>) -> (T, Vec<Sample>) {
    let Watch { observer, pid, interval, major, mut progress } = watch;
    let mut samples = Vec::new();
    let mut told = Instant::now();
    let sql = locks_sql(&pid.to_string());
    let look = async {
        loop {
            tokio::time::sleep(interval).await;
            let start = Instant::now();
            // A look that fails is a look less; the statement itself tells when the server is gone.
            let Ok(rows) = observer.rows(&sql).await else { continue };
            let (granted, waiting): (Vec<_>, Vec<_>) =
                rows.iter().filter_map(lock).partition(|(_, _, granted)| *granted);
            let modes =
                |locks: Vec<(u32, LockMode, bool)>| locks.into_iter().map(|(oid, mode, _)| (oid, mode)).collect();
            samples.push(Sample { start, end: Instant::now(), locks: modes(granted), waiting: modes(waiting) });
            if let Some(tell) = progress.as_mut().filter(|_| told.elapsed() >= progress::INTERVAL) {
                told = Instant::now();
                if let Ok(Some(progress)) = progress::of_backend(observer, pid, major).await {
                    tell(&progress);
                }
            }
        }
    };
    let result = tokio::select! {
        biased;
        result = statement => result,
        never = look => never,
    };
    (result, samples)
}

/// When a lock was first seen at the latest: the end of the first sample that has it.
pub(crate) fn first_seen(samples: &[Sample], lock: (u32, LockMode)) -> Option<Instant> {
    samples.iter().find(|sample| sample.locks.contains(&lock)).map(|sample| sample.end)
}

/// Until when the statement waited for a lock that others held: the start of the last sample that saw it wait.
pub(crate) fn waited_until(samples: &[Sample], lock: (u32, LockMode)) -> Option<Instant> {
    samples.iter().rev().find(|sample| sample.waiting.contains(&lock)).map(|sample| sample.start)
}

/// How long each lock was held, summed over the times that it was held, and when it was first taken at the earliest.
/// The locks were there somewhere between `sent` and `done`.
pub(crate) fn held(samples: &[Sample], sent: Instant, done: Instant) -> BTreeMap<(u32, LockMode), (Instant, Held)> {
    let mut held: BTreeMap<(u32, LockMode), (Instant, Held)> = BTreeMap::new();
    let mut open: BTreeMap<(u32, LockMode), usize> = BTreeMap::new();
    for at in 0..=samples.len() {
        let present: &[(u32, LockMode)] = samples.get(at).map_or(&[], |sample| &sample.locks);
        let ended: Vec<_> = open.keys().filter(|lock| !present.contains(lock)).copied().collect();
        for lock in ended {
            let Some(first) = open.remove(&lock) else { continue };
            let before = first.checked_sub(1).map_or(sent, |before| samples[before].start);
            let after = samples.get(at).map_or(done, |sample| sample.end);
            let low = samples[at - 1].start.saturating_duration_since(samples[first].end);
            let high = after.saturating_duration_since(before);
            let interval = Held { best: (low + high) / 2, low, high };
            held.entry(lock).and_modify(|(_, sum)| *sum = sum.plus(interval)).or_insert((before, interval));
        }
        for lock in present {
            open.entry(*lock).or_insert(at);
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_hold_what_lies_between_samples() {
        let zero = Instant::now();
        let at = |milliseconds: u64| zero + Duration::from_millis(milliseconds);
        let sample = |from: u64, locks: &[(u32, LockMode)]| Sample {
            start: at(from),
            end: at(from + 1),
            locks: locks.to_vec(),
            waiting: Vec::new(),
        };
        let lock = (1, LockMode::Share);
        let samples = [sample(10, &[]), sample(20, &[lock]), sample(30, &[lock]), sample(40, &[]), sample(50, &[lock])];
        let held = held(&samples, at(0), at(60));
        // Seen at 20 and 30, so from 10..21 to 30..41; and at 50, so from 40..51 to 50..60.
        let (first, sum) = held[&lock];
        assert_eq!(first, at(10));
        assert_eq!((sum.low, sum.high), (Duration::from_millis(9), Duration::from_millis(31 + 20)));
    }
}
