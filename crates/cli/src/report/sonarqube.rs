//! Generic issues of `SonarQube`.
//!
//! Source: <https://docs.sonarsource.com/sonarqube-server/analyzing-source-code/importing-external-issues/generic-issue-import-format>
//! (10.3 and newer: rules apart from issues, with clean code attributes and impacts).

use super::{Finding, Report, rule_url};
use pgvet_linter::meta::{Category, RuleMeta};
use pgvet_linter::severity::Severity;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

pub(crate) fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let rules: BTreeMap<&str, &RuleMeta> =
        report.findings.iter().filter_map(|finding| Some((finding.diagnostic.rule, finding.rule()?))).collect();
    let document = json!({
        "rules": rules.values().map(|rule| describe(rule)).collect::<Vec<_>>(),
        "issues": report.findings.iter().map(issue).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn describe(rule: &RuleMeta) -> Value {
    let quality = if rule.category == Category::Security { "SECURITY" } else { "RELIABILITY" };
    let kind = if rule.category == Category::Security { "VULNERABILITY" } else { "BUG" };
    json!({
        "id": rule.name,
        "name": rule.name,
        "description": format!("{} See {}", rule.summary(), rule_url(rule.name)),
        "engineId": "pgvet",
        "cleanCodeAttribute": "LOGICAL",
        "type": kind,
        "severity": legacy(rule.severity),
        "impacts": [{ "softwareQuality": quality, "severity": impact(rule.severity) }],
    })
}

fn issue(finding: &Finding<'_>) -> Value {
    let mut range = json!({ "startLine": finding.start.line });
    // SonarQube refuses empty ranges, and counts columns from 0.
    if (finding.end.line, finding.end.column) > (finding.start.line, finding.start.column) {
        range["endLine"] = finding.end.line.into();
        range["startColumn"] = (finding.start.column - 1).into();
        range["endColumn"] = (finding.end.column - 1).into();
    }
    json!({
        "ruleId": finding.diagnostic.rule,
        "primaryLocation": {
            "message": finding.message_with_help(),
            "filePath": finding.relative_path(),
            "textRange": range,
        },
    })
}

fn impact(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "HIGH",
        Severity::Warning => "MEDIUM",
        Severity::Info => "LOW",
    }
}

fn legacy(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "CRITICAL",
        Severity::Warning => "MAJOR",
        Severity::Info => "INFO",
    }
}
