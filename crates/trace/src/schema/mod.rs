//! Reads the schema of a live database from its catalogs: one read-only transaction, no data.
//!
//! PostgreSQL locks tables ACCESS SHARE to write out expressions and views, as for `pg_dump`, so that statements which
//! need ACCESS EXCLUSIVE wait until the reading ends.

mod queries;

use crate::Error;
use crate::address::Address;
use crate::connection::{Connection, text};
use crate::runtime::{block_on, unless_interrupted};
use pgvet_schema::{Schema, Source};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The oldest server whose catalogs are understood.
const OLDEST: u32 = 140_000;

/// The newest one that was tried.
const NEWEST: u32 = 190_000;

/// Reads the schema of a database, with a timeout for each query.
///
/// Reading needs CONNECT on the database and nothing else: every role may read these catalogs.
pub fn schema(database: &Address, timeout: Duration) -> Result<Schema, Error> {
    block_on(unless_interrupted(schema_of(database, timeout)))
}

/// The same within a run.
pub(crate) async fn schema_of(database: &Address, timeout: Duration) -> Result<Schema, Error> {
    let connection = Connection::open(database, "schema").await?;
    let milliseconds = timeout.as_millis();
    connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    // With an empty search path, every name that is not built in has its schema.
    let settings = format!(
        "SET LOCAL statement_timeout = {milliseconds}; SET LOCAL lock_timeout = '2s'; SET LOCAL search_path = ''"
    );
    connection.run(&settings).await?;
    let number: u32 = connection.value("SELECT pg_catalog.current_setting('server_version_num')").await?;
    if !(OLDEST..NEWEST).contains(&number) {
        return Err(Error::new(format!("the server is PostgreSQL {}, which is not supported", number / 10_000))
            .help("the catalogs of PostgreSQL 14 to 18 can be read"));
    }
    let reader = Reader { connection: &connection };
    let schema = reader.read(number).await?;
    connection.run("ROLLBACK").await?;
    Ok(schema)
}

struct Reader<'c> {
    connection: &'c Connection,
}

impl Reader<'_> {
    async fn read(&self, number: u32) -> Result<Schema, Error> {
        Ok(Schema {
            source: Source::Database,
            pg_version: u8::try_from(number / 10_000).unwrap_or(u8::MAX),
            schemas: self.all("schemas", queries::SCHEMAS).await?,
            extensions: self.all("extensions", queries::EXTENSIONS).await?,
            enums: self.all("enums", queries::ENUMS).await?,
            domains: self.all("domains", queries::DOMAINS).await?,
            composites: self.all("composite types", queries::COMPOSITES).await?,
            sequences: self.all("sequences", queries::SEQUENCES).await?,
            relations: self.all("relations", queries::RELATIONS).await?,
            functions: self.all("functions", queries::FUNCTIONS).await?,
            publications: self.all("publications", &queries::publications(number)).await?,
            extension_relations: self.all("relations of extensions", queries::EXTENSION_RELATIONS).await?,
            gaps: self.all("other objects", queries::GAPS).await?,
        })
    }

    /// The objects of a query that returns one JSON document for each.
    async fn all<T: DeserializeOwned>(&self, what: &str, sql: &str) -> Result<Vec<T>, Error> {
        let rows = self.connection.rows(sql).await.map_err(|error| {
            let is_locked = error.message.contains("(SQLSTATE 55P03)");
            let help =
                "another session, such as a migration, holds ACCESS EXCLUSIVE on a table: try again when it has ended";
            let message = format!("cannot read the {what} of the database: {}", error.message);
            Error { message, help: if is_locked { Some(help.to_owned()) } else { error.help } }
        })?;
        let object = |row| {
            serde_json::from_str(&text(row, 0))
                .map_err(|error| Error::new(format!("the {what} of the server are not understood: {error}")))
        };
        rows.iter().map(object).collect()
    }
}
