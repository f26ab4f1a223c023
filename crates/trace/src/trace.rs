//! A whole run: history and migrations, on a clone for each database.

use crate::canary::Canaries;
use crate::connection::Connection;
use crate::deadlock::Activity;
use crate::foreign::ForeignTables;
use crate::observation::{MigrationTrace, Trace};
use crate::progress::Progress;
use crate::provider::{CloneProvider, ServerInfo, ThinClone};
use crate::replay::Replay;
use crate::resources;
use crate::rows;
use crate::runner::Runner;
use crate::runtime::{block_on, unless_interrupted};
use crate::script::Script;
use crate::secret::masked;
use crate::settings::Settings;
use crate::workload::Clients;
use crate::{Error, repeat, shared};
use pgvet_model::migration::{Direction, Migration};
use pgvet_model::runner::SessionScope;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The progress of a run, for a display.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A file of the history is replayed.
    History { path: &'a str },
    /// The session of a migration is about to be ended at one of its points.
    SessionEnd { path: &'a str, number: usize, of: usize },
    /// A migration runs twice at the same time.
    Twice { path: &'a str },
    /// A table is filled with generated rows.
    Rows { table: &'a str, rows: u64 },
    /// A statement is about to run, or has come so far.
    Statement { path: &'a str, number: usize, of: usize, sql: &'a str, progress: Option<&'a Progress> },
    /// An effect that the migrations can have beyond their database, announced before the first of them runs.
    Announcement { text: &'a str },
    /// The clients run their statements alone.
    Workload,
}

/// Note about the effect of a workload on other measures.
const SHARED: &str = "transaction IDs, write-ahead log, dead rows and sizes include those of the workload";

/// Replays the history and measures the migrations that are to be reported. Whatever happens, also when the user
/// interrupts it, no clone is left.
pub fn run(
    migrations: &[Migration<'_>],
    provider: &mut dyn CloneProvider,
    settings: &Settings,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Trace, Error> {
    block_on(async {
        let work = unless_interrupted(Box::pin(trace(migrations, provider, settings, tell)));
        let result = settings.limits.hold(work).await;
        finish(provider, result).await
    })
}

/// Removes every clone, and says what else went wrong.
pub(crate) async fn finish<T>(provider: &mut dyn CloneProvider, result: Result<T, Error>) -> Result<T, Error> {
    let result = result.map_err(|error| match provider.trouble() {
        Some(trouble) => error.with(&trouble),
        None => error,
    });
    let destroyed = provider.destroy().await;
    let done = result?;
    destroyed.map(|()| done)
}

async fn trace(
    migrations: &[Migration<'_>],
    provider: &mut dyn CloneProvider,
    settings: &Settings,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Trace, Error> {
    let server = provider.prepare().await?;
    for text in &server.announcements {
        tell(Event::Announcement { text });
    }
    if server.is_shared && !settings.allow_server_changes {
        shared::refuse(migrations, server.major)?;
    }
    let mut trace = Trace {
        major: server.major,
        server_version: server.version.clone(),
        provider: provider.name(),
        notes: server.notes.clone(),
        migrations: Vec::new(),
    };
    for database in databases(migrations) {
        let own = |migration: &Migration<'_>| migration.database == 0 || migration.database == database;
        let group = migrations.iter().enumerate().filter(|(_, migration)| own(migration));
        let group: Vec<_> = group.filter(|(_, migration)| migration.direction == Direction::Up).collect();
        let mut runs: Vec<Vec<MigrationTrace>> = Vec::new();
        for _ in 0..settings.repeat.max(1) {
            let clone = provider.create().await?;
            if server.reaches_others && runs.is_empty() {
                look_at_foreign_tables(&clone, migrations, &server, settings, tell).await?;
            }
            let group = Group { migrations: &group, clone: &clone, server: &server, settings };
            runs.push(group.trace(tell).await?);
            provider.discard(clone).await?;
        }
        trace.migrations.extend(merge(runs));
    }
    Ok(trace)
}

/// Announces foreign tables that migrations can change, and refuses those that do.
async fn look_at_foreign_tables(
    clone: &ThinClone,
    migrations: &[Migration<'_>],
    server: &ServerInfo,
    settings: &Settings,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(), Error> {
    let foreign = ForeignTables::of(clone).await?;
    if let Some(text) = foreign.announcement() {
        tell(Event::Announcement { text: &text });
    }
    if settings.allow_server_changes { Ok(()) } else { shared::refuse_foreign(migrations, server.major, &foreign) }
}

/// The runs of one group, migration by migration.
fn merge(runs: Vec<Vec<MigrationTrace>>) -> Vec<MigrationTrace> {
    let mut runs: Vec<_> = runs.into_iter().map(Vec::into_iter).collect();
    let mut merged = Vec::new();
    while let Some(migration) = repeat::merge(runs.iter_mut().filter_map(Iterator::next).collect()) {
        merged.push(migration);
    }
    merged
}

fn databases(migrations: &[Migration<'_>]) -> BTreeSet<u32> {
    let reported = migrations.iter().filter(|migration| migration.report);
    reported.map(|migration| migration.database).collect()
}

/// The migrations of one database, with their indexes in the run.
struct Group<'a> {
    migrations: &'a [(usize, &'a Migration<'a>)],
    clone: &'a ThinClone,
    server: &'a ServerInfo,
    settings: &'a Settings,
}

impl Group<'_> {
    async fn trace(&self, tell: &mut dyn FnMut(Event<'_>)) -> Result<Vec<MigrationTrace>, Error> {
        let mut traces = Vec::new();
        let mut not_run = if self.server.has_schema { Vec::new() } else { self.replay_history(tell).await? };
        if !self.settings.rows.is_empty() {
            let connection = Connection::open(&self.clone.database, "rows").await?;
            let mut tell = |table: &str, rows| tell(Event::Rows { table, rows });
            rows::fill(&connection, &self.settings.rows, &mut tell).await?;
        }
        let mut last: Option<(SessionScope, Connection)> = None;
        let mut statements = 0;
        for (index, migration) in self.migrations.iter().filter(|(_, migration)| migration.report) {
            let path = &migration.file.path;
            let script = Script::new(migration, &self.settings.variables)?;
            statements += script.steps.len();
            resources::check_count(statements)?;
            if self.settings.workload.is_some() {
                tell(Event::Workload);
            }
            let scope = migration.runner.session;
            let kept = match last.take() {
                Some((before, connection)) => connection.kept(before, scope).await?,
                None => None,
            };
            let activity = Rc::new(Activity::default());
            let runner = Runner::new(self.clone, self.server, *index, (self.settings, &activity), kept).await?;
            let of = script.steps.len();
            let mut progress = |number, sql: &str, progress: Option<&Progress>| {
                tell(Event::Statement { path, number, of, sql: &masked(sql), progress });
            };
            let tables = self.settings.canaries.get(index).map_or(&[][..], Vec::as_slice);
            let canaries = Canaries::start(self.clone, tables, self.settings.reader).await?;
            let clients = match &self.settings.workload {
                Some(workload) => {
                    let (major, limit) = (self.server.major, self.settings.statement_timeout);
                    Some(Clients::start(self.clone, major, workload, limit, &activity).await?)
                }
                None => None,
            };
            let (mut migration, connection) = runner.run(&script, &mut progress).await?;
            last = Some((scope, connection));
            if let Some(clients) = clients {
                tell(Event::Workload);
                migration.workload = clients.finish().await;
                migration.deadlocks = activity.take(self.clone).await?;
                migration.notes.push(SHARED.to_owned());
            }
            migration.canaries = canaries.finish().await;
            migration.notes.splice(0..0, not_run.drain(..));
            let failed = migration.failure().is_some() && !self.settings.keep_going;
            traces.push(migration);
            if failed {
                break;
            }
        }
        Ok(traces)
    }

    /// Returns what was not run, and why.
    async fn replay_history(&self, tell: &mut dyn FnMut(Event<'_>)) -> Result<Vec<String>, Error> {
        for sql in &self.settings.setup {
            Connection::open(&self.clone.database, "setup").await?.run(sql).await?;
        }
        let mut not_run = Vec::new();
        let mut replay = Replay::new(&self.clone.database, self.server, self.settings);
        for (_, migration) in self.migrations.iter().filter(|(_, migration)| !migration.report) {
            let path = &migration.file.path;
            tell(Event::History { path });
            replay.run(migration).await?;
            not_run.extend(replay.not_run.drain(..).map(|refusal| format!("history, {path}: {refusal}")));
        }
        Ok(not_run)
    }
}
