//! Runs each migration up, down and up again, and compares the schema and the rows in between.

mod judge;
mod trial;

use crate::provider::{CloneProvider, Scratch, ServerInfo};
use crate::replay::{RefusedStatement, Replay, Stop};
use crate::runtime::{block_on, unless_interrupted};
use crate::settings::Settings;
use crate::tool_tables::ToolTables;
use crate::trace::finish;
use crate::{Error, Event};
pub use judge::{Part, Problem, Verdict};
use pgvet_model::migration::Migration;
use pgvet_schema::NotCompared;
use pgvet_workspace::Reversal;
use serde::Serialize;
use std::collections::BTreeSet;
use trial::Trier;

/// What was seen of migrations that have a down migration.
#[derive(Debug, Default)]
pub struct Roundtrips {
    /// As the server says it: `15.18`.
    pub server_version: String,
    pub roundtrips: Vec<Roundtrip>,
    /// Why the history of a database ended early: no later migration of it was judged.
    pub ended: Vec<RefusedStatement>,
    /// Statements that were not run, and why.
    pub not_run: Vec<String>,
    /// Why the whole run ended early: an interruption, a limit, a server that is gone.
    pub stopped: Option<Error>,
}

/// One migration, up, down and up again.
#[derive(Debug, Serialize)]
pub struct Roundtrip {
    /// The index of its [`Reversal`].
    #[serde(skip)]
    pub reversal: usize,
    pub verdict: Verdict,
    pub problems: Vec<Problem>,
    /// Number of tables that had rows.
    pub tables_with_rows: usize,
    /// Tables that stayed empty, and why.
    pub empty_tables: Vec<String>,
    pub not_compared: Vec<NotCompared>,
}

/// Runs the reversals whose index is `judged`, each on a copy of a database that has the history before it. Whatever
/// happens, also when the user interrupts it, nothing is left on the server, and what was seen until then is returned.
///
/// # Errors
/// Nothing was judged: no server could be started, the server has ended, a limit is exceeded, or a placeholder has no
/// value.
pub fn run(
    migrations: &[Migration<'_>],
    reversals: &[Reversal],
    judged: &BTreeSet<usize>,
    scratch: &mut Scratch,
    settings: &Settings,
    rows: u64,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Roundtrips, Error> {
    block_on(async {
        let run = Run { migrations, reversals, judged, settings, rows };
        let mut seen = Roundtrips::default();
        let work = unless_interrupted(Box::pin(run.all(scratch, &mut seen, tell)));
        let result = settings.limits.hold(work).await;
        match finish(scratch, result).await {
            Err(error) if seen.roundtrips.is_empty() => Err(error),
            ended => Ok(Roundtrips { stopped: ended.err(), ..seen }),
        }
    })
}

struct Run<'a> {
    migrations: &'a [Migration<'a>],
    reversals: &'a [Reversal],
    judged: &'a BTreeSet<usize>,
    settings: &'a Settings,
    rows: u64,
}

impl Run<'_> {
    async fn all(
        &self,
        scratch: &mut Scratch,
        seen: &mut Roundtrips,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let server = scratch.prepare().await?;
        for text in &server.announcements {
            tell(Event::Announcement { text });
        }
        seen.server_version.clone_from(&server.version);
        let databases: BTreeSet<u32> = self.judged.iter().map(|at| self.database(&self.reversals[*at])).collect();
        for database in databases {
            self.database_of(database, scratch, &server, seen, tell).await?;
        }
        Ok(())
    }

    fn database(&self, reversal: &Reversal) -> u32 {
        reversal.up.first().map_or(0, |at| self.migrations[*at].database)
    }

    async fn database_of(
        &self,
        database: u32,
        scratch: &mut Scratch,
        server: &ServerInfo,
        seen: &mut Roundtrips,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let base = scratch.create().await?;
        let of_tool = ToolTables::create(&base, self.settings).await?;
        let mut replay = Replay::new(&base.database, server, self.settings);
        let own = |(_, reversal): &(usize, &Reversal)| [0, database].contains(&self.database(reversal));
        let own: Vec<(usize, &Reversal)> = self.reversals.iter().enumerate().filter(own).collect();
        let last = own.iter().rposition(|(at, _)| self.judged.contains(at));
        for (at, reversal) in own.into_iter().take(last.map_or(0, |last| last + 1)) {
            if self.judged.contains(&at) {
                replay.suspend().await?;
                let trier = Trier { run: self, base: &base, replay: &replay, of_tool: &of_tool };
                let roundtrip = trier.judge(at, scratch, tell).await?;
                seen.roundtrips.push(roundtrip);
            }
            let ran = self.up(reversal, &mut replay, tell).await;
            seen.not_run.append(&mut replay.not_run);
            match ran {
                Ok(()) => {}
                Err(Stop::Refused(refused)) => {
                    seen.ended.push(refused);
                    break;
                }
                Err(Stop::Broken(error)) => return Err(error),
            }
        }
        drop(replay);
        scratch.discard(base).await
    }

    async fn up(
        &self,
        reversal: &Reversal,
        replay: &mut Replay<'_>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Stop> {
        self.part(&reversal.up, replay, tell).await
    }

    /// The down migrations of one file take back its up migrations from the last to the first.
    async fn down(
        &self,
        reversal: &Reversal,
        replay: &mut Replay<'_>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Stop> {
        let backwards: Vec<usize> = reversal.down.iter().rev().copied().collect();
        self.part(&backwards, replay, tell).await
    }

    async fn part(
        &self,
        migrations: &[usize],
        replay: &mut Replay<'_>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Stop> {
        for at in migrations {
            let migration = &self.migrations[*at];
            tell(Event::History { path: &migration.file.path });
            replay.run(migration).await?;
        }
        Ok(())
    }
}
