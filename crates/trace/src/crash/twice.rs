//! Two runs of the tool at the same time.

use super::judge::Left;
use super::point::is_several_transactions;
use super::trial::{Known, Trier};
use crate::connection::Connection;
use crate::provider::ThinClone;
use crate::replay::RefusedStatement;
use crate::script::{Step, StepKind};
use crate::send::send;
use crate::state::State;
use crate::{Error, publisher};
use pgvet_model::runner::{Recording, RunLock};
use serde::Serialize;
use std::cell::Cell;
use std::time::Duration;

/// What two runs at the same time do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "together", rename_all = "kebab-case")]
pub enum Together {
    /// The second run waits until the first is complete, and then finds the migration applied.
    Waits,
    /// The second run does not wait in the database: it gives up, or asks again and again for the tool's lock.
    KeptApart,
    /// One run fails, and the result is that of a single run.
    OneFails { refused: RefusedStatement },
    /// Both runs succeed, and the result is that of a single run.
    SameTwice,
    /// The result is not that of a single run.
    Differs {
        /// What was refused, if anything.
        refused: Vec<RefusedStatement>,
        #[serde(flatten)]
        difference: Left,
    },
    /// The first run waits for the second, and the second for the first, without an end that PostgreSQL would see.
    Hangs,
}

/// What two runs at the same time do, and what that says about the tool.
#[derive(Debug, Clone, Serialize)]
pub struct Twice {
    #[serde(flatten)]
    pub together: Together,
    /// Whether nothing is known about a lock of the program, so that none was assumed.
    pub lock_unknown: bool,
}

impl Twice {
    /// Whether the result is that of a single run, and no run hangs.
    pub fn is_safe(&self) -> bool {
        !matches!(self.together, Together::Differs { .. } | Together::Hangs)
    }
}

/// How long a statement of two runs may take before they are treated as waiting for each other.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a run waits for the other before each statement, so that they run side by side.
const IN_STEP: Duration = Duration::from_millis(100);

/// Longer than the default `deadlock_timeout`, after which a session looks once for a deadlock: the second run has
/// waited for that long when the first comes to its concurrent build.
const AFTER_DEADLOCK_CHECK: Duration = Duration::from_millis(1200);

/// The record of a migration in the tool's table, whose unique key a second record violates.
const RECORD: [&str; 3] = [
    "CREATE SCHEMA pgvet_record",
    "CREATE TABLE pgvet_record.applied (version int PRIMARY KEY)",
    "INSERT INTO pgvet_record.applied VALUES (1)",
];

impl Trier<'_> {
    /// Runs the migration twice at the same time, as two processes of the tool do.
    pub(super) async fn twice(&mut self, known: &mut Known) -> Result<Twice, Error> {
        let lock = self.migration.runner.restart.lock;
        let together = match lock {
            RunLock::Polls | RunLock::Refuses => Together::KeptApart,
            RunLock::Waits { by_its_session } => self.with_waiting(by_its_session, known).await?,
            RunLock::None | RunLock::UniqueRecord | RunLock::Unknown => self.side_by_side(known).await?,
        };
        Ok(Twice { together, lock_unknown: lock == RunLock::Unknown })
    }

    /// The second run waits in `pg_advisory_lock` while the first runs.
    async fn with_waiting(&mut self, by_its_session: bool, known: &mut Known) -> Result<Together, Error> {
        const LOCK: &str = "SELECT pg_catalog.pg_advisory_lock(4096)";
        let copy = self.scratch.copy(self.start).await?;
        let mut replay = self.replay.in_copy(&copy.database);
        let first = replay.connection(self.migration.runner.session).await?;
        let holder = Connection::open(&copy.database, "holder").await?;
        if by_its_session {
            first.run(LOCK).await?;
        } else {
            holder.run(LOCK).await?;
        }
        let second = Connection::open(&copy.database, "history").await?;
        let waiting = async { send(&second, LOCK, None, None).await.result };
        let running = async {
            if self.script.steps.iter().any(is_several_transactions) {
                tokio::time::sleep(AFTER_DEADLOCK_CHECK).await;
            }
            let refused = self.run_in(&first, None).await;
            first.close().await;
            holder.close().await;
            refused
        };
        let (waited, first) = tokio::join!(waiting, running);
        second.close().await;
        let first = first?;
        let result = if first.hangs {
            Together::Hangs
        } else {
            let second = waited.err().map(|error| self.refused_lock(&error));
            self.result(&copy, first.refused.into_iter().chain(second).collect(), known, Together::Waits).await?
        };
        self.discard(copy).await?;
        Ok(result)
    }

    /// Both runs have found the migration pending, and run it.
    async fn side_by_side(&mut self, known: &mut Known) -> Result<Together, Error> {
        let copy = self.scratch.copy(self.start).await?;
        let records = self.migration.runner.restart.lock == RunLock::UniqueRecord
            && self.migration.runner.restart.recording == Recording::InTransaction;
        if records {
            let connection = Connection::open(&copy.database, "setup").await?;
            connection.run(RECORD[0]).await?;
            connection.run(RECORD[1]).await?;
            connection.close().await;
        }
        let mut replays = [self.replay.in_copy(&copy.database), self.replay.in_copy(&copy.database)];
        let scope = self.migration.runner.session;
        let [first, second] = &mut replays;
        let (first, second) = (first.connection(scope).await?, second.connection(scope).await?);
        let at = [Cell::new(0), Cell::new(0)];
        let pace = |own: usize| Some(Pace { own: &at[own], other: &at[1 - own], records });
        let (one, two) = tokio::join!(self.run_in(&first, pace(0)), self.run_in(&second, pace(1)));
        first.close().await;
        second.close().await;
        let (one, two) = (one?, two?);
        if records {
            let connection = Connection::open(&copy.database, "setup").await?;
            connection.run("DROP SCHEMA IF EXISTS pgvet_record CASCADE").await?;
            connection.close().await;
        }
        let result = if one.hangs || two.hangs {
            Together::Hangs
        } else {
            let refused = one.refused.into_iter().chain(two.refused).collect();
            self.result(&copy, refused, known, Together::SameTwice).await?
        };
        self.discard(copy).await?;
        Ok(result)
    }

    async fn result(
        &mut self,
        copy: &ThinClone,
        mut refused: Vec<RefusedStatement>,
        known: &mut Known,
        otherwise: Together,
    ) -> Result<Together, Error> {
        let difference = self.difference(&State::of(copy).await?, known).await?;
        if !difference.is_empty() {
            return Ok(Together::Differs { refused, difference });
        }
        Ok(match refused.pop() {
            Some(refused) => Together::OneFails { refused },
            None => otherwise,
        })
    }

    /// Runs the commands of the migration in a session, beside another run.
    async fn run_in(&self, connection: &Connection, pace: Option<Pace<'_>>) -> Result<Ran, Error> {
        let limit = self.replay.conditions().timeout.unwrap_or(PATIENCE).min(PATIENCE);
        let mut ran = Ran::default();
        for step in &self.script.steps {
            if publisher::refusal(step, connection, self.replay.conditions().server).await?.is_some() {
                continue;
            }
            if let Some(pace) = &pace {
                pace.keep().await;
                let is_commit_of_tool = matches!(step.kind, StepKind::End { .. }) && step.statement.is_none();
                if pace.records && is_commit_of_tool && self.refuses(connection, RECORD[2], step, limit, &mut ran).await
                {
                    break;
                }
            }
            if self.refuses(connection, &step.sql, step, limit, &mut ran).await {
                break;
            }
        }
        if let Some(pace) = &pace {
            pace.end();
        }
        if ran.refused.is_some() && !connection.client.is_closed() {
            // The tool rolls back, or its session ends.
            let _ = connection.run("ROLLBACK").await;
        }
        Ok(ran)
    }

    /// Sends a command. Returns whether the run ends with it.
    async fn refuses(
        &self,
        connection: &Connection,
        sql: &str,
        step: &Step<'_>,
        limit: Duration,
        ran: &mut Ran,
    ) -> bool {
        let sent = send(connection, sql, step.copy_data, Some(limit)).await;
        ran.hangs |= sent.timed_out;
        if let Err(error) = &sent.result {
            ran.refused = Some(self.refused(step, error));
        }
        sent.timed_out || sent.result.is_err()
    }

    fn refused(&self, step: &Step<'_>, error: &tokio_postgres::Error) -> RefusedStatement {
        RefusedStatement::of(self.migration, step, error)
    }

    /// The second run is refused while it waits for the lock of the tool.
    fn refused_lock(&self, error: &tokio_postgres::Error) -> RefusedStatement {
        RefusedStatement::of_tool(self.migration, error)
    }
}

/// How a run ended.
#[derive(Default)]
struct Ran {
    refused: Option<RefusedStatement>,
    hangs: bool,
}

/// Keeps two runs side by side: neither begins a statement before the other has begun the one before it, unless the
/// other waits.
struct Pace<'a> {
    own: &'a Cell<usize>,
    other: &'a Cell<usize>,
    /// Whether the migration is recorded before the COMMIT of the tool.
    records: bool,
}

impl Pace<'_> {
    async fn keep(&self) {
        const INTERVAL: Duration = Duration::from_millis(2);
        let mut waited = Duration::ZERO;
        while self.other.get() < self.own.get() && waited < IN_STEP {
            tokio::time::sleep(INTERVAL).await;
            waited += INTERVAL;
        }
        self.own.set(self.own.get() + 1);
    }

    fn end(&self) {
        self.own.set(usize::MAX);
    }
}
