//! Rows of a database that would make statements fail, as `pgvet precheck` has counted them.

use rustc_hash::FxHashMap;
use smol_str::SmolStr;

/// The answers of a database about a migration, by the query that was asked. They hold for the rows before the first
/// migration that is reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowCounts(FxHashMap<String, RowCount>);

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowCount {
    pub rows: u64,
    /// There may be more.
    pub is_least: bool,
    /// The day, as the clock of the server says: `2026-11-26`.
    pub day: SmolStr,
}

impl RowCounts {
    pub fn insert(&mut self, query: String, count: RowCount) {
        self.0.insert(query, count);
    }

    pub fn get(&self, query: &str) -> Option<&RowCount> {
        self.0.get(query)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
