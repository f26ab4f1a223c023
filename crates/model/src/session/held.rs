//! What an open transaction holds, in order and by relation: a transaction may lock tens of thousands of tables.

use super::{Change, HeldLock};
use crate::catalog::Oid;
use crate::effect::LockCause;
use imbl::Vector;
use pgvet_syntax::ast::LockMode;
use rustc_hash::FxBuildHasher;

type HashMap<K, V> = imbl::GenericHashMap<K, V, FxBuildHasher, imbl::shared_ptr::DefaultSharedPtr>;

/// What concerns a relation.
pub trait OfRelation: Clone {
    fn relation(&self) -> Oid;
}

impl OfRelation for HeldLock {
    fn relation(&self) -> Oid {
        self.relation
    }
}

impl OfRelation for Change {
    fn relation(&self) -> Oid {
        self.relation
    }
}

/// A list that also finds its entries by their relation. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct ByRelation<T: OfRelation> {
    all: Vector<T>,
    /// Positions in the list, in order.
    of_relation: HashMap<Oid, Vector<usize>>,
}

impl<T: OfRelation> Default for ByRelation<T> {
    fn default() -> Self {
        Self { all: Vector::new(), of_relation: HashMap::default() }
    }
}

impl<T: OfRelation> ByRelation<T> {
    /// All entries, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter()
    }

    /// The entries about one relation, the oldest first.
    pub fn of(&self, relation: Oid) -> impl Iterator<Item = &T> {
        self.of_relation.get(&relation).into_iter().flatten().filter_map(|at| self.all.get(*at))
    }

    fn len(&self) -> usize {
        self.all.len()
    }

    fn push(&mut self, entry: T) {
        self.of_relation.entry(entry.relation()).or_default().push_back(self.all.len());
        self.all.push_back(entry);
    }

    fn truncate(&mut self, length: usize) {
        while self.all.len() > length {
            let Some(entry) = self.all.pop_back() else { return };
            if let Some(positions) = self.of_relation.get_mut(&entry.relation()) {
                positions.pop_back();
            }
        }
    }
}

/// Rows that a transaction has changed.
pub type Changes = ByRelation<Change>;

impl Changes {
    /// Adds what another list holds.
    pub(crate) fn append(&mut self, others: &Self) {
        if self.all.is_empty() { self.clone_from(others) } else { self.extend(others.iter().cloned()) }
    }

    pub(crate) fn extend(&mut self, changes: impl IntoIterator<Item = Change>) {
        changes.into_iter().for_each(|change| self.push(change));
    }
}

/// Locks that a transaction holds until its end, in the order in which they were taken.
#[derive(Debug, Clone, Default)]
pub struct HeldLocks {
    all: ByRelation<HeldLock>,
    /// Positions of those for which somebody may wait, and that make writers wait.
    strong: Vector<usize>,
    /// Positions of those that a new foreign key takes on the other table, and for which somebody may wait.
    foreign_keys: Vector<usize>,
}

impl HeldLocks {
    pub fn iter(&self) -> impl Iterator<Item = &HeldLock> {
        self.all.iter()
    }

    /// The locks on one relation.
    pub fn of(&self, relation: Oid) -> impl Iterator<Item = &HeldLock> {
        self.all.of(relation)
    }

    /// Whether the transaction surely holds a lock on the relation that is at least as strong.
    pub fn holds(&self, relation: Oid, mode: LockMode) -> bool {
        self.of(relation).any(|held| held.mode >= mode && held.unseen_part.is_none())
    }

    /// Whether a lock on the relation makes writers wait.
    pub fn blocks_writes(&self, relation: Oid) -> bool {
        self.of(relation).any(|held| held.mode.blocks_writes())
    }

    /// The locks for which somebody may wait, and that make writers wait.
    pub fn strong(&self) -> impl Iterator<Item = &HeldLock> {
        self.at(&self.strong)
    }

    /// The locks that new foreign keys have taken on the other table, and for which somebody may wait.
    pub fn of_foreign_keys(&self) -> impl Iterator<Item = &HeldLock> {
        self.at(&self.foreign_keys)
    }

    fn at<'a>(&'a self, positions: &'a Vector<usize>) -> impl Iterator<Item = &'a HeldLock> {
        positions.iter().filter_map(|at| self.all.all.get(*at))
    }

    pub(crate) fn push(&mut self, lock: HeldLock) {
        let at = self.len();
        if lock.exposed && lock.mode.blocks_writes() {
            self.strong.push_back(at);
        }
        if lock.exposed && lock.cause == LockCause::ForeignKeyAdded {
            self.foreign_keys.push_back(at);
        }
        self.all.push(lock);
    }

    /// Adds what another list holds.
    pub(crate) fn append(&mut self, others: &Self) {
        if self.len() == 0 { self.clone_from(others) } else { others.iter().for_each(|lock| self.push(lock.clone())) }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.all.truncate(length);
        for positions in [&mut self.strong, &mut self.foreign_keys] {
            while positions.last().is_some_and(|at| *at >= length) {
                positions.pop_back();
            }
        }
    }
}

/// How much a transaction held when a savepoint was set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    locks: usize,
    changes: usize,
}

impl Mark {
    pub(super) fn of(locks: &HeldLocks, changes: &Changes) -> Self {
        Self { locks: locks.len(), changes: changes.len() }
    }

    /// Forgets what came later.
    pub(super) fn restore(self, locks: &mut HeldLocks, changes: &mut Changes) {
        locks.truncate(self.locks);
        changes.truncate(self.changes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::RelationKind;
    use crate::place::Place;
    use pgvet_syntax::source::TextRange;

    fn lock(relation: u32, mode: LockMode, cause: LockCause) -> HeldLock {
        HeldLock {
            relation: Oid(relation),
            name: "public.t".into(),
            kind: RelationKind::Table,
            mode,
            cause,
            patience: None,
            exposed: true,
            unseen_part: None,
            place: Place { file: 0, range: TextRange::default() },
            range: TextRange::default(),
        }
    }

    #[test]
    fn what_is_truncated_is_found_nowhere() {
        let mut locks = HeldLocks::default();
        locks.push(lock(1, LockMode::RowExclusive, LockCause::Target));
        locks.push(lock(1, LockMode::AccessExclusive, LockCause::Target));
        locks.push(lock(2, LockMode::ShareRowExclusive, LockCause::ForeignKeyAdded));
        assert!(locks.holds(Oid(1), LockMode::Share) && locks.blocks_writes(Oid(2)) && !locks.blocks_writes(Oid(3)));
        assert_eq!((locks.strong().count(), locks.of_foreign_keys().count(), locks.of(Oid(1)).count()), (2, 1, 2));
        locks.truncate(1);
        assert!(locks.holds(Oid(1), LockMode::RowExclusive) && !locks.blocks_writes(Oid(1)));
        assert_eq!((locks.iter().count(), locks.strong().count(), locks.of_foreign_keys().count()), (1, 0, 0));
        locks.push(lock(2, LockMode::AccessExclusive, LockCause::Target));
        assert_eq!(locks.strong().map(|held| held.relation).collect::<Vec<_>>(), [Oid(2)]);
    }
}
