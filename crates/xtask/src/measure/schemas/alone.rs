//! Histories and scripts, each on a server of its own and in limited time.

use super::histories::History;
use super::laboratory::{Left, predicted_failures};
use pgvet_model::version::PgVersion;
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
    /// Runs a history. Only one that runs to its end can be compared.
    pub(super) fn run(self, history: &History) -> Left {
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
                    _ => return Err(format!("PostgreSQL refuses {}: {}", refused.place(), refused.message)),
                },
                Replayed::Schema(_) if !failures.is_empty() => {
                    return Err(format!("{} statements fail in the model, and none on the server", failures.len()));
                }
                Replayed::Schema(schema) => return Ok(*schema),
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

/// The role that a server lacks, whose creation is no part of most histories.
fn missing_role(message: &str) -> Option<&str> {
    message.strip_prefix("role \"")?.split_once("\" does not exist").map(|(role, _)| role)
}
