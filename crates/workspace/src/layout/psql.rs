//! Files that scripts of the project run with psql, which commits each statement unless it is asked for one transaction.

use super::folder::Folders;
use super::{Layout, Sign};
use crate::order;
use crate::psql_scripts::Run;
use pgvet_model::migration::{Direction, TransactionMode};
use pgvet_model::runner::KnownTransaction;
use std::path::{Path, PathBuf};

/// The folder of the sequence of a file, and the name of the file below it.
pub(crate) fn place(path: &Path) -> (PathBuf, String) {
    let sequence = order::sequence(path);
    let name = path.strip_prefix(&sequence).unwrap_or(path).to_string_lossy().into_owned();
    (sequence, name)
}

/// A script that runs a file.
pub(super) struct Script {
    in_transaction: bool,
    /// Whether it is known to run the file itself, and not only others of its folder.
    is_exact: bool,
}

impl Script {
    /// Applies what the script says about the transaction.
    pub(super) fn apply(&self, layout: &mut Layout) {
        let transaction = if self.in_transaction { TransactionMode::Transaction } else { TransactionMode::Autocommit };
        layout.sections.iter_mut().for_each(|section| section.transaction = transaction);
        layout.sign = Sign::RunnerCode;
        layout.known_transaction = if self.is_exact { KnownTransaction::Known } else { KnownTransaction::Recognized };
    }
}

impl Folders {
    /// The script that runs a file with psql.
    pub(super) fn psql_run(&self, path: &Path) -> Option<Script> {
        let (sequence, name) = place(path);
        let scripts = self.psql_scripts(&sequence);
        let of = |run: &Run, is_exact| Script { in_transaction: run.in_transaction, is_exact };
        let exact = scripts.run_of(&name).map(|run| of(run, true));
        exact.or_else(|| scripts.first().map(|run| of(run, false)))
    }
}

/// Whether a script runs a file statement by statement that its tool runs in a transaction.
pub(crate) fn contradicts(layout: &Layout, path: &Path, folders: &Folders) -> bool {
    let is_in_transaction = layout
        .sections
        .iter()
        .any(|section| section.direction == Direction::Up && section.transaction != TransactionMode::Autocommit);
    if !is_in_transaction || layout.unlisted || layout.sign == Sign::Configuration {
        return false;
    }
    let (sequence, name) = place(path);
    folders.psql_scripts(&sequence).run_of(&name).is_some_and(|run| !run.in_transaction)
}
