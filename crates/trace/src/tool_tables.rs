//! The tables in which a migration tool records what it has run: they exist before the first migration, and are the only
//! ones that get no generated rows.

use crate::connection::Connection;
use crate::contents::Table;
use crate::provider::ThinClone;
use crate::settings::Settings;
use crate::{Error, rows};
use pgvet_schema::Name;
use std::collections::BTreeSet;

/// The names of the tables that the tool creates.
#[derive(Debug)]
pub(crate) struct ToolTables(BTreeSet<Name>);

/// The tables of migrations after generated rows were inserted.
#[derive(Debug)]
pub(crate) struct Filled {
    /// Number of tables, with or without rows.
    pub(crate) tables: usize,
    /// Why some of them stay empty.
    pub(crate) empty: Vec<String>,
}

impl ToolTables {
    /// Creates in a new database what the tool creates.
    pub(crate) async fn create(base: &ThinClone, settings: &Settings) -> Result<Self, Error> {
        let connection = Connection::open(&base.database, "setup").await?;
        for sql in &settings.setup {
            connection.run(sql).await?;
        }
        let tables = Table::all(&connection).await?;
        connection.close().await;
        Ok(Self(tables.into_iter().map(|table| table.name).collect()))
    }

    /// Inserts generated rows into the tables of the migrations that have none.
    pub(crate) async fn fill_others(&self, database: &ThinClone, rows: u64) -> Result<Filled, Error> {
        let connection = Connection::open(&database.database, "rows").await?;
        let tables = Table::all(&connection).await?;
        let others = tables.iter().filter(|table| !self.0.contains(&table.name));
        let others: Vec<String> = others.map(Table::quoted).collect();
        let empty = rows::fill_empty(&connection, &others, rows).await?;
        connection.close().await;
        Ok(Filled { tables: others.len(), empty })
    }
}
