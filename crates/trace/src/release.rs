//! The moment at which a lock is really released. COMMIT returns only after it has removed the files of what it
//! rewrote, long after the lock was released. A session that waits for the lock shows it better.

use crate::Error;
use crate::connection::Connection;
use crate::observation::Relation;
use crate::provider::ThinClone;
use pgvet_syntax::ast::LockMode;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// More sessions would disturb more than they tell.
const MOST: usize = 4;
/// How long to wait until the waiters wait for their locks.
const PATIENCE: Duration = Duration::from_millis(200);

/// Sessions that wait for relations.
#[derive(Default)]
pub(crate) struct Waiters {
    waiting: Vec<(u32, JoinHandle<Instant>)>,
}

impl Waiters {
    /// Starts a session for each relation, and returns when all of them wait.
    pub(crate) async fn start(
        clone: &ThinClone,
        observer: &Connection,
        relations: Vec<(Relation, LockMode)>,
    ) -> Result<Self, Error> {
        let tables = relations.into_iter().filter(|(relation, _)| matches!(relation.kind, 'r' | 'p'));
        let strongest: BTreeMap<Relation, LockMode> = tables.collect();
        let mut waiters = Self::default();
        let mut pids = Vec::new();
        for (relation, mode) in strongest.into_iter().take(MOST) {
            let connection = Connection::open(&clone.database, "waiter").await?;
            pids.push(connection.pid.to_string());
            let wanted = if mode.blocks_reads() { "ACCESS SHARE" } else { "ROW EXCLUSIVE" };
            let sql = format!("BEGIN; LOCK TABLE ONLY {} IN {wanted} MODE; COMMIT", relation.sql());
            let wait = async move {
                // A table that is gone is an answer, too.
                let _ = connection.client.simple_query(&sql).await;
                Instant::now()
            };
            waiters.waiting.push((relation.oid, tokio::spawn(wait)));
        }
        if !pids.is_empty() {
            until_all_wait(observer, &pids).await?;
        }
        Ok(waiters)
    }

    /// When each relation was free.
    pub(crate) async fn finish(self) -> BTreeMap<u32, Instant> {
        let mut released = BTreeMap::new();
        for (oid, waiting) in self.waiting {
            if let Ok(at) = waiting.await {
                released.insert(oid, at);
            }
        }
        released
    }
}

async fn until_all_wait(observer: &Connection, pids: &[String]) -> Result<(), Error> {
    let sql = format!("SELECT count(*) FROM pg_catalog.pg_locks WHERE NOT granted AND pid IN ({})", pids.join(","));
    let started = Instant::now();
    while observer.value::<usize>(&sql).await? < pids.len() && started.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
