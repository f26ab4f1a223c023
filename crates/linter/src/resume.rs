//! The check from a state that an earlier run has left, and of a migration that somebody edits.
//!
//! A [`Checkpoint`] is what replaying the migrations before some migration has left; it is cheap to clone and to keep. A
//! [`Memory`] holds what the statements of the checked migrations did, so that a check after an edit runs only those
//! that the edit can have changed.

use crate::check::{Outcome, report};
use crate::settings::Settings;
use pgvet_model::checkpoint::Checkpoint;
use pgvet_model::memory::Memory;
use pgvet_model::migration::Migration;
use pgvet_model::replay::Replay;

/// Reports what is wrong with the migrations from the checkpoint on, as [`crate::check::run`] would.
///
/// `memory` must be empty, or come from such a check from the same state and with the same settings, and know which
/// statements have changed since.
pub fn check_from(
    state: &Checkpoint,
    migrations: &[Migration<'_>],
    settings: &Settings,
    memory: &mut Memory,
) -> Outcome {
    let mut replay = Replay::from_checkpoint(settings.versions, state.clone());
    memory.rewind();
    replay.memory = Some(std::mem::take(memory));
    let outcome = report(&mut replay, migrations, settings, &());
    *memory = replay.memory.take().unwrap_or_default();
    memory.end();
    outcome
}

#[cfg(test)]
mod tests;
