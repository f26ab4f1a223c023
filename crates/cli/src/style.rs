//! Colour, where it is wanted.

use crate::args::ColorChoice;
use crate::inert;
use pgvet_linter::diagnostic::Severity;
use std::io::IsTerminal;

/// Wraps text in terminal colours, or does nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) color: bool,
}

impl Style {
    /// `NO_COLOR` counts when it is set and not empty: <https://no-color.org>.
    pub(crate) fn new(choice: ColorChoice) -> Self {
        Self::on(choice, std::io::stdout().is_terminal())
    }

    pub(crate) fn for_stderr(choice: ColorChoice) -> Self {
        Self::on(choice, std::io::stderr().is_terminal())
    }

    fn on(choice: ColorChoice, is_terminal: bool) -> Self {
        let color = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                !refused && std::env::var_os("TERM").is_none_or(|term| term != "dumb") && is_terminal
            }
        };
        Self { color }
    }

    fn paint(self, code: &str, text: &str) -> String {
        let text = inert::line(text);
        if !self.color {
            return text.into_owned();
        }
        let mark = inert::mark();
        format!("{mark}\x1b[{code}m{text}{mark}\x1b[0m")
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn severity(self, severity: Severity, text: &str) -> String {
        match severity {
            Severity::Error => self.paint("1;31", text),
            Severity::Warning => self.paint("1;33", text),
            Severity::Info => self.paint("1;36", text),
        }
    }
}
