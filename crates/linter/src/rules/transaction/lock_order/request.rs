//! The locks of a statement as steps, in the order in which PostgreSQL takes them.

use super::cycle::{Requested, Step};
use pgvet_model::catalog::{Oid, RelationKind};
use pgvet_model::effect::{Branches, DataChangeKind, Effects, Lock, LockCause};
use pgvet_model::session::{Change, HeldLock};
use pgvet_syntax::ast::{LockMode, RowLockStrength};
use pgvet_syntax::source::TextRange;

/// A lock on a relation, as effects and sessions have it.
#[derive(Debug, Clone)]
pub(in super::super) struct Request {
    relation: Oid,
    mode: LockMode,
    cause: LockCause,
    range: TextRange,
    /// See [`Lock::patience`].
    patience: Option<u64>,
    branches: Branches,
}

impl Request {
    fn new(kind: RelationKind, request: Self) -> Option<Self> {
        let is_queried = kind.is_table() || kind == RelationKind::View;
        let waits = is_queried && request.cause != LockCause::WithoutWaiting;
        waits.then_some(request)
    }

    /// `None` for an index or a sequence, which nobody locks without its table, and for a lock that never waits.
    pub(in super::super) fn of(lock: &Lock) -> Option<Self> {
        let Lock { ref relation, mode, cause, range, patience, ref branches } = *lock;
        let branches = branches.clone();
        Self::new(relation.kind, Self { relation: relation.oid, mode, cause, range, patience, branches })
    }

    /// The same for a lock that others can wait for.
    pub(in super::super) fn held(lock: &HeldLock) -> Option<Self> {
        let HeldLock { relation, mode, cause, range, patience, .. } = *lock;
        let branches = Branches::default();
        Self::new(lock.kind, Self { relation, mode, cause, range, patience, branches }).filter(|_| lock.exposed)
    }

    pub(in super::super) fn is_on(&self, relation: Oid) -> bool {
        self.relation == relation
    }

    /// Whether it is taken while the statement runs, after those that the statement names.
    fn is_of_run(&self) -> bool {
        matches!(self.cause, LockCause::ForeignKey | LockCause::Function)
    }
}

/// Locks on rows: the table and the strength.
pub(in super::super) type RowsLocked = (Oid, RowLockStrength);

/// The locks of a change of rows; `None` for new rows, which nobody else sees.
///
/// Source: PostgreSQL 18 documentation, 13.3.2.
pub(in super::super) fn locked_by(relation: Oid, kind: DataChangeKind, changes_key: bool) -> Option<RowsLocked> {
    let strength = match kind {
        DataChangeKind::Insert => return None,
        DataChangeKind::Update if !changes_key => RowLockStrength::NoKeyUpdate,
        DataChangeKind::Update | DataChangeKind::Delete => RowLockStrength::Update,
    };
    Some((relation, strength))
}

/// The locks if there are so many that others use some of the rows.
pub(in super::super) fn locked_in_bulk(change: &Change) -> Option<RowsLocked> {
    if change.rows.is_few() {
        return None;
    }
    locked_by(change.relation, change.kind, change.changes_key)
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

/// The steps of a statement that deployed code runs where these decisions lead to it.
pub(in super::super) fn steps_of(effects: &Effects, branches: &Branches) -> Vec<Placed> {
    let requests = effects.locks.iter().filter_map(Request::of).collect::<Vec<_>>();
    let changed = effects.data_changes.iter();
    let changed = changed.filter_map(|change| locked_by(change.relation.oid, change.kind, change.changes_key));
    let read = effects.reads.iter();
    let read = read.filter_map(|read| read.row_lock.as_ref().map(|(_, strength)| (read.relation.oid, *strength)));
    let mut steps = ordered(&requests, &changed.chain(read).collect::<Vec<_>>());
    for placed in &mut steps {
        placed.step.branches = branches.and(&placed.step.branches);
    }
    steps
}

/// The locks of a statement in order, with those on rows: a statement locks all relations that it names before it
/// reads rows, and its foreign keys and triggers lock theirs afterwards.
pub(in super::super) fn ordered(requests: &[Request], rows: &[RowsLocked]) -> Vec<Placed> {
    let placed = |request: &Request, lock| Placed {
        step: Step { relation: request.relation, lock, branches: request.branches.clone() },
        range: request.range,
        cause: request.cause,
        patience: request.patience,
    };
    let (run, named): (Vec<&Request>, Vec<&Request>) = requests.iter().partition(|request| request.is_of_run());
    let mut steps: Vec<Placed> =
        named.iter().map(|request| placed(request, Requested::Relation(request.mode))).collect();
    for request in named {
        steps.extend(rows_of(request, rows).map(|rows| placed(request, Requested::Rows(rows))));
    }
    for request in run {
        steps.push(placed(request, Requested::Relation(request.mode)));
        steps.extend(rows_of(request, rows).map(|rows| placed(request, Requested::Rows(rows))));
    }
    steps
}

/// The lock on rows that comes with a lock on their table.
///
/// Source: PostgreSQL 18, `src/backend/utils/adt/ri_triggers.c`, `RI_FKey_check`, which selects FOR KEY SHARE;
/// documentation, 13.3.2.
fn rows_of(request: &Request, rows: &[RowsLocked]) -> Option<RowLockStrength> {
    let own = || rows.iter().filter(|(relation, _)| *relation == request.relation).map(|(_, strength)| *strength).max();
    match (request.mode, request.cause) {
        (LockMode::RowShare, LockCause::ForeignKey) => Some(RowLockStrength::KeyShare),
        (LockMode::RowShare, _) => own().or(Some(RowLockStrength::NoKeyUpdate)),
        _ => own(),
    }
}
