//! A server whose database is where a history has come to, and copies of that database.

use super::project::{Copied, leads_up};
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_syntax::statement::ParsedFile;
use pgvet_trace::provider::{Answer, CloneProvider, ServerInfo, Template, ThinClone};
use pgvet_trace::server::{Binaries, Options, Server};
use pgvet_trace::{Address, Error, Settings};
use std::time::Duration;

const NAME: &str = "history";

/// A statement that takes longer waits for something that will not come.
const LIMIT: Duration = Duration::from_secs(60);

pub(super) struct Site<'s> {
    server: &'s Server,
    /// Those of them that ran as they are, of all that have been run.
    pub(super) ran: Vec<bool>,
}

/// A server for databases of the same major.
pub(super) fn start(major: u8) -> Result<Server, String> {
    let start = |binaries| Server::start_with(&binaries, &Options { alone: true, ..Options::default() });
    let server = Binaries::find(Some(major)).and_then(start);
    server.map_err(|error| format!("PostgreSQL {major}: {error}"))
}

impl<'s> Site<'s> {
    /// An empty database in place of the last one.
    pub(super) fn new(server: &'s Server, project: &Copied) -> Result<Self, String> {
        let failure = |error: Error| format!("PostgreSQL {}: {error}", server.major());
        server.query("postgres", &format!("DROP DATABASE IF EXISTS {NAME}")).map_err(failure)?;
        server.query("postgres", &format!("CREATE DATABASE {NAME}")).map_err(failure)?;
        server.query(NAME, project.setup()).map_err(failure)?;
        Ok(Self { server, ran: Vec::new() })
    }

    pub(super) fn major(&self) -> u8 {
        self.server.major()
    }

    /// Runs the migrations before this one. What is refused is run statement by statement, as far as it goes.
    pub(super) fn replay_to(&mut self, next: usize, project: &Copied) -> Result<(), String> {
        for migration in &project.project.migrations()[self.ran.len()..next] {
            let migration = Migration { database: 1, ..*migration };
            let ran = !leads_up(&migration) || self.runs(&migration)?;
            if !ran {
                let alone = Migration { transaction: TransactionMode::Autocommit, ..migration };
                // Where it has a transaction of its own, nothing of it is left.
                let _ = self.send(&alone, &Settings { keep_going: true, ..settings() })?;
            }
            self.ran.push(ran);
        }
        Ok(())
    }

    fn runs(&self, migration: &Migration<'_>) -> Result<bool, String> {
        let text = &migration.file.text;
        let text = migration.section.map_or(text.as_str(), |section| &text[section.as_usize()]);
        // The fast way; it knows neither placeholders nor data.
        if migration.transaction != TransactionMode::Autocommit && self.server.query(NAME, text).is_ok() {
            return Ok(true);
        }
        Ok(self.send(migration, &settings())?.is_ok())
    }

    fn send(&self, migration: &Migration<'_>, settings: &Settings) -> Result<Result<(), Error>, String> {
        Ok(send(&[*migration], Place::History(self.address()?), settings))
    }

    /// Runs migrations on a copy, as their tool would. Returns what was refused.
    pub(super) fn run(&self, migrations: &[Migration<'_>]) -> Result<Option<String>, String> {
        let copies = Place::Copy(Template::new(self.address()?));
        Ok(send(migrations, copies, &settings()).err().map(|error| error.to_string()))
    }

    fn address(&self) -> Result<Address, String> {
        Address::try_from(self.server.config(NAME)).map_err(|error| error.to_string())
    }
}

fn settings() -> Settings {
    Settings { effects_only: true, statement_timeout: Some(LIMIT), ..Settings::default() }
}

/// Runs migrations as a history, which nobody measures, because that takes its time.
fn send(migrations: &[Migration<'_>], mut place: Place, settings: &Settings) -> Result<(), Error> {
    let nothing = ParsedFile::default();
    let mut all: Vec<Migration<'_>> =
        migrations.iter().map(|migration| Migration { report: false, ..*migration }).collect();
    all.push(Migration { database: 1, ..Migration::new(&nothing) });
    pgvet_trace::run(&all, &mut place, settings, &mut |_| {}).map(drop)
}

/// Where migrations are run.
enum Place {
    /// In the database itself, which stays.
    History(Address),
    Copy(Template),
}

impl CloneProvider for Place {
    fn name(&self) -> &'static str {
        "offers"
    }

    fn prepare(&mut self) -> Answer<'_, ServerInfo> {
        Box::pin(async {
            let info = match self {
                Self::History(address) => Template::new(address.clone()).prepare().await?,
                Self::Copy(template) => template.prepare().await?,
            };
            Ok(ServerInfo { has_schema: false, reaches_others: false, is_shared: false, ..info })
        })
    }

    fn create(&mut self) -> Answer<'_, ThinClone> {
        match self {
            Self::History(address) => {
                let (database, observer) = (address.clone(), address.database("postgres"));
                Box::pin(async { Ok(ThinClone { database, observer }) })
            }
            Self::Copy(template) => template.create(),
        }
    }

    fn discard(&mut self, clone: ThinClone) -> Answer<'_, ()> {
        match self {
            Self::History(_) => Box::pin(async { Ok(()) }),
            Self::Copy(template) => template.discard(clone),
        }
    }

    fn destroy(&mut self) -> Answer<'_, ()> {
        match self {
            Self::History(_) => Box::pin(async { Ok(()) }),
            Self::Copy(template) => template.destroy(),
        }
    }
}
