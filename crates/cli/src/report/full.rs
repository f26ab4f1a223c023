//! Findings for reading: the source with the place underlined, and the next step.

use super::entry::Entry;
use super::excerpt::Excerpt;
use super::{Report, rule_url};
use crate::inert;
use crate::style::Style;
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::severity::Severity;
use std::fmt;
use std::io::{self, Write};

/// Where help is broken if the width of the terminal is not known. SQL is not broken, so that it can be copied.
const WIDTH: usize = 100;

/// Columns before a message: `  × `.
const BEFORE_MESSAGE: usize = 4;

/// Columns before help: `  help: `.
const BEFORE_HELP: usize = 8;

pub(crate) fn write(report: &Report<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let theme = if style.color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_links(false)
        .with_urls(false)
        .with_width(style.width.unwrap_or(WIDTH))
        .with_context_lines(1)
        .with_wrap_lines(false);
    let mut text = String::new();
    for entry in Entry::of(report) {
        text.clear();
        let found = entry.finding.diagnostic;
        let shown = Shown::new(report, &entry, style);
        // Rendering fails only when a place lies outside of its text; the finding counts more than its picture.
        if handler.render_report(&mut text, &shown).is_err() {
            text = format!("{}: {}\n", report.place(found.file, found.range), inert::line(&found.message));
        }
        let code = shown.code_text();
        let linked = style.link(&rule_url(found.rule), &code);
        writeln!(out, "{}\n", inert::marked(text.trim_end()).replacen(&code, &linked, 1))?;
    }
    for finding in &report.suppressed {
        let place = report.place(finding.diagnostic.file, finding.diagnostic.range);
        let reason = finding.reason.filter(|reason| !reason.is_empty()).unwrap_or("no reason given");
        let line =
            format!("{place}: suppressed[{}] {} ({reason})", finding.diagnostic.rule, finding.diagnostic.message);
        writeln!(out, "{}", style.dim(&line))?;
    }
    if report.is_quiet {
        return Ok(());
    }
    write_fixed(report, out)?;
    for line in wrap(&report.summary.to_string(), style.width).lines() {
        writeln!(out, "{}", style.bold(line))?;
    }
    write_next_steps(report, style, out)
}

/// Writes the next steps for the findings: how many have a fix, and where their rules are explained.
fn write_next_steps(report: &Report<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    for line in report.remedies() {
        writeln!(out, "{}", wrap(&line, style.width))?;
    }
    match report.rules().as_slice() {
        [] => Ok(()),
        [only] => writeln!(out, "`pgvet explain {only}` says more about the rule."),
        [first, ..] => {
            let line = format!("`pgvet explain RULE` says more about a rule, for example `pgvet explain {first}`.");
            writeln!(out, "{}", wrap(&line, style.width))
        }
    }
}

/// How many of the places that explain a finding are shown.
const LABELS: usize = 8;

/// How many entries of the baseline are named.
const FIXED_SHOWN: usize = 5;

/// Writes the entries of the baseline that are not needed any more.
pub(super) fn write_fixed(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Some(known) = report.known.as_ref().filter(|known| !known.fixed.is_empty()) else { return Ok(()) };
    writeln!(out, "fixed since {} was written (`pgvet baseline` removes these entries from it):", known.path)?;
    for entry in known.fixed.iter().take(FIXED_SHOWN) {
        let line = format!("{}: {} {}", entry.path, entry.rule, entry.message);
        writeln!(out, "  {}", inert::line(&line))?;
    }
    match known.fixed.len().saturating_sub(FIXED_SHOWN) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

/// A finding in miette's terms.
#[derive(Debug)]
struct Shown<'a> {
    found: &'a Diagnostic,
    message: String,
    source: Excerpt<'a>,
    labels: Vec<LabeledSpan>,
    help: Option<String>,
}

impl<'a> Shown<'a> {
    fn new(report: &Report<'a>, entry: &Entry<'_, 'a>, style: Style) -> Self {
        let width = Some(style.width.map_or(WIDTH, |width| width.saturating_sub(BEFORE_HELP)));
        let found = entry.finding.diagnostic;
        let source = Excerpt { file: report.file(found.file), path: name(report, found) };
        let mut labels = vec![LabeledSpan::new_primary_with_span(None, source.span(found.range))];
        let mut help: Vec<String> = found.help.iter().map(|help| wrap(help, width)).collect();
        let doubts = found.assumptions.iter().filter(|assumption| !assumption.is_usual());
        help.extend(doubts.map(|assumption| wrap(&assumption.to_string(), width)));
        for label in found.labels.iter().take(LABELS) {
            let text = inert::line(&label.message);
            if report.path(label.file) == report.path(found.file) {
                labels.push(LabeledSpan::new_with_span(Some(text.into_owned()), source.span(label.range)));
            } else {
                help.push(format!("{}: {text}", inert::line(&report.place(label.file, label.range))));
            }
        }
        if let more @ 1.. = found.labels.len().saturating_sub(LABELS) {
            help.push(format!("{more} more related locations (--format json lists them)"));
        }
        help.extend(similar(report, entry));
        let message = wrap(&inert::line(&found.message), style.width.map(|width| width.saturating_sub(BEFORE_MESSAGE)));
        Self { found, message, source, labels, help: (!help.is_empty()).then(|| inert::lines(&help.join("\n"))) }
    }

    /// The name of the rule with its severity: `error[drop-column]`.
    fn code_text(&self) -> String {
        format!("{}[{}]", self.found.severity.as_str(), self.found.rule)
    }
}

/// The file of a finding, above its text. Lines are those of the captured SQL where that is what is shown.
fn name(report: &Report<'_>, found: &Diagnostic) -> String {
    let name = match report.project_file(found.file).origin.as_ref().and_then(|origin| origin.source.as_ref()) {
        Some(source) => {
            let (start, _) = report.project_file(found.file).positions(found.range);
            format!("{source}:{}, SQL as captured", start.line)
        }
        None => report.path(found.file).to_owned(),
    };
    inert::line(&name).into_owned()
}

/// A line for each similar finding that is shown, between their number and that of the rest.
fn similar(report: &Report<'_>, entry: &Entry<'_, '_>) -> Vec<String> {
    let shown = entry.shown(report);
    let lines = shown.map(|(place, message)| format!("  {}: {}", inert::line(&place), inert::line(message)));
    let rest = entry.rest().map(|rest| format!("  {rest}"));
    entry.title().into_iter().chain(lines).chain(rest).collect()
}

/// Breaks prose into lines of a width, if there is one; lines that begin with a blank are SQL.
fn wrap(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut wrapped = String::with_capacity(text.len());
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            wrapped.push('\n');
        }
        if line.starts_with(' ') || line.chars().count() <= width {
            wrapped.push_str(line);
            continue;
        }
        let mut column = 0;
        for word in line.split(' ') {
            let length = word.chars().count();
            if column > 0 && column + 1 + length > width {
                wrapped.push('\n');
                column = 0;
            } else if column > 0 {
                wrapped.push(' ');
                column += 1;
            }
            wrapped.push_str(word);
            column += length;
        }
    }
    wrapped
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code_text()))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.found.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Info => miette::Severity::Advice,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_wrapped_and_sql_is_not() {
        let prose = "word ".repeat(30);
        let sql = format!("    {}", "x ".repeat(80));
        let wrapped = wrap(&format!("{}\n{sql}", prose.trim_end()), Some(WIDTH));
        assert_eq!(wrapped.lines().count(), 3);
        assert!(wrapped.ends_with(&sql));
        assert!(wrapped.lines().take(2).all(|line| line.len() <= WIDTH));
    }
}
