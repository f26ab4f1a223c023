//! What a command sent to the server, as data that can be written down and read again.

use pgvet_syntax::statement::parse;
use pgvet_trace::masked;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Everything that was sent during a run, in the order in which it was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    pub sessions: Vec<Session>,
    pub statements: Vec<Recorded>,
    /// Calls of functions by number (`FunctionCall`), which carry no statement.
    pub function_calls: usize,
}

/// One connection of the command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub number: u32,
    /// The parameters that the client asked for at the start, without user and database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
}

/// A text that was sent to be executed: one simple query, which can hold several statements, or one execution of a
/// prepared statement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    pub session: u32,
    /// The number of its transaction within the session; `None` if it ran on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<u32>,
    pub sql: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// Since the start of the run.
    #[serde(rename = "at_us", with = "micros")]
    pub started: Duration,
    #[serde(rename = "took_us", with = "micros")]
    pub took: Duration,
    pub outcome: Outcome,
    /// How many of the statements of the text were completed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub completed: u64,
    /// The length of a text that was too long to be kept whole; 0 for one that is whole.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_from: u64,
    /// Bytes of COPY data that the client sent; the data themselves are not recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copied: u64,
}

/// How the server answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Done,
    Failed(Refused),
    /// Not run, because an earlier part of the same request failed.
    Skipped,
    /// The connection ended before an answer came.
    #[default]
    Unanswered,
}

/// An error of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// SQLSTATE.
    pub code: String,
    pub message: String,
    /// Whether it was refused when it was prepared, so that nothing of it ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub when_prepared: bool,
}

/// A value that was sent apart from the statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// The type's OID; 0 if neither client nor server named it.
    #[serde(rename = "type")]
    pub oid: u32,
    /// Bytes as they were sent; `None` for NULL.
    pub length: Option<usize>,
    /// Kept only for the table of the migration tool, and on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl Recorded {
    /// The error with which the server refused it.
    pub fn error(&self) -> Option<&Refused> {
        match &self.outcome {
            Outcome::Failed(refused) => Some(refused),
            Outcome::Done | Outcome::Skipped | Outcome::Unanswered => None,
        }
    }

    /// Whether the server ran it, whatever came of it.
    pub fn was_run(&self) -> bool {
        matches!(self.outcome, Outcome::Done | Outcome::Failed(_))
    }
}

/// One line of a recording that is written down.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Session(Session),
    Statement(Recorded),
    FunctionCalls(usize),
}

impl Recording {
    /// Removes the values of parameters, except those of statements for which they are kept.
    pub fn remove_values(&mut self, keep: &dyn Fn(&str) -> bool) {
        for statement in self.statements.iter_mut().filter(|statement| !keep(&statement.sql)) {
            statement.parameters.iter_mut().for_each(|parameter| parameter.value = None);
        }
    }

    /// Replaces passwords in the statements.
    pub(crate) fn mask(&mut self) {
        self.statements.iter_mut().for_each(|statement| mask(&mut statement.sql));
    }

    /// The recording as lines of JSON.
    pub fn to_lines(&self) -> String {
        let sessions = self.sessions.iter().cloned().map(Line::Session);
        let statements = self.statements.iter().cloned().map(Line::Statement);
        let calls = (self.function_calls > 0).then_some(Line::FunctionCalls(self.function_calls));
        let lines = sessions.chain(statements).chain(calls);
        let mut text = String::new();
        for line in lines {
            text.push_str(&serde_json::to_string(&line).expect("strings and numbers can be written"));
            text.push('\n');
        }
        text
    }

    /// Reads what [`Self::to_lines`] wrote.
    ///
    /// # Errors
    /// The line that cannot be read, and why.
    pub fn from_lines(text: &str) -> Result<Self, String> {
        let mut recording = Self::default();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))? {
                Line::Session(session) => recording.sessions.push(session),
                Line::Statement(statement) => recording.statements.push(statement),
                Line::FunctionCalls(count) => recording.function_calls = count,
            }
        }
        Ok(recording)
    }
}

/// Replaces the passwords of a statement. Words that only look like one stay, where the statement would be broken without
/// them: `SET password = other`.
fn mask(sql: &mut String) {
    let masked = masked(sql);
    let is_whole = |text: &str| parse(text).iter().all(|statement| statement.ast().is_some());
    if masked != *sql && (is_whole(&masked) || !is_whole(sql)) {
        *sql = masked;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Durations as whole microseconds.
mod micros {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_micros)
    }
}
