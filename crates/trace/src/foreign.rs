//! Foreign tables of a clone: their rows are those of another server.

use crate::Error;
use crate::connection::{Connection, text};
use crate::provider::ThinClone;
use pgvet_model::effect::RelationName;

/// The foreign tables in which a user may change rows.
#[derive(Debug, Default)]
pub struct ForeignTables(Vec<(String, String)>);

const SQL: &str = "SELECT n.nspname, c.relname FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind = 'f' AND pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE') \
    ORDER BY 1, 2";

impl ForeignTables {
    /// Reads those of a clone.
    ///
    /// # Errors
    /// There is no connection.
    pub async fn of(clone: &ThinClone) -> Result<Self, Error> {
        let connection = Connection::open(&clone.database, "question").await?;
        let rows = connection.rows(SQL).await?;
        Ok(Self(rows.iter().map(|row| (text(row, 0), text(row, 1))).collect()))
    }

    /// What can happen to them; `None` if there are none.
    pub fn announcement(&self) -> Option<String> {
        let (schema, name) = self.0.first()?;
        let others = match self.0.len() - 1 {
            0 => String::new(),
            others => format!(" (and {others} more)"),
        };
        Some(format!(
            "`{schema}.{name}`{others} is a foreign table: changes of its rows are made on another server, and remain there"
        ))
    }

    pub(crate) fn contains(&self, relation: &RelationName) -> bool {
        self.0.iter().any(|(schema, name)| *schema == relation.schema && *name == relation.name)
    }
}
