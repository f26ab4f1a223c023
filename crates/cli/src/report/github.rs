//! Annotations of a GitHub Actions run.
//!
//! Source: <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>, and `actions/toolkit`,
//! `packages/core/src/command.ts` for the escapes.

use super::repository::RepositoryPaths;
use super::{Finding, Report};
use pgvet_linter::severity::Severity;
use std::io::{self, Write};

pub(crate) fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let paths = RepositoryPaths::default();
    for finding in &report.findings {
        writeln!(out, "{}", annotation(finding, &paths.of(finding.file)))?;
    }
    for problem in &report.project.problems {
        let text = format!("`{}` {}", problem.path, problem.message);
        writeln!(out, "::error title=pgvet::{}", escape(&text))?;
    }
    for note in &report.project.notes {
        writeln!(out, "::notice title=pgvet::{}", escape(&format!("`{}` {}", note.path, note.message)))?;
    }
    Ok(())
}

fn annotation(finding: &Finding<'_>, path: &str) -> String {
    let level = match finding.diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    let (start, end) = (finding.start, finding.end);
    // GitHub ignores annotations that name columns of different lines.
    let columns = if start.line == end.line && end.column > start.column {
        format!(",col={},endColumn={}", start.column, end.column - 1)
    } else {
        String::new()
    };
    format!(
        "::{level} file={},line={},endLine={}{columns},title={}::{}",
        escape_property(path),
        start.line,
        end.line,
        escape_property(&format!("pgvet ({})", finding.diagnostic.rule)),
        escape(&finding.message_with_help()),
    )
}

fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape(text).replace(':', "%3A").replace(',', "%2C")
}
