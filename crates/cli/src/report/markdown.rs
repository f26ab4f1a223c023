//! A summary for the page of a job or a comment on a pull request, in GitHub's markdown.

use super::{Finding, Report, rule_url};
use pgvet_linter::diagnostic::Severity;
use std::io::{self, Write};

/// Pages of jobs and comments are limited in length.
const MOST: usize = 50;

pub(crate) fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "## pgvet\n\n{}\n", report.summary)?;
    if !report.findings.is_empty() {
        writeln!(out, "| | Where | Rule | |\n|---|---|---|---|")?;
    }
    // The worst are shown where not all are.
    let mut findings: Vec<&Finding<'_>> = report.findings.iter().collect();
    if findings.len() > MOST {
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.diagnostic.severity));
    }
    for finding in findings.iter().take(MOST) {
        row(finding, out)?;
    }
    if let Some(more) = findings.len().checked_sub(MOST).filter(|more| *more > 0) {
        writeln!(out, "\nand {more} more.")?;
    }
    for finding in findings.iter().take(MOST) {
        details(finding, out)?;
    }
    for problem in &report.project.problems {
        writeln!(out, "\n> [!CAUTION]\n> `{}` {}", problem.path, problem.message)?;
    }
    if let Some(note) = &report.project.note {
        writeln!(out, "\n> [!NOTE]\n> `{}` {}", note.path, note.message)?;
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

fn row(finding: &Finding<'_>, out: &mut dyn Write) -> io::Result<()> {
    let found = finding.diagnostic;
    writeln!(
        out,
        "| {} | `{}:{}` | [{}]({}) | {} |",
        icon(found.severity),
        finding.relative_path(),
        finding.start.line,
        found.rule,
        rule_url(found.rule),
        cell(&found.message)
    )
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn details(finding: &Finding<'_>, out: &mut dyn Write) -> io::Result<()> {
    let found = finding.diagnostic;
    let Some(help) = &found.help else { return Ok(()) };
    writeln!(
        out,
        "\n<details><summary><code>{}:{}</code> {}</summary>\n",
        finding.relative_path(),
        finding.start.line,
        found.rule
    )?;
    let text = &finding.file.shown().text;
    let statement = text.get(found.statement.as_usize()).unwrap_or_default();
    if !statement.is_empty() {
        write_sql(statement, out)?;
    }
    writeln!(out, "{}\n", prose(help))?;
    writeln!(out, "</details>")
}

/// So many lines of a statement are shown.
const LINES: usize = 12;

fn write_sql(statement: &str, out: &mut dyn Write) -> io::Result<()> {
    // A fence that the statement itself cannot end.
    writeln!(out, "````sql")?;
    let mut lines = statement.lines();
    for line in lines.by_ref().take(LINES) {
        writeln!(out, "{}", line.replace("````", "` ```"))?;
    }
    if lines.next().is_some() {
        writeln!(out, "...")?;
    }
    writeln!(out, "````\n")
}

/// Help with its SQL, which is indented by four blanks, as code.
fn prose(help: &str) -> String {
    let mut text = String::new();
    let mut in_sql = false;
    for line in help.lines() {
        let sql = line.strip_prefix("    ");
        if sql.is_some() != in_sql {
            text.push_str(if in_sql { "```\n" } else { "\n```sql\n" });
            in_sql = !in_sql;
        }
        text.push_str(sql.unwrap_or(line));
        text.push('\n');
    }
    if in_sql {
        text.push_str("```\n");
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_in_help_becomes_code() {
        assert_eq!(prose("do this:\n    SELECT 1;\nthen that"), "do this:\n\n```sql\nSELECT 1;\n```\nthen that");
    }
}
