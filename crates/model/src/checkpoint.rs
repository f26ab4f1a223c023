//! The state that the migrations so far have left, so that a run can go on from there.

use crate::catalog::{Catalog, Oid};
use crate::execute::Knowledge;
use crate::migration::Migration;
use crate::session::Left;
use imbl::OrdSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The state of a run before one of its migrations. Cloning it is cheap.
///
/// It holds for the versions that it was made for, and as long as the migrations before that one stay the same.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Checkpoint {
    /// How many migrations have been run.
    next: u32,
    /// The number of the current database: that of the last migration.
    number: u32,
    pub(crate) database: Database,
    others: BTreeMap<u32, Database>,
    /// Number of the last transaction.
    pub(crate) transaction: u32,
}

/// The known state of one database.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Database {
    pub catalog: Catalog,
    /// How much of it the run has seen.
    pub(crate) knowledge: Knowledge,
    /// Functions that statements of migrations have called.
    pub called: OrdSet<Oid>,
    /// The session of the last migration, where the next one may share it.
    pub(crate) left: Option<Left>,
}

impl Checkpoint {
    /// The index of the migration that comes next: all before it have been run.
    pub fn next(&self) -> usize {
        self.next as usize
    }

    /// The schema that the migrations so far have left in the database of the last of them.
    pub fn catalog(&self) -> &Catalog {
        &self.database.catalog
    }

    /// Goes to the database of the next migration, which begins as the shared history (database 0) left it.
    pub(crate) fn enter(&mut self, number: u32) {
        if number == self.number {
            return;
        }
        self.others.insert(self.number, std::mem::take(&mut self.database));
        let shared = || self.others.get(&0).cloned().unwrap_or_default();
        self.database = self.others.get(&number).cloned().unwrap_or_else(shared);
        self.number = number;
    }

    /// A migration has been run.
    pub(crate) fn leave(&mut self, migration: &Migration<'_>) {
        let learned = if migration.baseline { Knowledge::Everything } else { Knowledge::History };
        self.database.knowledge = self.database.knowledge.max(learned);
        self.next += 1;
    }

    /// Every database, in the order of their numbers.
    pub(crate) fn databases(&self) -> impl Iterator<Item = (u32, &Database)> {
        let mut all: BTreeMap<u32, &Database> = self.others.iter().map(|(number, other)| (*number, other)).collect();
        all.insert(self.number, &self.database);
        all.into_iter()
    }
}
