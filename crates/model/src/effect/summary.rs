//! Effects put together for people and programs.

use super::{Effects, RelationName};
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::TextRange;
use std::collections::BTreeMap;

impl Effects {
    /// Returns the ranges of what takes longer the larger a table is: more than a change of the catalog or of a few rows.
    pub fn long_work(&self) -> impl Iterator<Item = TextRange> {
        let is_large = |relation: &RelationName| relation.may_have_rows() && relation.few.is_none();
        let scans = self.scans.iter().filter(move |scan| is_large(&scan.relation)).map(|scan| scan.range);
        let rewrites = self.rewrites.iter().filter(move |one| is_large(&one.relation)).map(|rewrite| rewrite.range);
        let builds = self.index_builds.iter().filter(move |build| is_large(&build.table)).map(|build| build.range);
        let changes = self.data_changes.iter();
        let changes = changes.filter(|change| !change.rows.is_few() && !change.rows.are_of_few());
        let changes = changes.filter(|change| change.relation.few.is_none()).map(|change| change.range);
        scans.chain(rewrites).chain(builds).chain(changes)
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
