//! Effects put together for people and programs.

use super::{Effects, RelationName};
use pgvet_syntax::ast::LockMode;
use std::collections::BTreeMap;

impl Effects {
    /// Returns whether the time that it takes grows with tables: it is more than a change of the catalog or of a few rows.
    pub fn takes_long(&self) -> bool {
        let has_rows = RelationName::may_have_rows;
        let scans = self.scans.iter().any(|scan| has_rows(&scan.relation));
        let rewrites = self.rewrites.iter().any(|rewrite| has_rows(&rewrite.relation));
        let builds = self.index_builds.iter().any(|build| has_rows(&build.table));
        scans
            || rewrites
            || builds
            || self.data_changes.iter().any(|change| !change.rows.is_few() && !change.rows.are_of_few())
    }

    /// The strongest lock on each relation that was there before the statement, strongest first.
    pub fn strongest_locks(&self) -> Vec<(&RelationName, LockMode)> {
        let mut strongest: BTreeMap<String, (&RelationName, LockMode)> = BTreeMap::new();
        for lock in &self.locks {
            if self.creates.iter().any(|created| is_same(created, &lock.relation)) {
                continue;
            }
            let entry = strongest.entry(lock.relation.to_string()).or_insert((&lock.relation, lock.mode));
            entry.1 = entry.1.max(lock.mode);
        }
        let mut locks: Vec<_> = strongest.into_values().collect();
        locks.sort_by_key(|(_, mode)| std::cmp::Reverse(*mode));
        locks
    }

    /// The work besides locking, with the relations on which it is done.
    pub fn work(&self) -> impl Iterator<Item = (&'static str, Vec<String>)> + use<> {
        let lists = [
            ("rewrite", names(self.rewrites.iter().map(|rewrite| &rewrite.relation))),
            ("scan", names(self.scans.iter().map(|scan| &scan.relation))),
            ("build", names(self.index_builds.iter().map(|build| &build.index))),
            ("create", names(self.creates.iter())),
            ("drop", names(self.drops.iter())),
        ];
        lists.into_iter().filter(|(_, names)| !names.is_empty())
    }
}

fn is_same(left: &RelationName, right: &RelationName) -> bool {
    if left.oid.is_valid() && right.oid.is_valid() {
        left.oid == right.oid
    } else {
        left.schema == right.schema && left.name == right.name
    }
}

/// Each name once, in the order of appearance.
pub fn names<'a>(relations: impl Iterator<Item = &'a RelationName>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in relations.map(ToString::to_string) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
