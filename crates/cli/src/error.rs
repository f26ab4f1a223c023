//! Failures outside of migrations, and the exit status of the program.

use crate::args::ColorChoice;
use crate::inert;
use crate::report::config_error;
use crate::style::Style;
use pgvet_workspace::Problem;
use pgvet_workspace::config::ConfigError;
use std::io::{self, Write};
use std::process::ExitCode;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    Clean,
    /// There is a finding at or above `--fail-on`.
    Findings,
    /// Something that was asked for was not checked.
    NotChecked,
    /// `trace --strict-model`: a statement behaves differently from the prediction.
    ModelDiffers,
    /// `capture`: the command failed with this status.
    OfCommand(u8),
}

impl ExitStatus {
    /// The status of a command that failed; as in shells, 128 and the signal that ended it.
    pub(crate) fn of_command(status: std::process::ExitStatus) -> Option<Self> {
        use std::os::unix::process::ExitStatusExt;
        if status.success() {
            return None;
        }
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        Some(Self::OfCommand(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(match status {
            ExitStatus::Clean => 0,
            ExitStatus::Findings => 1,
            ExitStatus::NotChecked => 2,
            ExitStatus::ModelDiffers => 3,
            ExitStatus::OfCommand(status) => status,
        })
    }
}

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    help: Option<String>,
    broken_pipe: bool,
    /// Where configuration is wrong, which is shown instead of the message.
    config: Option<Box<(ConfigError, ColorChoice)>>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, broken_pipe: false, config: None }
    }

    pub(crate) fn config(error: ConfigError, color: ColorChoice) -> Self {
        Self { config: Some(Box::new((error, color))), ..Self::new("the configuration is wrong") }
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
        inert::through(out, inert::Kind::Text, |out| match self.config.as_deref() {
            Some((error, color)) => config_error::write(error, Style::for_stderr(*color), out),
            None => self.write_as("error", out),
        })
    }

    /// The same about something that is no failure.
    pub(crate) fn write_note(&self, out: &mut dyn Write) -> io::Result<()> {
        inert::through(out, inert::Kind::Text, |out| self.write_as("note", out))
    }

    fn write_as(&self, kind: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{kind}: {}", self.message)?;
        match &self.help {
            Some(help) => writeln!(out, "  help: {help}"),
            None => Ok(()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let broken_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Self { broken_pipe, ..Self::new(format!("cannot write the output: {error}")) }
    }
}

impl From<pgvet_trace::Error> for Failure {
    fn from(error: pgvet_trace::Error) -> Self {
        Self { help: error.help, ..Self::new(error.message) }
    }
}

impl From<&Problem> for Failure {
    fn from(problem: &Problem) -> Self {
        Self { help: problem.help.clone(), ..Self::new(problem_line(problem)) }
    }
}

/// A problem on one line, whatever its path is called.
fn problem_line(problem: &Problem) -> String {
    format!("`{}` {}", inert::line(&problem.path), inert::line(&problem.message))
}
