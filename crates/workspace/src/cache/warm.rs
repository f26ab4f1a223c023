//! Where a run can begin, of what the cache knows.

use super::{Cache, Key};
use pgvet_linter::check::{self, Outcome};
use pgvet_linter::settings::Settings;
use pgvet_model::checkpoint::Checkpoint;
use pgvet_model::migration::Migration;
use pgvet_model::replay::Host;
use rayon::prelude::*;
use std::time::{Duration, Instant};

/// A history that is replayed faster than this is not worth a file.
const WORTH_KEEPING: Duration = Duration::from_millis(20);

/// The migrations of one database, as far as the cache knows them.
#[derive(Debug)]
pub(crate) struct Warm {
    cache: Cache,
    /// The states before each migration, and after the last.
    checkpoints: Vec<Key>,
    outcome: Key,
    known: Known,
}

#[derive(Debug)]
enum Known {
    /// The result of the whole run.
    Outcome(Outcome),
    /// The state somewhere in the history; before the first migration, if nothing is known.
    State(Box<Checkpoint>),
}

impl Warm {
    /// Of the migrations only the texts are needed.
    pub(crate) fn new(cache: &Cache, migrations: &[Migration<'_>], settings: &Settings) -> Self {
        let digest = |migration: &Migration<'_>| blake3::hash(migration.file.text.as_bytes());
        let texts: Vec<_> = migrations.par_iter().map(digest).collect();
        let checkpoints = Key::checkpoints(migrations, &texts, settings);
        let end = checkpoints[migrations.len()];
        let outcome = Key::outcome(end, migrations, settings);
        let known = match cache.get(outcome) {
            Some(outcome) => Known::Outcome(outcome),
            None => Known::State(Box::new(nearest(cache, &checkpoints[..=history(migrations)]))),
        };
        Self { cache: cache.clone(), checkpoints, outcome, known }
    }

    /// Does the remaining work, and keeps what took time.
    pub(crate) fn check(&self, migrations: &[Migration<'_>], settings: &Settings, host: &dyn Host) -> Outcome {
        let state = match &self.known {
            Known::Outcome(outcome) => {
                migrations.iter().for_each(|_| host.done());
                return outcome.clone();
            }
            Known::State(state) => state,
        };
        let begun = Instant::now();
        let mut state = (**state).clone();
        let reported = history(migrations);
        if state.next() < reported {
            state.advance(migrations, reported, settings.versions, host);
            if begun.elapsed() >= WORTH_KEEPING {
                self.cache.put(self.checkpoints[reported], &state);
            }
        }
        let outcome = check::run_from(state, migrations, settings, host);
        if begun.elapsed() >= WORTH_KEEPING {
            self.cache.put(self.outcome, &outcome);
        }
        outcome
    }
}

/// How many migrations come before the first that is reported.
fn history(migrations: &[Migration<'_>]) -> usize {
    migrations.iter().position(|migration| migration.report).unwrap_or(migrations.len())
}

/// The last of the states that is known.
fn nearest(cache: &Cache, keys: &[Key]) -> Checkpoint {
    let mut kept = keys.iter().rev().filter(|key| cache.has(**key));
    kept.find_map(|key| cache.get(*key)).unwrap_or_default()
}
