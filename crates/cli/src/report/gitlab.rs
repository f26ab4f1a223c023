//! A code quality report of GitLab.
//!
//! Source: <https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format>.

use super::Report;
use super::repository::RepositoryPaths;
use pgvet_linter::severity::Severity;
use serde_json::json;
use std::io::{self, Write};

pub(crate) fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let paths = RepositoryPaths::default();
    let issues: Vec<_> = report
        .findings
        .iter()
        .map(|finding| {
            let severity = match finding.diagnostic.severity {
                Severity::Error => "critical",
                Severity::Warning => "major",
                Severity::Info => "info",
            };
            json!({
                "type": "issue",
                // GitLab does not show the name of the check.
                "description": format!("{}: {}", finding.diagnostic.rule, finding.message()),
                "check_name": finding.diagnostic.rule,
                "content": { "body": finding.message_with_help() },
                "fingerprint": finding.fingerprint,
                "severity": severity,
                "location": {
                    "path": paths.of(finding.file),
                    "lines": { "begin": finding.start.line, "end": finding.end.line },
                },
            })
        })
        .collect();
    serde_json::to_writer_pretty(&mut *out, &issues)?;
    writeln!(out)
}
