//! Sessions that do what an application does, and notice how long they have to wait.

use crate::Error;
use crate::connection::{Connection, text};
use crate::observation::CanaryTrace;
use crate::provider::ThinClone;
use crate::rank::rank;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// How often a canary sings.
const INTERVAL: Duration = Duration::from_millis(5);
/// Maximum number of watched tables: more sessions would disturb more than they show.
const MOST_TABLES: usize = 3;

/// The query of a canary. A read looks at the indexes, too, as every query does; neither touches rows or uses an XID.
#[derive(Debug, Clone, Copy)]
enum Use {
    Read,
    Write,
}

impl Use {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
        }
    }

    fn sql(self, table: &str) -> String {
        match self {
            Self::Read => format!("SELECT 1 FROM ONLY {table} LIMIT 0"),
            Self::Write => format!("BEGIN; LOCK TABLE ONLY {table} IN ROW EXCLUSIVE MODE; COMMIT"),
        }
    }
}

/// The canaries of one migration.
#[derive(Default)]
pub(crate) struct Canaries {
    stop: Rc<Cell<bool>>,
    singing: Vec<(String, Use, JoinHandle<Vec<Duration>>)>,
    readers: Vec<JoinHandle<()>>,
}

impl Canaries {
    /// Starts two sessions for each table that exists, and, if requested, one that reads it for this time.
    pub(crate) async fn start(clone: &ThinClone, tables: &[String], reader: Option<Duration>) -> Result<Self, Error> {
        let mut canaries = Self::default();
        for table in existing(clone, tables).await?.into_iter().take(MOST_TABLES) {
            for what in [Use::Read, Use::Write] {
                let connection = Connection::open(&clone.database, "canary").await?;
                let sql = what.sql(&table);
                let stop = Rc::clone(&canaries.stop);
                let song = tokio::task::spawn_local(async move { sing(&connection, &sql, &stop).await });
                canaries.singing.push((table.clone(), what, song));
            }
            if let Some(time) = reader {
                let connection = Connection::open(&clone.database, "reader").await?;
                connection.run(&format!("BEGIN; SELECT 1 FROM {table} LIMIT 1")).await?;
                canaries.readers.push(tokio::task::spawn_local(async move {
                    tokio::time::sleep(time).await;
                    // A reader that is gone holds nothing back.
                    let _ = connection.run("COMMIT").await;
                }));
            }
        }
        if !canaries.singing.is_empty() {
            // What is usual is known before anything unusual happens.
            tokio::time::sleep(INTERVAL * 10).await;
        }
        Ok(canaries)
    }

    /// Ends them, and tells how long they had to wait.
    pub(crate) async fn finish(self) -> Vec<CanaryTrace> {
        self.stop.set(true);
        for reader in self.readers {
            reader.abort();
        }
        let mut traces = Vec::new();
        for (relation, what, song) in self.singing {
            let Ok(times) = song.await else { continue };
            traces.push(summary(relation, what, times));
        }
        traces
    }
}

async fn sing(connection: &Connection, sql: &str, stop: &Cell<bool>) -> Vec<Duration> {
    let mut times = Vec::new();
    while !stop.get() {
        let started = Instant::now();
        // A table that is renamed or dropped ends the song.
        if connection.client.simple_query(sql).await.is_err() {
            break;
        }
        times.push(started.elapsed());
        tokio::time::sleep(INTERVAL).await;
    }
    times
}

fn summary(relation: String, what: Use, mut times: Vec<Duration>) -> CanaryTrace {
    let (usual, longest) = (rank(&mut times, 50), rank(&mut times, 100));
    CanaryTrace {
        relation,
        blocked: what.name(),
        probes: times.len(),
        usual,
        longest_wait: longest.saturating_sub(usual),
    }
}

/// The tables that are there, quoted for SQL.
async fn existing(clone: &ThinClone, tables: &[String]) -> Result<Vec<String>, Error> {
    let connection = Connection::open(&clone.database, "canary").await?;
    let mut found = Vec::new();
    for table in tables {
        let (schema, name) = table.split_once('.').unwrap_or(("public", table));
        let quoted = |text: &str| text.replace('\'', "''");
        let sql = format!(
            "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = '{}' AND c.relname = '{}' AND c.relkind = 'r'",
            quoted(schema),
            quoted(name)
        );
        found.extend(connection.rows(&sql).await?.first().map(|row| text(row, 0)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_what_is_longer_than_usual() {
        let times = [1, 1, 900, 2].map(Duration::from_millis).to_vec();
        let trace = summary("public.t".to_owned(), Use::Write, times);
        assert_eq!(
            (trace.probes, trace.usual, trace.longest_wait),
            (4, Duration::from_millis(1), Duration::from_millis(899))
        );
    }
}
