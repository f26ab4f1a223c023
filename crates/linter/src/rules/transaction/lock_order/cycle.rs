//! Deadlocks of two transactions, from the order in which each of them locks.

use pgvet_model::catalog::Oid;
use pgvet_syntax::ast::LockMode;
use std::fmt;
use std::rc::Rc;

/// A lock that a transaction takes and keeps until it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Step {
    pub(in super::super) relation: Oid,
    pub(in super::super) lock: Requested,
    /// Empty for a lock that the transaction always takes.
    pub(in super::super) branches: Branches,
}

/// The decisions that lead to a step of code: a number for each decision, and the number of the alternative.
pub(in super::super) type Branches = Rc<[(usize, usize)]>;

/// What a transaction locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Requested {
    Relation(LockMode),
    /// Rows that the other transaction may lock as well.
    Rows(RowLock),
}

/// A lock on a row, the weakest first. FOR SHARE, which no data change and no foreign key takes, is not listed.
///
/// Source: PostgreSQL 18 documentation, 13.3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum RowLock {
    KeyShare,
    NoKeyUpdate,
    Update,
}

impl RowLock {
    fn conflicts_with(self, other: Self) -> bool {
        self.max(other) == Self::Update || self.min(other) == Self::NoKeyUpdate
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
                (Requested::Rows(own), Requested::Rows(other)) => own.conflicts_with(other),
                _ => false,
            }
    }

    /// Whether no run of the code gets to both.
    fn excludes(&self, other: &Self) -> bool {
        let is_other = |(decision, alternative): &(usize, usize)| {
            other.branches.iter().any(|(same, chosen)| same == decision && chosen != alternative)
        };
        self.branches.iter().any(is_other)
    }

    /// Whether each run that gets to `later` takes this step before.
    fn precedes(&self, later: &Self) -> bool {
        self.branches.iter().all(|branch| later.branches.contains(branch))
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
        let blocks = |held: &Step| ours[wanted].conflicts_with(held) && !held.excludes(waits);
        let Some(other_held) = earlier.iter().position(blocks) else { continue };
        let is_reached = |step: &&Step| step.precedes(waits) || step.precedes(&earlier[other_held]);
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

    const A: Oid = Oid(1);
    const B: Oid = Oid(2);

    fn steps(list: &[(Oid, Requested)]) -> Vec<Step> {
        list.iter().map(|(relation, lock)| Step { relation: *relation, lock: *lock, branches: Rc::new([]) }).collect()
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
        let rows = [(A, Relation(RowExclusive)), (A, Rows(RowLock::NoKeyUpdate)), (B, Relation(AccessExclusive))];
        let update = [(B, Relation(RowExclusive)), (A, Relation(RowExclusive)), (A, Rows(RowLock::NoKeyUpdate))];
        assert!(deadlocks(&rows, &update));
        let reference = [(B, Relation(RowExclusive)), (A, Relation(RowShare)), (A, Rows(RowLock::KeyShare))];
        assert!(!deadlocks(&rows, &reference));
    }

    #[test]
    fn alternatives_are_not_combined() {
        let ours = steps(&[(A, Relation(AccessExclusive)), (B, Relation(AccessExclusive))]);
        let mut theirs = steps(&[(B, Relation(RowExclusive)), (A, Relation(RowExclusive))]);
        theirs[0].branches = Rc::new([(0, 0)]);
        assert!(at(&ours, 1, &theirs).is_some());
        theirs[1].branches = Rc::new([(0, 1)]);
        assert_eq!(at(&ours, 1, &theirs), None);
        // A step that may be skipped keeps nobody out.
        let mut guarded =
            steps(&[(A, Relation(AccessShare)), (B, Relation(RowExclusive)), (A, Relation(RowExclusive))]);
        assert_eq!(at(&ours, 1, &guarded), None);
        guarded[0].branches = Rc::new([(0, 0)]);
        assert!(at(&ours, 1, &guarded).is_some());
    }
}
