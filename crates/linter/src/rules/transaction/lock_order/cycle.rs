//! Deadlocks of two transactions, from the order in which each of them locks.

use pgvet_model::catalog::Oid;
use pgvet_model::effect::Branches;
use pgvet_syntax::ast::{LockMode, RowLockStrength};
use std::fmt;

/// A lock that a transaction takes and keeps until it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Step {
    pub(in super::super) relation: Oid,
    pub(in super::super) lock: Requested,
    /// The decisions of code that lead to it.
    pub(in super::super) branches: Branches,
}

/// What a transaction locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Requested {
    Relation(LockMode),
    /// Rows that the other transaction may lock as well.
    Rows(RowLockStrength),
}

/// Whether two locks on one row conflict.
///
/// Source: PostgreSQL 18 documentation, 13.3.2, table 13.3.
fn rows_conflict(left: RowLockStrength, right: RowLockStrength) -> bool {
    match (left.min(right), left.max(right)) {
        (_, RowLockStrength::Update) => true,
        (weaker, RowLockStrength::NoKeyUpdate) => weaker >= RowLockStrength::Share,
        _ => false,
    }
}

impl fmt::Display for Requested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relation(mode) => f.write_str(mode.sql()),
            Self::Rows(_) => f.write_str("row locks"),
        }
    }
}

impl Step {
    /// Whether one transaction must wait for this step while another holds the lock of that one.
    fn conflicts_with(&self, other: &Self) -> bool {
        self.relation == other.relation
            && match (self.lock, other.lock) {
                (Requested::Relation(own), Requested::Relation(other)) => own.conflicts_with(other),
                (Requested::Rows(own), Requested::Rows(other)) => rows_conflict(own, other),
                _ => false,
            }
    }
}

/// A deadlock, as positions in the steps of both transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Cycle {
    /// The lock that the first transaction holds and the second waits for.
    pub(in super::super) held: usize,
    /// The same with the transactions exchanged.
    pub(in super::super) other_held: usize,
    pub(in super::super) other_wanted: usize,
}

/// A deadlock at the step `wanted` of one transaction: both hold the locks of their earlier steps, none of which
/// excludes another, and each waits for one of the other's.
pub(in super::super) fn at(ours: &[Step], wanted: usize, theirs: &[Step]) -> Option<Cycle> {
    // Few steps of the other are in the way of one step.
    if !theirs.iter().any(|step| ours[wanted].conflicts_with(step)) {
        return None;
    }
    let before = &ours[..wanted];
    for (other_wanted, waits) in theirs.iter().enumerate().skip(1) {
        let Some(held) = before.iter().position(|held| waits.conflicts_with(held)) else { continue };
        let earlier = &theirs[..other_wanted];
        let blocks = |held: &Step| ours[wanted].conflicts_with(held) && !held.branches.excludes(&waits.branches);
        let Some(other_held) = earlier.iter().position(blocks) else { continue };
        let is_reached = |step: &&Step| {
            step.branches.precede(&waits.branches) || step.branches.precede(&earlier[other_held].branches)
        };
        let is_met = |held: &Step| before.iter().any(|ours| ours.conflicts_with(held));
        if !earlier.iter().filter(is_reached).any(is_met) {
            return Some(Cycle { held, other_held, other_wanted });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Requested::{Relation, Rows};
    use super::*;
    use LockMode::{AccessExclusive, AccessShare, RowExclusive, RowShare, Share};
    use pgvet_model::effect::Decision;

    const A: Oid = Oid(1);
    const B: Oid = Oid(2);

    fn steps(list: &[(Oid, Requested)]) -> Vec<Step> {
        list.iter()
            .map(|(relation, lock)| Step { relation: *relation, lock: *lock, branches: Branches::default() })
            .collect()
    }

    fn deadlocks(ours: &[(Oid, Requested)], theirs: &[(Oid, Requested)]) -> bool {
        let (ours, theirs) = (steps(ours), steps(theirs));
        (0..ours.len()).any(|wanted| at(&ours, wanted, &theirs).is_some())
    }

    #[test]
    fn opposite_orders_deadlock_and_equal_orders_do_not() {
        let ours = [(A, Relation(AccessExclusive)), (B, Relation(AccessExclusive))];
        assert!(deadlocks(&ours, &[(B, Relation(RowExclusive)), (A, Relation(RowShare))]));
        assert!(!deadlocks(&ours, &[(A, Relation(RowExclusive)), (B, Relation(RowShare))]));
        // The other holds what the migration needs first.
        assert!(!deadlocks(&ours, &[(A, Relation(AccessShare)), (B, Relation(RowShare)), (A, Relation(RowShare))]));
        // SHARE lets the other go on.
        let weak = [(A, Relation(Share)), (B, Relation(AccessExclusive))];
        assert!(!deadlocks(&weak, &[(B, Relation(RowExclusive)), (A, Relation(RowShare))]));
        assert!(deadlocks(&weak, &[(B, Relation(RowExclusive)), (A, Relation(RowExclusive))]));
    }

    #[test]
    fn upgrades_and_rows_deadlock() {
        let upgrade = [(A, Relation(Share)), (A, Relation(AccessExclusive))];
        assert!(deadlocks(&upgrade, &[(A, Relation(AccessShare)), (A, Relation(RowExclusive))]));
        assert!(!deadlocks(&upgrade, &[(A, Relation(RowExclusive))]));
        let rows =
            [(A, Relation(RowExclusive)), (A, Rows(RowLockStrength::NoKeyUpdate)), (B, Relation(AccessExclusive))];
        let update =
            [(B, Relation(RowExclusive)), (A, Relation(RowExclusive)), (A, Rows(RowLockStrength::NoKeyUpdate))];
        assert!(deadlocks(&rows, &update));
        let reference = [(B, Relation(RowExclusive)), (A, Relation(RowShare)), (A, Rows(RowLockStrength::KeyShare))];
        assert!(!deadlocks(&rows, &reference));
        // A change of a key.
        let keys = [(A, Relation(RowExclusive)), (A, Rows(RowLockStrength::Update)), (B, Relation(AccessExclusive))];
        assert!(deadlocks(&keys, &reference));
    }

    #[test]
    fn alternatives_are_not_combined() {
        let ours = steps(&[(A, Relation(AccessExclusive)), (B, Relation(AccessExclusive))]);
        let mut theirs = steps(&[(B, Relation(RowExclusive)), (A, Relation(RowExclusive))]);
        theirs[0].branches = Branches::new(&[Decision::branch(0, 0)]);
        assert!(at(&ours, 1, &theirs).is_some());
        theirs[1].branches = Branches::new(&[Decision::branch(0, 1)]);
        assert_eq!(at(&ours, 1, &theirs), None);
        // A step that may be skipped keeps nobody out.
        let mut guarded =
            steps(&[(A, Relation(AccessShare)), (B, Relation(RowExclusive)), (A, Relation(RowExclusive))]);
        assert_eq!(at(&ours, 1, &guarded), None);
        guarded[0].branches = Branches::new(&[Decision::branch(0, 0)]);
        assert!(at(&ours, 1, &guarded).is_some());
    }
}
