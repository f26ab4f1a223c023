//! The state of a session as its statements leave it: settings, the open transaction and savepoints.

use super::TransactionId;
use crate::settings::SessionSettings;
use smol_str::SmolStr;
use std::rc::Rc;

/// The state that a rollback restores: its name, the place in the recording from which on it counts, and the settings there.
///
/// Source: PostgreSQL 18 documentation, SET: a rollback undoes the settings of its transaction, too.
#[derive(Debug)]
pub(super) struct Savepoint {
    pub(super) name: SmolStr,
    pub(super) at: usize,
    pub(super) settings: Rc<SessionSettings>,
}

/// The state of a session in the recording.
#[derive(Debug, Default)]
pub(super) struct SessionState {
    pub(super) settings: Rc<SessionSettings>,
    /// The transaction that is open, and the settings at its beginning.
    pub(super) open: Option<TransactionId>,
    pub(super) at_begin: Option<Rc<SessionSettings>>,
    pub(super) savepoints: Vec<Savepoint>,
    /// The place of the first error of the transaction that is open, which makes its COMMIT a rollback.
    pub(super) failed: Option<usize>,
}

impl SessionState {
    /// The index of the last savepoint with a name.
    pub(super) fn savepoint(&self, name: &str) -> Option<usize> {
        self.savepoints.iter().rposition(|known| known.name == name)
    }

    /// Ends the transaction that is open.
    pub(super) fn end(&mut self, is_committed: bool) {
        self.savepoints.clear();
        self.failed = None;
        self.open = None;
        if let Some(settings) = self.at_begin.take().filter(|_| !is_committed) {
            self.settings = settings;
        }
    }
}
