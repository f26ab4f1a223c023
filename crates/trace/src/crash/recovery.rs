//! Steps that lead from what an ended session has left to the result of an undisturbed run.

use crate::Error;
use crate::connection::{Connection, text};
use crate::provider::ThinClone;
use pgvet_syntax::lexer::quote_identifier;
use serde::Serialize;
use std::collections::BTreeSet;

/// Steps that a person takes after a session has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// SQL to run first, one statement each.
    pub sql: Vec<String>,
    #[serde(flatten)]
    pub resume: Resume,
}

/// How the migration gets complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "resume", rename_all = "kebab-case")]
pub enum Resume {
    /// The tool runs it again.
    RunAgain,
    /// Somebody runs the statements from this line on, and records the migration as applied.
    RunRest {
        line: u32,
        /// Whether the statements before it make settings that they need.
        after_settings: bool,
    },
    /// Somebody records the migration as applied: nothing is left to run.
    Record,
}

/// What a concurrent statement has left half done.
#[derive(Debug, Default)]
pub(super) struct Remains {
    /// Indexes that are not valid, quoted.
    indexes: BTreeSet<String>,
    /// Partitions whose detachment is not complete, with their tables, quoted.
    detached: BTreeSet<(String, String)>,
}

impl Remains {
    /// The indexes of partitioned tables are invalid while a partition lacks one, which is no remains.
    pub(super) async fn of(copy: &ThinClone) -> Result<Self, Error> {
        let connection = Connection::open(&copy.database, "question").await?;
        let indexes = "SELECT n.nspname, c.relname FROM pg_catalog.pg_index x \
             JOIN pg_catalog.pg_class c ON c.oid = x.indexrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE NOT x.indisvalid AND c.relkind = 'i'";
        let qualified =
            |row: &_, at| format!("{}.{}", quote_identifier(&text(row, at)), quote_identifier(&text(row, at + 1)));
        let indexes = connection.rows(indexes).await?.iter().map(|row| qualified(row, 0)).collect();
        // The column is new in PostgreSQL 14.
        let detached = "SELECT pn.nspname, p.relname, cn.nspname, c.relname FROM pg_catalog.pg_inherits i \
             JOIN pg_catalog.pg_class p ON p.oid = i.inhparent JOIN pg_catalog.pg_namespace pn ON pn.oid = p.relnamespace \
             JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid JOIN pg_catalog.pg_namespace cn ON cn.oid = c.relnamespace \
             WHERE (pg_catalog.to_jsonb(i) ->> 'inhdetachpending')::boolean";
        let rows = connection.rows(detached).await?;
        let detached = rows.iter().map(|row| (qualified(row, 0), qualified(row, 2))).collect();
        connection.close().await;
        Ok(Self { indexes, detached })
    }

    /// SQL that removes what the other database does not have.
    pub(super) fn cleanup(&self, before: &Self) -> Vec<String> {
        let drop = |index: &String| format!("DROP INDEX CONCURRENTLY {index}");
        let finalize = |(table, partition): &(String, String)| {
            format!("ALTER TABLE {table} DETACH PARTITION {partition} FINALIZE")
        };
        let indexes = self.indexes.difference(&before.indexes).map(drop);
        indexes.chain(self.detached.difference(&before.detached).map(finalize)).collect()
    }

    /// The partitions whose detachment was begun, and not in the other database.
    pub(super) fn half_detached(&self, before: &Self) -> Vec<String> {
        self.detached.difference(&before.detached).map(|(_, partition)| partition.clone()).collect()
    }

    /// Whether a detachment was begun that the other database does not have: SQL that ends it completes the statement.
    pub(super) fn has_detached(&self, before: &Self) -> bool {
        !self.half_detached(before).is_empty()
    }
}
