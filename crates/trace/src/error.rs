//! Why a trace could not be done.

use std::fmt;

/// A message for the user, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub message: String,
    pub help: Option<String>,
}

impl Error {
    /// A message without a next step.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    /// Adds the next step.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds what else went wrong, which explains it.
    #[must_use]
    pub fn with(self, trouble: &str) -> Self {
        Self::new(format!("{}; {trouble}", self.message))
    }

    /// Whether a connection fails because no password is given.
    pub(crate) fn is_missing_password(&self) -> bool {
        self.message.contains("password missing")
    }

    /// Whether a setting is refused for its value (`invalid_parameter_value`).
    pub(crate) fn is_invalid_value(&self) -> bool {
        self.message.contains("(SQLSTATE 22023)")
    }

    /// Returns the message of the server or the connection, with its SQLSTATE.
    pub(crate) fn from_postgres(error: &tokio_postgres::Error) -> Self {
        let Some(said) = error.as_db_error() else { return Self::new(with_causes(error)) };
        let message = format!("{} (SQLSTATE {})", said.message(), said.code().code());
        Self { message, help: said.hint().map(str::to_owned) }
    }
}

/// The message and those of its causes: the outer one of a lost connection says little.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        message = format!("{message}: {inner}");
        cause = inner.source();
    }
    message
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
