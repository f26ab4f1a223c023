//! Roles belong to the whole server, so that a copy of a database does not keep them apart.

use crate::Error;
use crate::address::Address;
use crate::connection::{Connection, text};
use pgvet_syntax::lexer::quote_identifier;
use std::collections::BTreeSet;

/// The roles of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Roles(BTreeSet<String>);

impl Roles {
    pub(crate) async fn of(server: &Address) -> Result<Self, Error> {
        Self::seen_by(&Connection::open(server, "roles").await?).await
    }

    async fn seen_by(connection: &Connection) -> Result<Self, Error> {
        let rows = connection.rows("SELECT rolname FROM pg_catalog.pg_roles WHERE rolname !~ '^pg_'").await?;
        Ok(Self(rows.iter().map(|row| text(row, 0)).collect()))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Those that the others lack.
    pub(crate) fn besides(&self, others: &Self) -> Vec<String> {
        self.0.difference(&others.0).cloned().collect()
    }

    /// Gives the server these roles again, once the database that has used them otherwise is gone.
    pub(crate) async fn restore(&self, server: &Address) -> Result<(), Error> {
        let connection = Connection::open(server, "roles").await?;
        let now = Self::seen_by(&connection).await?;
        for name in now.besides(self) {
            connection.run(&format!("DROP ROLE {}", quote_identifier(&name))).await?;
        }
        create(&connection, &self.besides(&now)).await
    }
}

/// Creates roles without attributes.
pub(crate) async fn create(connection: &Connection, names: &[String]) -> Result<(), Error> {
    for name in names {
        connection.run(&format!("CREATE ROLE {}", quote_identifier(name))).await?;
    }
    Ok(())
}
