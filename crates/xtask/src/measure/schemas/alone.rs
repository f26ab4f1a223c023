//! Histories and scripts, each on a server of its own and in limited time.

use super::histories::History;
use super::laboratory::{Left, predicted_failures, roles};
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
        let texts: Vec<String> = migrations.iter().map(|one| one.file.text.to_lowercase()).collect();
        let is_created = |role: &String| {
            let create = ["role", "user"].map(|kind| format!("create {kind} {}", role.to_lowercase()));
            texts.iter().any(|text| create.iter().any(|create| text.contains(create)))
        };
        let missing: BTreeSet<String> = roles(history).into_iter().filter(|role| !is_created(role)).collect();
        let setup = missing.iter().map(|role| format!("CREATE ROLE {}", quote_identifier(role))).collect();
        let settings = Settings { setup, ..self.settings() };
        let left = replayed(&migrations, self.options(), &settings, &mut |_| {});
        match left.map_err(|error| error.to_string())? {
            Replayed::Refused(refused) => Err(format!("PostgreSQL refuses {}: {}", refused.place(), refused.message)),
            Replayed::Schema(_) if !failures.is_empty() => {
                Err(format!("{} statements fail in the model, and none on the server", failures.len()))
            }
            Replayed::Schema(schema) => Ok(*schema),
        }
    }

    /// Runs a script.
    pub(super) fn apply(self, script: &str) -> Left {
        let settings = Settings { setup: vec![script.to_owned()], ..self.settings() };
        let left = replayed(&[], self.options(), &settings, &mut |_| {});
        match left.map_err(|error| error.to_string())? {
            Replayed::Schema(schema) => Ok(*schema),
            Replayed::Refused(refused) => Err(refused.message),
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
