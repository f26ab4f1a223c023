//! A summary for the page of a job or a comment on a pull request, in GitHub's markdown.

use super::entry::Entry;
use super::{Report, plural, rule_url};
use pgvet_linter::severity::Severity;
use pgvet_workspace::markup;
use std::io::{self, Write};

/// Pages of jobs and comments are limited in length.
const MOST: usize = 50;

pub(crate) fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "## pgvet\n\n{}\n", report.summary)?;
    if !report.findings.is_empty() {
        writeln!(out, "| | Where | Rule | |\n|---|---|---|---|")?;
    }
    // The worst are shown where not all are.
    let mut entries = Entry::of(report);
    if entries.len() > MOST {
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.finding.diagnostic.severity));
    }
    for entry in entries.iter().take(MOST) {
        row(entry, out)?;
    }
    if let Some(more) = entries.len().checked_sub(MOST).filter(|more| *more > 0) {
        writeln!(out, "\nand {more} more.")?;
    }
    for entry in entries.iter().take(MOST) {
        details(report, entry, out)?;
    }
    for problem in &report.project.problems {
        writeln!(out, "\n> [!CAUTION]\n> {} {}", markup::code(&problem.path), markup::prose(&problem.message))?;
    }
    for note in &report.project.notes {
        writeln!(out, "\n> [!NOTE]\n> {} {}", markup::code(&note.path), markup::prose(&note.message))?;
    }
    Ok(())
}

fn icon(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => ":x:",
        Severity::Warning => ":warning:",
        Severity::Info => ":information_source:",
    }
}

fn row(entry: &Entry<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    let finding = entry.finding;
    let found = finding.diagnostic;
    let similar = match entry.similar.len() {
        0 => String::new(),
        count => format!(" (and {})", plural(count, "similar finding")),
    };
    writeln!(
        out,
        "| {} | {} | [{}]({}) | {}{similar} |",
        icon(found.severity),
        markup::code_cell(&format!("{}:{}", finding.relative_path(), finding.start.line)),
        found.rule,
        rule_url(found.rule),
        markup::cell(&found.message)
    )
}

fn details(report: &Report<'_>, entry: &Entry<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    let finding = entry.finding;
    let found = finding.diagnostic;
    if found.help.is_none() && entry.similar.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n<details><summary><code>{}:{}</code> {}</summary>\n",
        markup::html(&finding.relative_path()),
        finding.start.line,
        found.rule
    )?;
    let text = &finding.file.shown().text;
    let statement = text.get(found.statement.as_usize()).unwrap_or_default();
    if !statement.is_empty() {
        write_sql(statement, out)?;
    }
    if let Some(help) = &found.help {
        writeln!(out, "{}\n", prose(help))?;
    }
    if let Some(title) = entry.title() {
        writeln!(out, "{title}")?;
    }
    for (place, message) in entry.shown(report) {
        writeln!(out, "- {}: {}", markup::code(&place), markup::prose(message))?;
    }
    if let Some(rest) = entry.rest() {
        writeln!(out, "- {rest}")?;
    }
    writeln!(out, "</details>")
}

/// Maximum number of lines of a statement that are shown.
const LINES: usize = 12;

fn write_sql(statement: &str, out: &mut dyn Write) -> io::Result<()> {
    let more = (statement.lines().count() > LINES).then_some("...");
    writeln!(out, "{}", markup::block("sql", statement.lines().take(LINES).chain(more)))
}

/// Help with its SQL, which is indented by four blanks, as code.
fn prose(help: &str) -> String {
    let mut text = String::new();
    let lines: Vec<&str> = help.lines().collect();
    for part in lines.chunk_by(|one, other| is_sql(one) == is_sql(other)) {
        if is_sql(part[0]) {
            text.push('\n');
            text.push_str(&markup::block("sql", part.iter().map(|line| &line[INDENT.len()..])));
        } else {
            part.iter().for_each(|line| text.push_str(&(markup::prose(line) + "\n")));
        }
    }
    text.trim_end().to_owned()
}

const INDENT: &str = "    ";

fn is_sql(line: &str) -> bool {
    line.starts_with(INDENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_in_help_becomes_code() {
        assert_eq!(prose("do this:\n    SELECT 1;\nthen that"), "do this:\n\n```sql\nSELECT 1;\n```\nthen that");
    }
}
