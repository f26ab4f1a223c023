//! Statements that have changed rows, to recognize a later one that is the same.

use super::{Catalog, Oid};
use crate::deployment::Deployment;
use crate::place::Place;
use serde::{Deserialize, Serialize};

/// The first statement of its text that changed rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierChange {
    pub deployment: Option<Deployment>,
    pub place: Place,
}

impl Catalog {
    /// Notes a statement that changes rows of a table, and returns the first one with the same digest: this one, if there
    /// is no other.
    pub fn note_change(&mut self, table: Oid, digest: u64, change: EarlierChange) -> EarlierChange {
        let of_table = self.earlier_changes.entry(table).or_default();
        *of_table.entry(digest).or_insert(change)
    }
}
