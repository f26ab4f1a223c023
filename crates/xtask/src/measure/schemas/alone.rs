//! Histories and scripts, each on a server of its own and in limited time.

use super::histories::History;
use super::laboratory::{Left, predicted_failures};
use pgvet_model::migration::Migration;
use pgvet_model::version::PgVersion;
use pgvet_schema::Schema;
use pgvet_syntax::lexer::quote_identifier;
use pgvet_trace::provider::ScratchOptions;
use pgvet_trace::{Limits, Replayed, Settings, replayed};
use std::collections::BTreeSet;
use std::time::Duration;

/// The servers for histories that are run one by one.
#[derive(Clone, Copy)]
pub(super) struct Alone {
    pub(super) version: PgVersion,
    /// How long a history may take.
    pub(super) limit: Duration,
}

impl Alone {
    /// Runs a history as far as PostgreSQL accepts its migrations. Returns what was run of it, and the reason if that is
    /// not all.
    pub(super) fn run(self, history: History) -> (History, Left, Option<String>) {
        let (refused, before) = match self.attempt(&history) {
            Ok(Attempt::Ran(schema)) => return (history, Ok(*schema), None),
            Err(why) => return (history, Err(why), None),
            Ok(Attempt::Refused { why, before }) => (why, before),
        };
        if before == 0 {
            return (history, Err(refused), None);
        }
        let history = history.up_to(before);
        let left = match self.attempt(&history) {
            Ok(Attempt::Ran(schema)) => Ok(*schema),
            Ok(Attempt::Refused { why, .. }) | Err(why) => Err(why),
        };
        (history, left, Some(refused))
    }

    fn attempt(self, history: &History) -> Result<Attempt, String> {
        let migrations = history.migrations(1);
        if migrations.is_empty() {
            return Err(history.unusable().to_owned());
        }
        let failures = predicted_failures(&migrations, self.version);
        let mut missing: BTreeSet<String> = BTreeSet::new();
        loop {
            let setup = missing.iter().map(|role| format!("CREATE ROLE {}", quote_identifier(role))).collect();
            let settings = Settings { setup, ..self.settings() };
            let left = replayed(&migrations, self.options(), &settings, &mut |_| {});
            match left.map_err(|error| error.to_string())? {
                Replayed::Refused(refused) => match missing_role(&refused.message) {
                    Some(role) if missing.insert(role.to_owned()) => {}
                    _ => {
                        let is_it = |migration: &Migration<'_>| migration.file.path == refused.path;
                        let before = migrations.iter().position(is_it).unwrap_or(0);
                        let why = format!("PostgreSQL refuses {}: {}", refused.place(), refused.message);
                        return Ok(Attempt::Refused { why, before });
                    }
                },
                Replayed::Schema(_) if !failures.is_empty() => {
                    return Err(format!("{} statements fail in the model, and none on the server", failures.len()));
                }
                Replayed::Schema(schema) => return Ok(Attempt::Ran(schema)),
            }
        }
    }

    /// Runs a script.
    pub(super) fn apply(self, script: &str) -> Left {
        let mut missing: BTreeSet<String> = BTreeSet::new();
        loop {
            let roles = missing.iter().map(|role| format!("CREATE ROLE {}", quote_identifier(role)));
            let setup = roles.chain([script.to_owned()]).collect();
            let settings = Settings { setup, ..self.settings() };
            match replayed(&[], self.options(), &settings, &mut |_| {}) {
                Ok(Replayed::Schema(schema)) => return Ok(*schema),
                Ok(Replayed::Refused(refused)) => return Err(refused.message),
                Err(error) => match missing_role(&error.message) {
                    Some(role) if missing.insert(role.to_owned()) => {}
                    _ => return Err(error.to_string()),
                },
            }
        }
    }

    fn options(self) -> ScratchOptions {
        ScratchOptions { major: Some(self.version.0), ..ScratchOptions::default() }
    }

    fn settings(self) -> Settings {
        let limits = Limits { time: Some(self.limit), ..Limits::default() };
        Settings { statement_timeout: Some(self.limit), limits, ..Settings::default() }
    }
}

/// How a history ran.
enum Attempt {
    Ran(Box<Schema>),
    /// PostgreSQL refused a statement, and there are so many migrations before it.
    Refused {
        why: String,
        before: usize,
    },
}

/// The role that a server lacks, whose creation is no part of most histories.
fn missing_role(message: &str) -> Option<&str> {
    message.strip_prefix("role \"")?.split_once("\" does not exist").map(|(role, _)| role)
}
