//! Colour, width and links, as far as the terminal has them.

use crate::args::ColorChoice;
use crate::inert;
use pgvet_linter::severity::Severity;
use std::io::IsTerminal;

/// How text is shown: in which colours, how wide, and with or without links.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) color: bool,
    /// Columns of the terminal; `None` if text goes elsewhere, where lines stay whole.
    pub(crate) width: Option<usize>,
    /// Whether the terminal shows links (OSC 8).
    links: bool,
}

/// Narrower terminals get lines of this width.
const LEAST_WIDTH: usize = 40;

impl Style {
    /// Text for a file.
    pub(crate) fn plain() -> Self {
        Self { color: false, width: None, links: false }
    }

    /// `NO_COLOR` counts when it is set and not empty: <https://no-color.org>. `CLICOLOR_FORCE` and `FORCE_COLOR` count
    /// unless they are `0`: <https://bixense.com/clicolors/>, <https://force-color.org>.
    pub(crate) fn new(choice: ColorChoice) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let color = has_color(choice, is_terminal);
        // Links are escape sequences as colours are.
        let links = color && is_terminal && supports_hyperlinks::on(supports_hyperlinks::Stream::Stdout);
        Self { color, width: width(is_terminal), links }
    }

    pub(crate) fn for_stderr(choice: ColorChoice) -> Self {
        Self { color: has_color(choice, std::io::stderr().is_terminal()), ..Self::plain() }
    }

    /// A text that leads to a page, where the terminal shows links. The address must be made of harmless characters.
    pub(crate) fn link(self, address: &str, text: &str) -> String {
        if !self.links {
            return text.to_owned();
        }
        let mark = inert::mark();
        format!("{mark}\x1b]8;;{address}\x1b\\{text}{mark}\x1b]8;;\x1b\\")
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

fn has_color(choice: ColorChoice, is_terminal: bool) -> bool {
    let value = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_forced =
        || ["CLICOLOR_FORCE", "FORCE_COLOR"].iter().any(|name| value(name).is_some_and(|value| value != "0"));
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if value("NO_COLOR").is_some() => false,
        ColorChoice::Auto if is_forced() => true,
        ColorChoice::Auto => value("TERM").is_none_or(|term| term != "dumb") && is_terminal,
    }
}

/// The width of the terminal, or what `COLUMNS` says.
fn width(is_terminal: bool) -> Option<usize> {
    let of_terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let of_environment = || std::env::var("COLUMNS").ok()?.parse().ok();
    let width = of_environment().or_else(|| if is_terminal { of_terminal() } else { None });
    width.filter(|width| *width > 0).map(|width: usize| width.max(LEAST_WIDTH))
}
