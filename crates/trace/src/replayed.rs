//! Migrations that ran on a server of their own, and what they have left.

use crate::connection::Connection;
use crate::provider::{CloneProvider, Scratch, ScratchOptions, ServerInfo, ThinClone};
use crate::replay::{RefusedStatement, Replay, Stop};
use crate::roles::{self, Roles};
use crate::runtime::{block_on, unless_interrupted};
use crate::settings::Settings;
use crate::trace::finish;
use crate::{Error, Event};
use pgvet_model::migration::{Direction, Migration};
use pgvet_schema::Schema;

/// The result of a run that measures nothing.
#[derive(Debug)]
pub enum Replayed {
    /// The schema after the last migration.
    Schema(Box<Schema>),
    /// The first statement that PostgreSQL refused, after which no other one was run.
    Refused(RefusedStatement),
}

/// Runs up migrations on a new server, and reads the schema that they leave. The SQL of [`Settings::setup`] runs first.
///
/// # Errors
/// No server could be started, the setup does not run, or a limit is exceeded.
pub fn replayed(
    migrations: &[Migration<'_>],
    options: ScratchOptions,
    settings: &Settings,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Replayed, Error> {
    let mut scratch = Scratch::new(options);
    block_on(async {
        let work = async {
            let database = Database::new(&mut scratch, settings, &[]).await?;
            match database.run(migrations, settings, tell).await {
                Ok(_) => Ok(Replayed::Schema(Box::new(database.clone.schema().await?))),
                Err(Stop::Refused(refused)) => Ok(Replayed::Refused(refused)),
                Err(Stop::Broken(error)) => Err(error),
            }
        };
        let result = settings.limits.hold(unless_interrupted(Box::pin(work))).await;
        finish(&mut scratch, result).await
    })
}

/// Runs up migrations in a database of a provider. Returns the first statement that PostgreSQL refused, after which no
/// other one was run.
///
/// # Errors
/// The server is gone, or a placeholder has no value.
pub async fn apply(
    migrations: &[Migration<'_>],
    clone: &ThinClone,
    server: &ServerInfo,
    settings: &Settings,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Option<RefusedStatement>, Error> {
    let database = Database { server: server.clone(), clone: clone.clone() };
    match database.run(migrations, settings, tell).await {
        Ok(_) => Ok(None),
        Err(Stop::Refused(refused)) => Ok(Some(refused)),
        Err(Stop::Broken(error)) => Err(error),
    }
}

/// A database on a server of its own.
pub(crate) struct Database {
    pub(crate) server: ServerInfo,
    pub(crate) clone: ThinClone,
}

impl Database {
    pub(crate) async fn new(scratch: &mut Scratch, settings: &Settings, roles: &[String]) -> Result<Self, Error> {
        let server = scratch.prepare().await?;
        let clone = scratch.create().await?;
        let connection = Connection::open(&clone.database, "setup").await?;
        for sql in &settings.setup {
            connection.run(sql).await?;
        }
        let existing = Roles::of(&clone.observer).await?;
        let missing: Vec<String> = roles.iter().filter(|name| !existing.has(name)).cloned().collect();
        roles::create(&connection, &missing).await?;
        Ok(Self { server, clone })
    }

    /// Returns what was not run, and why.
    pub(crate) async fn run(
        &self,
        migrations: &[Migration<'_>],
        settings: &Settings,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<Vec<String>, Stop> {
        let mut replay = Replay::new(&self.clone.database, &self.server, settings);
        for migration in migrations.iter().filter(|migration| migration.direction == Direction::Up) {
            tell(Event::History { path: &migration.file.path });
            replay.run(migration).await?;
        }
        Ok(std::mem::take(&mut replay.not_run))
    }
}
