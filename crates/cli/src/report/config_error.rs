//! Errors of a configuration file, underlined.

use super::excerpt::Excerpt;
use crate::inert;
use crate::style::Style;
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use pgvet_syntax::source::{SourceFile, TextRange};
use pgvet_workspace::config::ConfigError;
use std::fmt;
use std::io::{self, Write};

pub(crate) fn write(error: &ConfigError, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let Some(span) = &error.span else {
        let (path, message) = (inert::line(&error.path), inert::line(&error.message));
        writeln!(out, "error: the configuration file `{path}` {message}")?;
        return match &error.help {
            Some(help) => writeln!(out, "  help: {help}"),
            None => Ok(()),
        };
    };
    let theme = if style.color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_links(false).with_context_lines(1);
    // The same bytes, so that the place stays.
    let file = SourceFile::new(inert::line(&error.path).into_owned(), error.text.replace('\x1b', "?"));
    let source = Excerpt { file: &file, path: file.path.clone() };
    let label =
        LabeledSpan::new_primary_with_span(None, source.span(TextRange::new(span.start as u32, span.end as u32)));
    let mut text = String::new();
    // Rendering fails only when a place lies outside of its text.
    if handler.render_report(&mut text, &Shown { error, label, source }).is_err() {
        text = format!("error: {}: {}\n", inert::line(&error.path), inert::line(&error.message));
    }
    writeln!(out, "{}", inert::marked(text.trim_end()))
}

/// The error in miette's terms.
#[derive(Debug)]
struct Shown<'a> {
    error: &'a ConfigError,
    label: LabeledSpan,
    source: Excerpt<'a>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&inert::line(&self.error.message))
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new("error: configuration"))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.error.help.as_ref().map(|help| Box::new(inert::lines(help)) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(std::iter::once(self.label.clone())))
    }
}
