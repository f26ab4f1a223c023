//! A server still refuses a statement with the same error.

use super::server::Wanted;
use pgvet_trace::{Outcome, Refused};

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

impl Wanted for WantedError {
    /// Another error with the same SQLSTATE, such as a column that is missing elsewhere, is not the user's.
    type Shown = Refused;

    fn shown(&self, outcome: &Outcome) -> Option<Refused> {
        match outcome {
            Outcome::Refused(refused) if self.is(refused) => Some(refused.clone()),
            _ => None,
        }
    }

    /// What the message has in quotes, which may also be the name of an object.
    fn values(refused: &Refused) -> Vec<String> {
        refused.message.split('"').skip(1).step_by(2).map(str::to_owned).collect()
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

    #[test]
    fn values_are_quoted() {
        let refused = |message: &str| Refused { sqlstate: "22P02".to_owned(), message: message.to_owned() };
        let values = |message| WantedError::values(&refused(message));
        assert_eq!(values("invalid input syntax for type integer: \"large\""), ["large"]);
        assert_eq!(values("division by zero"), [""; 0]);
    }
}
