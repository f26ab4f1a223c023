//! The analysis of an open document.

use crate::document::Document;
use pgvet_linter::check::Outcome;
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_syntax::source::TextRange;
use pgvet_workspace::{OpenFile, OpenStatement, Role};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Checks a file; tests replace it.
pub(crate) type Check = fn(&mut OpenFile) -> Outcome;

/// The findings in a document and what its statements do.
#[derive(Debug)]
pub(crate) struct Analysis {
    open: OpenFile,
    outcome: Outcome,
    /// Whether this is about an older text.
    stale: bool,
    /// Grows with every check, so that a client can tell that nothing has changed.
    pub(crate) number: u64,
}

impl Analysis {
    pub(crate) fn new(open: OpenFile) -> Self {
        Self { open, outcome: Outcome::default(), stale: true, number: 0 }
    }

    pub(crate) fn set_stale(&mut self) {
        self.stale = true;
    }

    /// Brings it up to date. Returns whether anything changed.
    ///
    /// # Errors
    /// Returns the message of a defect of the program; nothing of this can be used then.
    pub(crate) fn update(&mut self, document: &Document, number: u64, check: Check) -> Result<bool, String> {
        if !self.stale {
            return Ok(false);
        }
        let update = || {
            self.open.edit(document.text().to_owned());
            if self.open.is_excluded() || self.open.file().is_none() {
                return Outcome::default();
            }
            check(&mut self.open)
        };
        let outcome = catch_unwind(AssertUnwindSafe(update)).map_err(|panic| message(&*panic))?;
        self.number = number;
        self.outcome = outcome;
        self.stale = false;
        Ok(true)
    }

    pub(crate) fn findings(&self) -> &[Diagnostic] {
        &self.outcome.found
    }

    pub(crate) fn statements(&self) -> impl Iterator<Item = OpenStatement<'_>> {
        self.open.statements()
    }

    pub(crate) fn statement_at(&self, offset: u32) -> Option<OpenStatement<'_>> {
        self.statements().find(|statement| statement.range.contains(TextRange::at(offset)))
    }

    pub(crate) fn open(&self) -> &OpenFile {
        &self.open
    }

    /// Whether the file at `path` is part of its history.
    pub(crate) fn follows(&self, path: &Path) -> bool {
        let history = self.open.project().files.iter().filter(|file| file.role != Role::Reported);
        history.map(|file| &file.path).any(|other| other == path)
    }
}

/// Returns the message of a panic.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
