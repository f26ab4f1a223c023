//! What goes wrong outside of migrations, and what the program's exit says.

use pgvet_workspace::Problem;
use std::io::{self, Write};
use std::process::ExitCode;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    Clean = 0,
    /// There is a finding at or above `--fail-on`.
    Findings = 1,
    /// Something that was asked for was not checked.
    NotChecked = 2,
    /// `trace --strict-model`: a statement does other than predicted.
    ModelDiffers = 3,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status as u8)
    }
}

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    help: Option<String>,
    broken_pipe: bool,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, broken_pipe: false }
    }

    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "error: {}", self.message)?;
        match &self.help {
            Some(help) => writeln!(out, "  help: {help}"),
            None => Ok(()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let broken_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Self { message: format!("cannot write the output: {error}"), help: None, broken_pipe }
    }
}

impl From<pgvet_trace::Error> for Failure {
    fn from(error: pgvet_trace::Error) -> Self {
        Self { message: error.message, help: error.help, broken_pipe: false }
    }
}

impl From<&Problem> for Failure {
    fn from(problem: &Problem) -> Self {
        Self {
            message: format!("`{}` {}", problem.path, problem.message),
            help: problem.help.clone(),
            broken_pipe: false,
        }
    }
}
