//! Ends the session of each migration where that can leave something behind, runs the migration again as its tool
//! would, and compares the result with that of an undisturbed run.

mod build;
mod judge;
mod point;
mod recovery;
mod trial;
mod twice;

use crate::provider::{CloneProvider, Scratch, ServerInfo, ThinClone};
use crate::replay::{RefusedStatement, Replay, Stop};
use crate::roles::Roles;
use crate::runtime::{block_on, unless_interrupted};
use crate::script::Script;
use crate::settings::Settings;
use crate::state::State;
use crate::tool_tables::ToolTables;
use crate::trace::finish;
use crate::{Error, Event};
pub use judge::{ContentDifference, Left, Outcome, Verdict};
use pgvet_model::migration::{Direction, Migration};
pub use point::{Moment, Point};
pub use recovery::{Recovery, Resume};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use trial::Trier;
pub use twice::{Together, Twice};

/// What was seen of migrations whose session was ended.
#[derive(Debug, Default)]
pub struct Crashes {
    /// As the server says it: `18.1`.
    pub server_version: String,
    pub migrations: Vec<Crash>,
    /// Why the history of a database ended early: no later migration of it was judged.
    pub ended: Vec<RefusedStatement>,
    /// Statements that were not run, and why.
    pub not_run: Vec<String>,
    /// Whether migrations were not judged because little of the time was left.
    pub out_of_time: bool,
}

/// What was seen of one migration.
#[derive(Debug, Serialize)]
pub struct Crash {
    /// The index of the migration.
    #[serde(skip)]
    pub migration: usize,
    pub verdict: Verdict,
    /// Whether its session was ended, and not only two runs tried.
    #[serde(skip)]
    pub tried: bool,
    /// Where the session was ended, and what followed.
    pub stops: Vec<SessionEnd>,
    /// Number of points at which the session was not ended because there are too many.
    pub untried: usize,
    /// Why the migration does not run undisturbed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedStatement>,
    /// Whether tables without rows were filled with generated ones.
    pub with_rows: bool,
    /// Columns with other values each time that the migration runs, which are not compared.
    pub volatile: Vec<String>,
    /// Statements that may commit before they are complete, and inside of which no session was ended: `CALL` and `DO`.
    pub not_entered: Vec<Point>,
    /// What two runs at the same time do; absent if that was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twice: Option<Twice>,
}

/// One point at which the session was ended.
#[derive(Debug, Serialize)]
pub struct SessionEnd {
    #[serde(flatten)]
    pub point: Point,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What the ended session has left, if the next run does not lead to the result of an undisturbed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
    /// Steps that lead to the schema and the rows of an undisturbed run; they were tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
}

/// What is tried with each migration.
#[derive(Debug, Clone, Copy)]
pub struct Trials {
    /// Its session is ended, and it is run again.
    pub crash: bool,
    /// It is run twice at the same time.
    pub twice: bool,
}

/// Number of rows that are generated for each table that is empty after the earlier migrations.
const ROWS: u64 = 20;

/// Runs the migrations that are to be reported, each on copies of a database that has the history before it. Whatever
/// happens, also when the user interrupts it, nothing is left.
///
/// # Errors
/// No server could be started, the server has ended, a limit is exceeded, or a placeholder has no value.
pub fn run(
    migrations: &[Migration<'_>],
    trials: Trials,
    scratch: &mut Scratch,
    settings: &Settings,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Crashes, Error> {
    block_on(async {
        let run = Run { migrations, trials, settings, started: Instant::now() };
        let work = unless_interrupted(Box::pin(run.all(scratch, tell)));
        let result = settings.limits.hold(work).await;
        finish(scratch, result).await
    })
}

struct Run<'a> {
    migrations: &'a [Migration<'a>],
    trials: Trials,
    settings: &'a Settings,
    started: Instant,
}

impl Run<'_> {
    async fn all(&self, scratch: &mut Scratch, tell: &mut dyn FnMut(Event<'_>)) -> Result<Crashes, Error> {
        let server = scratch.prepare().await?;
        for text in &server.announcements {
            tell(Event::Announcement { text });
        }
        let mut seen = Crashes { server_version: server.version.clone(), ..Crashes::default() };
        let reported = self.migrations.iter().filter(|migration| migration.report);
        let databases: BTreeSet<u32> = reported.map(|migration| migration.database).collect();
        for database in databases {
            Box::pin(self.database(database, scratch, &server, &mut seen, tell)).await?;
        }
        Ok(seen)
    }

    async fn database(
        &self,
        database: u32,
        scratch: &mut Scratch,
        server: &ServerInfo,
        seen: &mut Crashes,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let base = scratch.create().await?;
        let of_tool = ToolTables::create(&base, self.settings).await?;
        let mut replay = Replay::new(&base.database, server, self.settings);
        let own = |(_, migration): &(usize, &Migration<'_>)| {
            [0, database].contains(&migration.database) && migration.direction == Direction::Up
        };
        let own: Vec<(usize, &Migration<'_>)> = self.migrations.iter().enumerate().filter(own).collect();
        let last = own.iter().rposition(|(_, migration)| migration.report).map_or(0, |last| last + 1);
        for (at, migration) in own.into_iter().take(last) {
            if migration.report && self.started.elapsed() > self.time() {
                seen.out_of_time = true;
                break;
            }
            if migration.report {
                replay.suspend().await?;
                let crash = self.migration(at, &base, &replay, &of_tool, scratch, tell).await?;
                seen.migrations.push(crash);
            }
            tell(Event::History { path: &migration.file.path });
            match replay.run(migration).await {
                Ok(()) => {}
                Err(Stop::Refused(refused)) => {
                    seen.ended.push(refused);
                    break;
                }
                Err(Stop::Broken(error)) => return Err(error),
            }
        }
        seen.not_run.append(&mut replay.not_run);
        drop(replay);
        scratch.discard(base).await
    }

    /// For how long migrations are begun: what was seen of them is lost when the run is ended at its limit.
    fn time(&self) -> Duration {
        self.settings.limits.time.map_or(Duration::MAX, |limit| limit.mul_f64(0.8))
    }

    /// Judges a migration on tables with generated rows. If it does not run on these, it is judged without them.
    async fn migration(
        &self,
        at: usize,
        base: &ThinClone,
        replay: &Replay<'_>,
        of_tool: &ToolTables,
        scratch: &mut Scratch,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<Crash, Error> {
        let migration = &self.migrations[at];
        let script = Script::new(migration, &self.settings.variables)?;
        let roles = Roles::of(&base.observer).await?;
        let mut refused = None;
        for with_rows in [true, false] {
            let start = scratch.copy(base).await?;
            if with_rows && of_tool.fill_others(&start, ROWS).await?.tables == 0 {
                scratch.discard(start).await?;
                continue;
            }
            let mut trier = Trier { migration, script: &script, start: &start, replay, roles: &roles, scratch };
            match trier.undisturbed().await? {
                Ok(expected) => {
                    let crash = trier.judge(at, self.trials, expected, tell).await?;
                    let crash = Crash { with_rows, ..crash };
                    scratch.discard(start).await?;
                    return Ok(crash);
                }
                Err(failure) => refused = Some(failure),
            }
            scratch.discard(start).await?;
        }
        Ok(Crash { refused, ..Crash::new(at, Verdict::NotJudged) })
    }
}

impl Crash {
    fn new(migration: usize, verdict: Verdict) -> Self {
        Self {
            migration,
            verdict,
            tried: false,
            stops: Vec::new(),
            untried: 0,
            refused: None,
            with_rows: false,
            volatile: Vec::new(),
            not_entered: Vec::new(),
            twice: None,
        }
    }
}

/// The schema and the rows of an undisturbed run.
type Expected = State;
