//! Runs migrations on a private server until one statement is refused, repeatedly.

use crate::connection::Connection;
use crate::provider::{CloneProvider, Scratch, ServerInfo, ThinClone};
use crate::runtime;
use crate::script::{Script, Step, StepKind, Variables};
use crate::send::send;
use crate::{Error, Limits, publisher};
use pgvet_model::migration::{Direction, Migration};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

/// The answer of a server that refuses a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub sqlstate: String,
    pub message: String,
}

/// A private server that runs migrations again and again, each time as if nothing had been there.
pub struct Refusals {
    runtime: Runtime,
    tasks: LocalSet,
    scratch: Scratch,
    /// The database of runs in one transaction, which all of them roll back.
    common: Option<(ThinClone, Connection)>,
    variables: Variables,
    statement_timeout: Duration,
    /// Those of all runs together.
    limits: Limits,
    server: ServerInfo,
    /// What was not run in any of the runs, and why.
    not_run: BTreeSet<String>,
}

impl Refusals {
    /// Starts the server. The limits are those of all runs together.
    ///
    /// # Errors
    /// If there are no programs of a server, or it does not start.
    pub fn start(
        mut scratch: Scratch,
        variables: Variables,
        statement_timeout: Duration,
        limits: Limits,
    ) -> Result<Self, Error> {
        let (runtime, tasks) = (runtime::runtime()?, LocalSet::new());
        let server = tasks.block_on(&runtime, scratch.prepare())?;
        let limits = Limits { since: limits.since.or_else(|| Some(Instant::now())), ..limits };
        let not_run = BTreeSet::new();
        Ok(Self { runtime, tasks, scratch, common: None, variables, statement_timeout, limits, server, not_run })
    }

    /// Effects that migrations can have beyond their database; see [`ServerInfo::announcements`].
    pub fn announcements(&self) -> &[String] {
        &self.server.announcements
    }

    /// The major version of the server.
    pub fn major(&self) -> u8 {
        self.server.major
    }

    /// Statements that were not run because they would connect to another server, and why.
    pub fn not_run(&self) -> impl Iterator<Item = &str> {
        self.not_run.iter().map(String::as_str)
    }

    /// Runs up migrations in a new database, each in a session and in the transactions of its tool. Returns the first
    /// refusal, after which nothing is run; `None` if every statement succeeds, or one takes too long.
    ///
    /// # Errors
    /// If the server is gone, a limit is reached, or a placeholder has no value.
    pub fn in_new_database(&mut self, migrations: &[Migration<'_>]) -> Result<Option<Refused>, Error> {
        let scripts = self.scripts(migrations)?;
        let Self { runtime, tasks, scratch, statement_timeout, limits, server, not_run, .. } = self;
        let work = async {
            let clone = scratch.create().await?;
            let mut refused = None;
            for script in &scripts {
                let connection = Connection::open(&clone.database, "reduce").await?;
                let steps = script.steps.iter();
                let limit = *statement_timeout;
                refused = run(&connection, steps, limit, &clone, server, not_run).await?;
                if refused.is_some() {
                    break;
                }
            }
            scratch.discard(clone).await?;
            Ok(refused)
        };
        tasks.block_on(runtime, limits.hold(work))
    }

    /// Runs up migrations in one transaction that is rolled back, which takes a hundredth of the time of a new database.
    /// BEGIN and COMMIT are not run, and what cannot run in a transaction is refused.
    ///
    /// # Errors
    /// See [`Self::in_new_database`].
    pub fn in_one_transaction(&mut self, migrations: &[Migration<'_>]) -> Result<Option<Refused>, Error> {
        let scripts = self.scripts(migrations)?;
        let Self { runtime, tasks, scratch, statement_timeout, limits, common, server, not_run, .. } = self;
        let work = async {
            let (clone, connection) = match common.take() {
                Some((clone, connection)) if !connection.client.is_closed() => (clone, connection),
                _ => {
                    let clone = scratch.create().await?;
                    let connection = Connection::open(&clone.database, "reduce").await?;
                    (clone, connection)
                }
            };
            connection.run("BEGIN").await?;
            let is_run = |step: &&Step<'_>| !matches!(step.kind, StepKind::Begin | StepKind::End { .. });
            let steps = scripts.iter().flat_map(|script| &script.steps).filter(is_run);
            let refused = run(&connection, steps, *statement_timeout, &clone, server, not_run).await?;
            if !connection.client.is_closed() {
                connection.run("ROLLBACK").await?;
                connection.run("DISCARD ALL").await?;
                *common = Some((clone, connection));
            }
            Ok(refused)
        };
        tasks.block_on(runtime, limits.hold(work))
    }

    fn scripts<'m>(&self, migrations: &[Migration<'m>]) -> Result<Vec<Script<'m>>, Error> {
        let forward = migrations.iter().filter(|migration| migration.direction == Direction::Up);
        forward.map(|migration| Script::new(migration, &self.variables)).collect()
    }
}

/// Runs commands until one is refused or takes too long.
async fn run<'s, 'm: 's>(
    connection: &Connection,
    steps: impl Iterator<Item = &'s Step<'m>>,
    limit: Duration,
    clone: &ThinClone,
    server: &ServerInfo,
    not_run: &mut BTreeSet<String>,
) -> Result<Option<Refused>, Error> {
    for step in steps {
        if let Some(reason) = publisher::refusal(step, connection, server).await? {
            not_run.insert(reason);
            continue;
        }
        let sent = send(connection, &step.sql, step.copy_data, Some(limit)).await;
        if sent.timed_out {
            return Ok(None);
        }
        let Err(error) = sent.result else { continue };
        let Some(said) = error.as_db_error() else {
            // One session may have crashed, and the server with it.
            Connection::open(&clone.observer, "reduce").await?;
            return Ok(Some(Refused { sqlstate: "08006".to_owned(), message: "the connection was lost".to_owned() }));
        };
        return Ok(Some(Refused { sqlstate: said.code().code().to_owned(), message: said.message().to_owned() }));
    }
    Ok(None)
}
