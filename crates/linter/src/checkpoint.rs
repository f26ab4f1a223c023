//! What the migrations so far have left, so that a run can go on from there.

use crate::catalog::{Catalog, Oid};
use crate::check::Migration;
use crate::execute::Knowledge;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The state of a run before one of its migrations. Cloning it is cheap.
///
/// It holds for the versions that it was made for, and as long as the migrations before that one stay the same.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Checkpoint {
    /// How many migrations have been run.
    next: u32,
    /// The database of the last of them; its state is in `catalog` and `knowledge`.
    database: u32,
    pub(crate) catalog: Catalog,
    /// How much of the database the run has seen.
    pub(crate) knowledge: Knowledge,
    /// The other databases.
    others: BTreeMap<u32, (Catalog, Knowledge)>,
    /// Number of the last transaction.
    pub(crate) transaction: u32,
    /// In how many migrations `lock_timeout` was set to a value above zero.
    pub(crate) sets_lock_timeout: usize,
    /// The last of them.
    last_lock_timeout: Option<u32>,
    /// Functions that statements of migrations have called.
    pub(crate) called: FxHashSet<Oid>,
}

impl Checkpoint {
    /// The index of the migration that comes next: all before it have been run.
    pub fn next(&self) -> usize {
        self.next as usize
    }

    /// Goes to the database of the next migration, which begins as the shared history (database 0) left it.
    pub(crate) fn enter(&mut self, database: u32) {
        if database == self.database {
            return;
        }
        let present = (std::mem::take(&mut self.catalog), self.knowledge);
        self.others.insert(self.database, present);
        let shared = || self.others.get(&0).cloned().unwrap_or_default();
        (self.catalog, self.knowledge) = self.others.get(&database).cloned().unwrap_or_else(shared);
        self.database = database;
    }

    /// A migration has been run.
    pub(crate) fn leave(&mut self, migration: &Migration<'_>) {
        let learned = if migration.baseline { Knowledge::Everything } else { Knowledge::History };
        self.knowledge = self.knowledge.max(learned);
        self.next += 1;
    }

    /// Every database with its catalog, in the order of their numbers.
    pub(crate) fn databases(&self) -> impl Iterator<Item = (u32, &Catalog)> {
        let others = self.others.iter().filter(|(database, _)| **database != self.database);
        let mut all: Vec<_> = others.map(|(database, (catalog, _))| (*database, catalog)).collect();
        all.push((self.database, &self.catalog));
        all.sort_unstable_by_key(|(database, _)| *database);
        all.into_iter()
    }

    pub(crate) fn note_lock_timeout(&mut self, file: u32) {
        if self.last_lock_timeout != Some(file) {
            self.last_lock_timeout = Some(file);
            self.sets_lock_timeout += 1;
        }
    }
}
