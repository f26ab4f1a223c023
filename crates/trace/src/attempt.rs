//! Runs migrations on a private server, repeatedly, until one statement is refused or the last one has answered.

mod rewindable;

use crate::connection::Connection;
use crate::output::{Output, Question};
use crate::provider::{CloneProvider, Scratch, ServerInfo, ThinClone};
use crate::roles::Roles;
use crate::runtime;
use crate::script::{Script, Step, StepKind, Variables};
use crate::steps::{Conditions, RefusedStep};
use crate::{Error, Limits};
use pgvet_model::migration::{Direction, Migration};
use rewindable::Rewindable;
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

/// What one run of migrations has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every statement succeeds.
    Done(Output),
    /// The first statement that is refused, after which nothing was run.
    Refused(Refused),
    /// A statement took too long and was cancelled, after which nothing was run.
    TimedOut,
}

/// A private server that runs migrations again and again, each time as if nothing had been there.
pub struct Attempts {
    runtime: Runtime,
    tasks: LocalSet,
    scratch: Scratch,
    /// An empty database with the transaction of the last run.
    empty: Option<Rewindable>,
    /// The database of the last run that had one of its own, with the roles that it may have left. The next run removes
    /// them, and the end of the server those of the last run.
    used: Option<ThinClone>,
    question: Question,
    variables: Variables,
    timeout: Duration,
    /// Those of all runs together.
    limits: Limits,
    server: ServerInfo,
    /// The roles of the new server.
    roles: Roles,
    /// What was not run in any of the runs, and why.
    not_run: BTreeSet<String>,
}

impl Attempts {
    /// Starts the server, of which each run asks the question. The limits are those of all runs together.
    ///
    /// # Errors
    /// If there are no programs of a server, or it does not start.
    pub fn start(mut scratch: Scratch, question: Question, timeout: Duration, limits: Limits) -> Result<Self, Error> {
        let (runtime, tasks) = (runtime::runtime()?, LocalSet::new());
        let (server, empty, roles) = tasks.block_on(&runtime, async {
            let server = scratch.prepare().await?;
            let clone = scratch.create().await?;
            let roles = Roles::of(&clone.observer).await?;
            Ok::<_, Error>((server, Some(Rewindable::begin(clone).await?), roles))
        })?;
        let limits = Limits { since: limits.since.or_else(|| Some(Instant::now())), ..limits };
        let (variables, not_run, used) = (Variables::default(), BTreeSet::new(), None);
        Ok(Self { runtime, tasks, scratch, empty, used, question, variables, timeout, limits, server, roles, not_run })
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

    /// Runs up migrations in a new database, each in a session and in the transactions of its tool.
    ///
    /// # Errors
    /// If the server is gone, a limit is reached, or a placeholder has no value.
    pub fn in_new_database(&mut self, migrations: &[Migration<'_>]) -> Result<Outcome, Error> {
        let scripts = self.scripts(migrations)?;
        let Self { runtime, tasks, scratch, question, timeout, limits, empty, used, server, roles, not_run, .. } = self;
        let attempt = Attempt { server, question: *question, timeout: *timeout };
        let work = async {
            remove(used, scratch, roles).await?;
            // A transaction that was rolled back has left nothing in its database.
            let clone = match empty.take() {
                Some(transaction) => transaction.end().await,
                None => scratch.create().await?,
            };
            let asked = match attempt.question {
                Question::Runs => None,
                Question::Rows | Question::Plan => scripts.iter().rposition(|script| script.steps.iter().any(answers)),
            };
            *used = Some(clone.clone());
            let mut outcome = Outcome::Done(Output::None);
            for (at, script) in scripts.iter().enumerate() {
                let connection = Connection::open(&clone.database, "reduce").await?;
                let steps: Vec<&Step<'_>> = script.steps.iter().collect();
                outcome = attempt.run(&steps, asked == Some(at), &connection, &clone, not_run).await?;
                if asked == Some(at) || !matches!(outcome, Outcome::Done(_)) {
                    break;
                }
            }
            Ok(outcome)
        };
        tasks.block_on(runtime, limits.hold(work))
    }

    /// Runs up migrations in one transaction that never commits, in which what the last run began with does not run again:
    /// that takes a hundredth of the time of a new database. BEGIN and COMMIT are not run, and what cannot run in a
    /// transaction is refused.
    ///
    /// # Errors
    /// See [`Self::in_new_database`].
    pub fn in_one_transaction(&mut self, migrations: &[Migration<'_>]) -> Result<Outcome, Error> {
        let scripts = self.scripts(migrations)?;
        let Self { runtime, tasks, scratch, question, timeout, limits, empty, used, server, roles, not_run, .. } = self;
        let attempt = Attempt { server, question: *question, timeout: *timeout };
        let work = async {
            remove(used, scratch, roles).await?;
            let mut transaction = match empty.take() {
                Some(transaction) if !transaction.is_closed() => transaction,
                _ => Rewindable::begin(scratch.create().await?).await?,
            };
            let is_run = |step: &&Step<'_>| !matches!(step.kind, StepKind::Begin | StepKind::End { .. });
            let steps: Vec<&Step<'_>> = scripts.iter().flat_map(|script| &script.steps).filter(is_run).collect();
            let outcome = transaction.run(&steps, attempt, not_run).await?;
            *empty = Some(transaction);
            Ok(outcome)
        };
        tasks.block_on(runtime, limits.hold(work))
    }

    fn scripts<'m>(&self, migrations: &[Migration<'m>]) -> Result<Vec<Script<'m>>, Error> {
        let forward = migrations.iter().filter(|migration| migration.direction == Direction::Up);
        forward.map(|migration| Script::new(migration, &self.variables)).collect()
    }
}

/// Removes a database, and what its migrations have changed in the roles of the server.
async fn remove(used: &mut Option<ThinClone>, scratch: &mut Scratch, roles: &Roles) -> Result<(), Error> {
    let Some(clone) = used.take() else { return Ok(()) };
    let observer = clone.observer.clone();
    scratch.discard(clone).await?;
    roles.restore(&observer).await
}

/// How one run asks its question.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    server: &'a ServerInfo,
    question: Question,
    timeout: Duration,
}

impl Attempt<'_> {
    /// Runs commands. If the question is asked of these, the last statement among them answers it.
    async fn run(
        self,
        steps: &[&Step<'_>],
        asks: bool,
        connection: &Connection,
        clone: &ThinClone,
        not_run: &mut BTreeSet<String>,
    ) -> Result<Outcome, Error> {
        let (before, asked) = if asks { self.asked(steps) } else { (steps, None) };
        match self.conditions().run(connection, before.iter().copied(), not_run).await? {
            Some(stop) => Outcome::of(stop, clone).await,
            None => self.ask(asked, connection, clone, not_run).await,
        }
    }

    /// The command that answers the question, and those before it.
    fn asked<'s, 'm>(self, steps: &'s [&'s Step<'m>]) -> (&'s [&'s Step<'m>], Option<&'s Step<'m>>) {
        let asked = match self.question {
            Question::Runs => None,
            Question::Rows | Question::Plan => steps.iter().rposition(|step| answers(step)),
        };
        asked.map_or((steps, None), |at| (&steps[..at], Some(steps[at])))
    }

    async fn ask(
        self,
        asked: Option<&Step<'_>>,
        connection: &Connection,
        clone: &ThinClone,
        not_run: &mut BTreeSet<String>,
    ) -> Result<Outcome, Error> {
        let Some(asked) = asked else { return Ok(Outcome::Done(Output::None)) };
        match self.question.ask(asked, connection, self.server, self.timeout, not_run).await? {
            Ok(output) => Ok(Outcome::Done(output)),
            Err(stop) => Outcome::of(stop, clone).await,
        }
    }

    fn conditions(&self) -> Conditions<'_> {
        Conditions { server: self.server, timeout: Some(self.timeout), keep_going: false }
    }
}

/// Whether a command can be the last statement: the tool does not add it, and it ends no transaction.
fn answers(step: &Step<'_>) -> bool {
    step.statement.is_some() && matches!(step.kind, StepKind::Alone | StepKind::Inside)
}

impl Outcome {
    /// What a server said of a command that was refused.
    async fn of(refused: RefusedStep<'_, '_>, clone: &ThinClone) -> Result<Self, Error> {
        if refused.timed_out {
            return Ok(Self::TimedOut);
        }
        let (sqlstate, message) = if let Some(said) = refused.error.as_db_error() {
            (said.code().code(), said.message())
        } else {
            // One session may have crashed, and the server with it.
            Connection::open(&clone.observer, "reduce").await?;
            ("08006", "the connection was lost")
        };
        Ok(Self::Refused(Refused { sqlstate: sqlstate.to_owned(), message: message.to_owned() }))
    }
}
