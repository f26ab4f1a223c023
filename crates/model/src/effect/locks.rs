//! The locks that a statement takes, which may be thousands.

use super::{Branches, FewRows, Lock, LockCause, RelationName};
use crate::catalog::Oid;
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::ops::Deref;

/// The locks of a statement, in the order in which it takes them.
#[derive(Debug, Clone, Default)]
pub struct Locks {
    list: Vec<Lock>,
    /// The strongest lock on each relation, or empty while there are few locks.
    strongest: FxHashMap<Oid, LockMode>,
    /// Whether some are taken only in branches of code.
    is_branched: bool,
}

/// Number of locks up to which a search through all of them is faster than a map.
const FEW: usize = 16;

impl Locks {
    /// Returns the strongest lock on a relation so far.
    pub fn strongest(&self, oid: Oid) -> Option<LockMode> {
        if self.list.len() > FEW {
            return self.strongest.get(&oid).copied();
        }
        self.list.iter().filter(|lock| lock.relation.oid == oid).map(|lock| lock.mode).max()
    }

    /// Returns whether the statement already holds a lock on the relation that is at least as strong.
    pub fn holds(&self, oid: Oid, mode: LockMode) -> bool {
        self.strongest(oid).is_some_and(|held| held >= mode)
    }

    /// Returns the same for what runs after these decisions, none of which may have skipped the lock.
    pub(crate) fn holds_in(&self, oid: Oid, mode: LockMode, branches: &Branches) -> bool {
        let is_held = |lock: &Lock| lock.relation.oid == oid && lock.mode >= mode && lock.branches.precede(branches);
        self.holds(oid, mode) && (!self.is_branched || self.list.iter().any(is_held))
    }

    pub fn push(&mut self, lock: Lock) {
        self.is_branched |= !lock.branches.is_always();
        self.list.push(lock);
        let from = if self.strongest.is_empty() { 0 } else { self.list.len() - 1 };
        if self.list.len() > FEW {
            self.note(from);
        }
    }

    pub fn retain(&mut self, keep: impl FnMut(&Lock) -> bool) {
        self.list.retain(keep);
        self.strongest.clear();
        if self.list.len() > FEW {
            self.note(0);
        }
    }

    /// Gives the locks from the position `from` on other causes or ranges.
    pub(crate) fn explain(&mut self, from: usize, mut change: impl FnMut(Oid, &mut LockCause, &mut TextRange)) {
        for lock in &mut self.list[from..] {
            change(lock.relation.oid, &mut lock.cause, &mut lock.range);
        }
    }

    /// Notes evidence for few rows in a relation whose locks, from the position `from` on, have none.
    pub(crate) fn have_few_rows(&mut self, from: usize, few: impl Fn(&RelationName) -> Option<FewRows>) {
        for relation in self.list[from..].iter_mut().map(|lock| &mut lock.relation) {
            if relation.few.is_none() {
                relation.few = few(relation);
            }
        }
    }

    /// Notes that queries of a function or trigger take the locks from the position `from` on.
    pub(crate) fn are_of_code(&mut self, from: usize) {
        let is_of_query = |lock: &&mut Lock| {
            lock.mode <= LockMode::RowExclusive
                && matches!(lock.cause, LockCause::Target | LockCause::Query | LockCause::Child)
        };
        self.list[from..].iter_mut().filter(is_of_query).for_each(|lock| lock.cause = LockCause::Function);
    }

    /// Notes that the locks from the position `from` on are not waited for.
    pub(crate) fn are_nowait(&mut self, from: usize) {
        self.list[from..].iter_mut().for_each(|lock| lock.patience = Some(0));
    }

    /// Notes that the locks from the position `from` on are taken only if a part of the relation exists, which no
    /// statement has shown.
    pub(crate) fn depend_on(&mut self, from: usize, part: &SmolStr) {
        self.list[from..].iter_mut().for_each(|lock| lock.relation.unseen_part = Some(part.clone()));
    }

    fn note(&mut self, from: usize) {
        for lock in &self.list[from..] {
            let held = self.strongest.entry(lock.relation.oid).or_insert(lock.mode);
            *held = lock.mode.max(*held);
        }
    }
}

impl Deref for Locks {
    type Target = [Lock];

    fn deref(&self) -> &[Lock] {
        &self.list
    }
}

impl PartialEq for Locks {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Extend<Lock> for Locks {
    fn extend<T: IntoIterator<Item = Lock>>(&mut self, locks: T) {
        locks.into_iter().for_each(|lock| self.push(lock));
    }
}

impl FromIterator<Lock> for Locks {
    fn from_iter<T: IntoIterator<Item = Lock>>(locks: T) -> Self {
        let mut all = Self::default();
        all.extend(locks);
        all
    }
}

impl IntoIterator for Locks {
    type Item = Lock;
    type IntoIter = std::vec::IntoIter<Lock>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a Locks {
    type Item = &'a Lock;
    type IntoIter = std::slice::Iter<'a, Lock>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::RelationKind;
    use crate::effect::Visibility;

    #[test]
    fn few_and_many_locks_are_held_alike() {
        let lock = |oid: u32, mode| Lock {
            relation: RelationName {
                oid: Oid(oid),
                schema: "public".into(),
                name: "t".into(),
                kind: RelationKind::Table,
                visibility: Visibility::Existing,
                few: None,
                unseen_part: None,
            },
            mode,
            cause: LockCause::Target,
            range: TextRange::default(),
            patience: None,
            branches: Branches::default(),
        };
        let mut locks = Locks::default();
        for oid in 1..100 {
            locks.push(lock(oid, LockMode::AccessShare));
            locks.push(lock(oid, LockMode::Share));
            locks.push(lock(oid, LockMode::RowExclusive));
            for known in 1..=oid {
                assert_eq!(locks.strongest(Oid(known)), Some(LockMode::Share), "{known} of {oid}");
            }
            assert!(!locks.holds(Oid(oid + 1), LockMode::AccessShare));
        }
        locks.retain(|lock| lock.relation.oid.0 > 50 && lock.mode != LockMode::Share);
        assert_eq!((locks.strongest(Oid(50)), locks.strongest(Oid(51))), (None, Some(LockMode::RowExclusive)));
        locks.retain(|lock| lock.relation.oid.0 == 51);
        assert_eq!((locks.strongest(Oid(52)), locks.strongest(Oid(51))), (None, Some(LockMode::RowExclusive)));
        assert_eq!(locks.len(), 2);
    }
}
