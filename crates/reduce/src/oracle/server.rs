//! A server still shows the same.

use super::Oracle;
use super::project::Candidate;
use crate::document::Document;
use pgvet_trace::{Attempts, Error, Outcome};
use pgvet_workspace::Project;

/// What must stay of what a run on a server shows.
pub trait Wanted {
    /// The part of an outcome that must stay the same.
    type Shown: Clone + PartialEq;

    /// What an outcome shows of it, if anything.
    fn shown(&self, outcome: &Outcome) -> Option<Self::Shown>;

    /// The values that it names.
    fn values(_: &Self::Shown) -> Vec<String> {
        Vec::new()
    }
}

/// Whether a run on a server shows what the original has shown.
///
/// A new database takes tens of milliseconds. So the statements run in one transaction that is rolled back, as long as the
/// original shows the same there, too. A new database tells at the end whether that was right.
pub struct ServerOracle<W: Wanted> {
    candidate: Candidate,
    wanted: W,
    server: Attempts,
    /// What the original has shown, once it is known.
    original: Option<W::Shown>,
    /// Whether a transaction shows the same as the original; `None` if it was not tried.
    in_one_transaction: Option<bool>,
    /// What the last document has shown.
    last: Option<Outcome>,
}

impl<W: Wanted> ServerOracle<W> {
    pub fn new(project: Project, wanted: W, server: Attempts) -> Self {
        let candidate = Candidate::new(project);
        Self { candidate, wanted, server, original: None, in_one_transaction: None, last: None }
    }

    /// What the last document has shown, for a message about something that does not occur.
    pub fn last(&self) -> Option<&Outcome> {
        self.last.as_ref()
    }

    /// Statements that were not run because they would connect to another server, and why.
    pub fn not_run(&self) -> impl Iterator<Item = &str> {
        self.server.not_run()
    }

    /// The server, for another search.
    pub fn into_server(self) -> Attempts {
        self.server
    }

    fn holds_in_new_database(&mut self, document: &Document) -> Result<bool, Error> {
        self.candidate.show(document);
        let outcome = self.server.in_new_database(&self.candidate.project.migrations())?;
        Ok(self.is_wanted(outcome))
    }

    fn is_wanted(&mut self, outcome: Outcome) -> bool {
        let shown = self.wanted.shown(&outcome);
        self.last = Some(outcome);
        let Some(shown) = shown else { return false };
        *self.original.get_or_insert_with(|| shown.clone()) == shown
    }
}

impl<W: Wanted> Oracle for ServerOracle<W> {
    fn holds(&mut self, document: &Document) -> Result<bool, Error> {
        match self.in_one_transaction {
            Some(false) => return self.holds_in_new_database(document),
            Some(true) => {}
            None => {
                if !self.holds_in_new_database(document)? {
                    return Ok(false);
                }
                let outcome = self.server.in_one_transaction(&self.candidate.project.migrations())?;
                self.in_one_transaction = Some(self.wanted.shown(&outcome) == self.original);
                return Ok(true);
            }
        }
        self.candidate.show(document);
        let outcome = self.server.in_one_transaction(&self.candidate.project.migrations())?;
        Ok(self.is_wanted(outcome))
    }

    fn confirms(&mut self, document: &Document) -> Result<bool, Error> {
        if self.in_one_transaction != Some(true) || self.holds_in_new_database(document)? {
            return Ok(true);
        }
        self.in_one_transaction = Some(false);
        Ok(false)
    }

    fn shown_values(&self) -> Vec<String> {
        self.original.as_ref().map(W::values).unwrap_or_default()
    }
}
