//! Extended statistics.

use super::{Catalog, Oid, QualifiedName};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Extended statistics: a row of `pg_statistic_ext`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExtendedStatistics {
    pub table: Oid,
    /// They go with any of these.
    pub columns: Vec<SmolStr>,
}

impl Catalog {
    /// The table of extended statistics.
    pub fn statistics_named(&self, schema: &str, name: &str) -> Option<Oid> {
        self.statistics.get(&(SmolStr::new(schema), SmolStr::new(name))).map(|found| found.table)
    }

    /// The extended statistics of a table.
    pub fn statistics_of(&self, table: Oid) -> Vec<QualifiedName> {
        self.statistics.iter().filter(|(_, found)| found.table == table).map(|(name, _)| name.clone()).collect()
    }

    /// Those that go with a column.
    pub fn statistics_using(&self, table: Oid, column: &str) -> Vec<QualifiedName> {
        let uses = |found: &ExtendedStatistics| found.table == table && found.columns.iter().any(|own| own == column);
        self.statistics.iter().filter(|(_, found)| uses(found)).map(|(name, _)| name.clone()).collect()
    }

    /// The extended statistics in a schema.
    pub fn statistics_in(&self, schema: &str) -> Vec<QualifiedName> {
        self.statistics.keys().filter(|(own, _)| own == schema).cloned().collect()
    }

    /// The columns of extended statistics.
    pub fn statistics_columns(&self, name: &QualifiedName) -> &[SmolStr] {
        self.statistics.get(name).map_or(&[], |found| &found.columns)
    }

    pub fn add_statistics(&mut self, name: QualifiedName, table: Oid, columns: Vec<SmolStr>) {
        self.statistics.insert(name, ExtendedStatistics { table, columns });
    }

    /// Gives them another name or schema.
    pub fn rename_statistics(&mut self, old: &QualifiedName, new: QualifiedName) {
        if let Some(found) = self.statistics.remove(old) {
            self.statistics.insert(new, found);
        }
    }

    pub fn rename_column_of_statistics(&mut self, table: Oid, old: &SmolStr, new: &SmolStr) {
        for name in self.statistics_using(table, old) {
            let columns = self.statistics.get_mut(&name).into_iter().flat_map(|found| &mut found.columns);
            columns.filter(|column| *column == old).for_each(|column| *column = new.clone());
        }
    }

    pub fn remove_statistics(&mut self, schema: &str, name: &str) {
        self.statistics.remove(&(SmolStr::new(schema), SmolStr::new(name)));
    }
}
