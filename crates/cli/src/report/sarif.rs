//! SARIF 2.1.0, as code scanning of GitHub and others reads it.
//!
//! Source: <https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/sarif-v2.1.0-os.html>; and for what GitHub does with it,
//! <https://docs.github.com/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning>.

use super::repository::RepositoryPaths;
use super::{Finding, Report, rule_url};
use pgvet_linter::confidence::Confidence;
use pgvet_linter::fix::{Applicability, Fix};
use pgvet_linter::meta::RuleMeta;
use pgvet_linter::severity::Severity;
use pgvet_syntax::source::{SourceFile, TextRange};
use pgvet_workspace::{Problem, ProjectFile};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The base of relative paths, by the name that other programs give it, too.
const ROOT: &str = "%SRCROOT%";

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub(crate) fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let findings = || report.findings.iter().chain(&report.suppressed);
    let rules: BTreeMap<&str, &RuleMeta> =
        findings().filter_map(|finding| Some((finding.diagnostic.rule, finding.rule()?))).collect();
    let index: BTreeMap<&str, usize> = rules.keys().enumerate().map(|(at, name)| (*name, at)).collect();
    let paths = RepositoryPaths::default();
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "pgvet",
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.values().map(|rule| describe(rule)).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": { ROOT: { "description": { "text": "The root of the repository." } } },
            "invocations": [{
                "executionSuccessful": report.project.problems.is_empty(),
                "toolExecutionNotifications": notifications(report),
            }],
            "results": findings().map(|finding| result(report, finding, &index, &paths)).collect::<Vec<_>>(),
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// The problems and notes of a run.
fn notifications(report: &Report<'_>) -> Vec<Value> {
    let problems = report.project.problems.iter().map(|problem| ("error", problem));
    let notes = report.project.notes.iter().map(|note| ("note", note));
    let notification = |(level, said): (&str, &Problem)| json!({ "level": level, "message": { "text": format!("`{}` {}", said.path, said.message) } });
    problems.chain(notes).map(notification).collect()
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn describe(rule: &RuleMeta) -> Value {
    let summary = rule.summary();
    // Doc comments keep the blank after their slashes.
    let page: Vec<&str> = rule.docs.lines().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    let page = page.join("\n");
    json!({
        "id": rule.name,
        "name": rule.name,
        "shortDescription": { "text": summary },
        "fullDescription": { "text": summary },
        "help": { "text": page.trim(), "markdown": page.trim() },
        "helpUri": rule_url(rule.name),
        "defaultConfiguration": { "level": level(rule.severity) },
        "properties": {
            "tags": ["postgresql", rule.category.as_str()],
            "precision": "high",
            "problem.severity": match rule.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Info => "recommendation",
            },
        },
    })
}

fn result(report: &Report<'_>, finding: &Finding<'_>, rules: &BTreeMap<&str, usize>, paths: &RepositoryPaths) -> Value {
    let location = |file: &ProjectFile, range| location(file, &paths.of(file), range);
    let found = finding.diagnostic;
    let file = finding.file.shown();
    let mut result = json!({
        "ruleId": found.rule,
        "level": level(found.severity),
        "message": { "text": finding.message_with_help() },
        "locations": [location(finding.file, found.range)],
        "partialFingerprints": { "pgvet/v1": finding.fingerprint },
        "rank": rank(found.confidence),
        "properties": {
            "relations": found.relations,
            "pgVersions": found.pg_versions,
            "confidence": found.confidence,
            "group": finding.group(),
            "assumptions": found.assumptions.iter().map(ToString::to_string).collect::<Vec<_>>(),
        },
    });
    if let Some(at) = rules.get(found.rule) {
        result["ruleIndex"] = (*at).into();
    }
    let labels = found.labels.iter().map(|label| (label.file, label.range, &label.message));
    let repeats = finding.repeats.iter().map(|repeat| repeat.diagnostic);
    let repeats = repeats.map(|repeat| (repeat.file, repeat.range, &repeat.message));
    let related = labels.chain(repeats).enumerate().map(|(id, (file, range, message))| {
        let mut location = location(report.project_file(file), range);
        location["id"] = (id + 1).into();
        location["message"] = json!({ "text": message });
        location
    });
    let related: Vec<Value> = related.collect();
    if !related.is_empty() {
        result["relatedLocations"] = related.into();
    }
    let fixes = found.fixes.iter().filter(|fix| fix.applicability > Applicability::DisplayOnly);
    let fixes: Vec<Value> = fixes.map(|fix| describe_fix(file, &paths.of(finding.file), fix)).collect();
    if !fixes.is_empty() {
        result["fixes"] = fixes.into();
    }
    if let Some(reason) = finding.reason {
        result["suppressions"] = json!([{ "kind": "inSource", "justification": reason }]);
    }
    result
}

/// SARIF's rank goes from 0 to 100. Source: SARIF 2.1.0, 3.27.25.
fn rank(confidence: Confidence) -> f64 {
    match confidence {
        Confidence::Certain => 100.0,
        Confidence::Likely => 75.0,
        Confidence::Possible => 25.0,
    }
}

fn location(file: &ProjectFile, path: &str, range: TextRange) -> Value {
    let region = match file.origin.as_ref().filter(|origin| origin.source.is_some()) {
        // Bytes and columns are those of the captured SQL.
        Some(origin) => json!({ "startLine": origin.line(range) }),
        None => region(file.shown(), range),
    };
    json!({ "physicalLocation": { "artifactLocation": artifact(path), "region": region } })
}

fn artifact(path: &str) -> Value {
    json!({ "uri": uri(path), "uriBaseId": ROOT })
}

fn region(file: &SourceFile, range: TextRange) -> Value {
    let (start, end) = (file.position(range.start), file.position(range.end));
    json!({
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
        "byteOffset": range.start,
        "byteLength": range.end - range.start,
    })
}

fn describe_fix(file: &SourceFile, path: &str, fix: &Fix) -> Value {
    let replacements = fix
        .edits
        .iter()
        .map(|edit| json!({ "deletedRegion": region(file, edit.range), "insertedContent": { "text": edit.text } }));
    json!({
        "description": { "text": fix.title },
        "artifactChanges": [{
            "artifactLocation": artifact(path),
            "replacements": replacements.collect::<Vec<_>>(),
        }],
    })
}

/// A path as a URI reference: RFC 3986, section 3.3.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=@/".contains(&byte) {
            uri.push(byte as char);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("db/1_a.sql"), "db/1_a.sql");
        assert_eq!(uri("a b/é%.sql"), "a%20b/%C3%A9%25.sql");
    }
}
