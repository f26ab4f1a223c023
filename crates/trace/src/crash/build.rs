//! Ends a session while a statement of several transactions waits, so that its first transaction is committed.

use super::trial::quiet;
use crate::Error;
use crate::connection::{Connection, text};
use crate::provider::ThinClone;
use crate::script::Step;
use crate::send::send;
use pgvet_syntax::lexer::quote_identifier;
use std::pin::pin;
use std::time::{Duration, Instant};

/// How long a statement is watched until it waits for the session that is in its way.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the server is asked whether it waits.
const INTERVAL: Duration = Duration::from_millis(5);

/// How the session of a statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It was ended before the statement was complete.
    Ended,
    /// The statement was complete first.
    Complete,
    /// The statement was not seen to wait.
    NotWaiting,
}

/// Runs a statement that waits for other sessions after its first transaction, and ends its session there.
///
/// Source: PostgreSQL 18, `src/backend/storage/lmgr/lmgr.c`, `WaitForLockers`, and `src/backend/commands/indexcmds.c`,
/// `WaitForOlderSnapshots`: both wait for the virtual transactions of other sessions.
pub(super) async fn end_during(connection: &Connection, step: &Step<'_>, copy: &ThinClone) -> Result<Ending, Error> {
    let obstacle = Obstacle::new(copy).await?;
    let mut running = pin!(send(connection, &step.sql, step.copy_data, None));
    let ending = tokio::select! {
        _ = running.as_mut() => Ending::Complete,
        waits = obstacle.is_waited_for(connection.pid) => if waits? { Ending::Ended } else { Ending::NotWaiting },
    };
    if ending != Ending::Complete {
        connection.terminate().await;
        running.await;
    }
    obstacle.connection.close().await;
    Ok(ending)
}

/// A session that has locked every table for writing and keeps a snapshot: what waits for writers or for old snapshots
/// waits for it.
struct Obstacle {
    connection: Connection,
    observer: Connection,
}

impl Obstacle {
    async fn new(copy: &ThinClone) -> Result<Self, Error> {
        let connection = Connection::open(&copy.database, "obstacle").await?;
        let tables = "SELECT n.nspname, c.relname FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' \
             AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
             AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid)";
        let rows = connection.rows(tables).await?;
        let name = |row| format!("{}.{}", quote_identifier(&text(row, 0)), quote_identifier(&text(row, 1)));
        let tables: Vec<String> = rows.iter().map(name).collect();
        connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ").await?;
        if !tables.is_empty() {
            connection.run(&format!("LOCK TABLE {} IN ROW EXCLUSIVE MODE", tables.join(", "))).await?;
        }
        connection.run("SELECT 1").await?;
        Ok(Self { connection, observer: quiet(copy).await? })
    }

    /// Waits until the session waits for a virtual transaction; `false` if it does not in a long time.
    async fn is_waited_for(&self, pid: i32) -> Result<bool, Error> {
        let sql =
            format!("SELECT FROM pg_catalog.pg_locks WHERE pid = {pid} AND locktype = 'virtualxid' AND NOT granted");
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if !self.observer.rows(&sql).await?.is_empty() {
                return Ok(true);
            }
            tokio::time::sleep(INTERVAL).await;
        }
        Ok(false)
    }
}
