//! A server still refuses a statement with the same error.

use super::Oracle;
use super::project::Candidate;
use crate::document::Document;
use pgvet_trace::{Error, Refusals, Refused};
use pgvet_workspace::Project;

/// An error as users name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedError {
    Sqlstate(String),
    /// A part of the message.
    Text(String),
}

impl WantedError {
    /// Reads five digits and capitals as an SQLSTATE, and anything else as a part of the message.
    pub fn parse(text: &str) -> Self {
        let is_sqlstate = text.len() == 5
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
            && text.bytes().any(|byte| byte.is_ascii_digit());
        if is_sqlstate { Self::Sqlstate(text.to_owned()) } else { Self::Text(text.to_owned()) }
    }

    fn is(&self, refused: &Refused) -> bool {
        match self {
            Self::Sqlstate(sqlstate) => refused.sqlstate == *sqlstate,
            Self::Text(text) => refused.message.contains(text.as_str()),
        }
    }
}

/// Whether the first statement that a server refuses is refused with the error of the original.
///
/// A new database takes tens of milliseconds. So the statements run in one transaction that is rolled back, as long as the
/// original shows the error there, too. A new database tells at the end whether that was right.
pub struct RefusalOracle {
    candidate: Candidate,
    wanted: WantedError,
    server: Refusals,
    /// The error of the original, once it is known.
    original: Option<Refused>,
    /// Whether a transaction shows the error of the original; `None` if it was not tried.
    in_one_transaction: Option<bool>,
    /// The answer that the last document got.
    last: Option<Refused>,
}

impl RefusalOracle {
    pub fn new(project: Project, wanted: WantedError, server: Refusals) -> Self {
        let candidate = Candidate::new(project);
        Self { candidate, wanted, server, original: None, in_one_transaction: None, last: None }
    }

    /// The answer that the last document got, for a message about an error that does not occur.
    pub fn last(&self) -> Option<&Refused> {
        self.last.as_ref()
    }

    /// Statements that were not run because they would connect to another server, and why.
    pub fn not_run(&self) -> impl Iterator<Item = &str> {
        self.server.not_run()
    }

    /// The server, for another search.
    pub fn into_server(self) -> Refusals {
        self.server
    }

    fn holds_in_new_database(&mut self, document: &Document) -> Result<bool, Error> {
        self.candidate.show(document);
        let refused = self.server.in_new_database(&self.candidate.project.migrations())?;
        Ok(self.is_wanted(refused))
    }

    fn is_wanted(&mut self, refused: Option<Refused>) -> bool {
        self.last.clone_from(&refused);
        let Some(refused) = refused.filter(|refused| self.wanted.is(refused)) else { return false };
        // Another error with the same SQLSTATE, such as a column that is missing elsewhere, is not the user's.
        *self.original.get_or_insert_with(|| refused.clone()) == refused
    }
}

impl Oracle for RefusalOracle {
    fn holds(&mut self, document: &Document) -> Result<bool, Error> {
        match self.in_one_transaction {
            Some(false) => return self.holds_in_new_database(document),
            Some(true) => {}
            None => {
                if !self.holds_in_new_database(document)? {
                    return Ok(false);
                }
                let refused = self.server.in_one_transaction(&self.candidate.project.migrations())?;
                self.in_one_transaction = Some(refused == self.original);
                return Ok(true);
            }
        }
        self.candidate.show(document);
        let refused = self.server.in_one_transaction(&self.candidate.project.migrations())?;
        Ok(self.is_wanted(refused))
    }

    fn confirms(&mut self, document: &Document) -> Result<bool, Error> {
        if self.in_one_transaction != Some(true) || self.holds_in_new_database(document)? {
            return Ok(true);
        }
        self.in_one_transaction = Some(false);
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_digits_and_capitals_are_an_sqlstate() {
        assert_eq!(WantedError::parse("42P01"), WantedError::Sqlstate("42P01".to_owned()));
        assert_eq!(WantedError::parse("ERROR"), WantedError::Text("ERROR".to_owned()));
        assert_eq!(WantedError::parse("does not exist"), WantedError::Text("does not exist".to_owned()));
    }
}
