//! The locks of the open transaction: which statement took each, and for how long it was held.

use crate::observation::{Held, LockTrace, StatementTrace};
use crate::poll::{Sample, first_seen, waited_until};
use crate::probe::Snapshot;
use pgvet_syntax::ast::LockMode;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// When something that was sent began and was answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) sent: Instant,
    pub(crate) done: Instant,
}

impl Span {
    pub(crate) fn duration(self) -> Duration {
        self.done.saturating_duration_since(self.sent)
    }
}

/// A lock that is still held.
#[derive(Debug, Clone, Copy)]
struct Open {
    statement: usize,
    lock: usize,
    /// It was taken after `sent`, and at the latest at `done`.
    taken: Span,
    /// Time spent on probes before it was taken.
    probes: Duration,
}

/// The locks of the open transaction.
#[derive(Debug, Default)]
pub(crate) struct LockBook {
    open: BTreeMap<(u32, LockMode), Open>,
    /// Time that the observer has taken while the transaction was open.
    pub(crate) probes: Duration,
    /// When the answer to somebody who waited for a relation came, who can tell better than COMMIT's answer.
    pub(crate) released: BTreeMap<u32, Instant>,
}

/// The state before a statement and before its transaction.
pub(crate) struct Surroundings<'a> {
    pub(crate) before: &'a Snapshot,
    pub(crate) after: &'a Snapshot,
    pub(crate) before_transaction: &'a BTreeSet<u32>,
}

impl LockBook {
    /// Relations that are locked in a mode that makes others wait.
    pub(crate) fn blocking(&self) -> impl Iterator<Item = (u32, LockMode)> {
        self.open.keys().copied().filter(|(_, mode)| mode.blocks_writes())
    }

    /// Notes which locks a statement took, and which it gave back (ROLLBACK TO).
    pub(crate) fn after_statement(
        &mut self,
        now: &BTreeSet<(u32, LockMode)>,
        span: Span,
        samples: &[Sample],
        around: &Surroundings<'_>,
        statements: &mut [StatementTrace],
    ) {
        self.release(|lock| !now.contains(&lock), span, statements);
        let Some(statement) = statements.len().checked_sub(1) else { return };
        let started = statements[statement].started;
        for &(oid, mode) in now {
            if self.open.contains_key(&(oid, mode)) {
                continue;
            }
            let relation = around.before.relation(oid).or_else(|| around.after.relation(oid));
            // TOAST tables are part of their table.
            let Some(relation) = relation else { continue };
            let locks = &mut statements[statement].locks;
            locks.push(LockTrace {
                relation: relation.clone(),
                mode,
                existed: around.before.relation(oid).is_some(),
                exposed: around.before_transaction.contains(&oid),
                acquired: started,
                held: Held::default(),
            });
            let lock = locks.len() - 1;
            let done = first_seen(samples, (oid, mode)).unwrap_or(span.done);
            let sent = waited_until(samples, (oid, mode)).unwrap_or(span.sent);
            locks[lock].acquired += sent.saturating_duration_since(span.sent);
            let taken = Span { sent, done };
            let open = Open { statement, lock, taken, probes: self.probes };
            self.open.insert((oid, mode), open);
        }
    }

    /// The transaction has ended: everything is released.
    pub(crate) fn after_transaction(&mut self, span: Span, statements: &mut [StatementTrace]) {
        self.release(|_| true, span, statements);
        self.probes = Duration::ZERO;
        self.released.clear();
    }

    fn release(
        &mut self,
        is_released: impl Fn((u32, LockMode)) -> bool,
        span: Span,
        statements: &mut [StatementTrace],
    ) {
        let released = &self.released;
        let probes = self.probes;
        self.open.retain(|lock, open| {
            if !is_released(*lock) {
                return true;
            }
            let end = released.get(&lock.0).map_or(span.done, |at| (*at).clamp(span.sent, span.done));
            let ours = probes.saturating_sub(open.probes);
            let between = |from: Instant, to: Instant| to.saturating_duration_since(from).saturating_sub(ours);
            let found = statements.get_mut(open.statement).and_then(|statement| statement.locks.get_mut(open.lock));
            if let Some(found) = found {
                found.held = Held {
                    best: between(open.taken.sent, end),
                    low: between(open.taken.done, span.sent),
                    high: between(open.taken.sent, span.done),
                };
            }
            false
        });
    }
}
