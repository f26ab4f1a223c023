//! The locks of a statement as steps, in the order in which PostgreSQL takes them.

use super::cycle::{Branches, Requested, RowLock, Step};
use pgvet_model::catalog::{Oid, RelationKind};
use pgvet_model::effect::{DataChange, DataChangeKind, Effects, Lock, LockCause};
use pgvet_model::session::{Change, HeldLock};
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::TextRange;

/// A lock on a relation, as effects and sessions have it.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Request {
    relation: Oid,
    mode: LockMode,
    cause: LockCause,
    range: TextRange,
    /// See [`Lock::patience`].
    patience: Option<u64>,
}

impl Request {
    fn new(kind: RelationKind, request: Self) -> Option<Self> {
        let is_queried = kind.is_table() || kind == RelationKind::View;
        let waits = is_queried && request.cause != LockCause::WithoutWaiting;
        waits.then_some(request)
    }

    /// `None` for an index or a sequence, which nobody locks without its table, and for a lock that never waits.
    pub(in super::super) fn of(lock: &Lock) -> Option<Self> {
        let Lock { ref relation, mode, cause, range, patience } = *lock;
        Self::new(relation.kind, Self { relation: relation.oid, mode, cause, range, patience })
    }

    /// The same for a lock that others can wait for.
    pub(in super::super) fn held(lock: &HeldLock) -> Option<Self> {
        let HeldLock { relation, mode, cause, range, patience, .. } = *lock;
        Self::new(lock.kind, Self { relation, mode, cause, range, patience }).filter(|_| lock.exposed)
    }

    pub(in super::super) fn is_on(&self, relation: Oid) -> bool {
        self.relation == relation
    }

    /// Whether it is taken while the statement runs, after those that the statement names.
    fn is_of_run(self) -> bool {
        matches!(self.cause, LockCause::ForeignKey | LockCause::Function)
    }
}

/// A change of rows: the table and the kind.
pub(in super::super) type Written = (Oid, DataChangeKind);

pub(in super::super) fn written(change: &DataChange) -> Written {
    (change.relation.oid, change.kind)
}

/// The change if it locks so many rows that others use some of them.
pub(in super::super) fn written_in_bulk(change: &Change) -> Option<Written> {
    (!change.rows.is_few()).then_some((change.relation, change.kind))
}

/// A step with the range that causes it and why the lock is taken.
#[derive(Debug, Clone)]
pub(in super::super) struct Placed {
    pub(in super::super) step: Step,
    pub(in super::super) range: TextRange,
    pub(in super::super) cause: LockCause,
    /// See [`Lock::patience`]; that of the lock on the table for a lock on its rows.
    pub(in super::super) patience: Option<u64>,
}

/// The steps of a statement that deployed code runs.
pub(in super::super) fn steps_of(effects: &Effects, branches: &Branches) -> Vec<Placed> {
    let requests = effects.locks.iter().filter_map(Request::of).collect::<Vec<_>>();
    let written: Vec<Written> = effects.data_changes.iter().map(written).collect();
    ordered(&requests, &written, branches)
}

/// The locks of a statement in order, with those on rows: a statement locks all relations that it names before it
/// reads rows, and its foreign keys and triggers lock theirs afterwards.
pub(in super::super) fn ordered(requests: &[Request], written: &[Written], branches: &Branches) -> Vec<Placed> {
    let placed = |request: &Request, lock| Placed {
        step: Step { relation: request.relation, lock, branches: branches.clone() },
        range: request.range,
        cause: request.cause,
        patience: request.patience,
    };
    let (run, named): (Vec<&Request>, Vec<&Request>) = requests.iter().partition(|request| request.is_of_run());
    let mut steps: Vec<Placed> =
        named.iter().map(|request| placed(request, Requested::Relation(request.mode))).collect();
    for request in named {
        steps.extend(rows_of(request, written).map(|rows| placed(request, Requested::Rows(rows))));
    }
    for request in run {
        steps.push(placed(request, Requested::Relation(request.mode)));
        steps.extend(rows_of(request, written).map(|rows| placed(request, Requested::Rows(rows))));
    }
    steps
}

/// The lock on rows that comes with a lock on their table.
///
/// Source: PostgreSQL 18, `src/backend/utils/adt/ri_triggers.c`, `RI_FKey_check`, which selects FOR KEY SHARE;
/// documentation, 13.3.2.
fn rows_of(request: &Request, written: &[Written]) -> Option<RowLock> {
    match (request.mode, request.cause) {
        (LockMode::RowShare, LockCause::ForeignKey) => Some(RowLock::KeyShare),
        (LockMode::RowShare, _) => Some(RowLock::NoKeyUpdate),
        _ => {
            let kinds = written.iter().filter(|(relation, _)| *relation == request.relation).map(|(_, kind)| *kind);
            let lock = |kind| match kind {
                DataChangeKind::Insert => None,
                DataChangeKind::Update => Some(RowLock::NoKeyUpdate),
                DataChangeKind::Delete => Some(RowLock::Update),
            };
            kinds.filter_map(lock).max()
        }
    }
}
