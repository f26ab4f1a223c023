//! Findings for programs. The names of fields are stable within a `schema_version`.

use super::{Finding, JsonRange, Known, Report, Summary, json_schema, rule_url};
use pgvet_linter::confidence::Confidence;
use pgvet_linter::fix::{Applicability, Fix, Step};
use pgvet_linter::severity::Severity;
use pgvet_model::effect::Evidence;
use pgvet_model::version::PgVersion;
use pgvet_workspace::{Problem, SkipReason, Skipped};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Document<'a> {
    schema_version: u32,
    /// The findings, in the order of files.
    diagnostics: Vec<JsonDiagnostic<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressed: Vec<JsonDiagnostic<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<&'a Known>,
    problems: Vec<JsonProblem<'a>>,
    /// Notes that are not problems: files that seem to be written for another database, deleted migrations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<JsonProblem<'a>>,
    /// Files with SQL that were found and not checked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_checked: Vec<JsonSkipped>,
    summary: Summary,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct JsonDiagnostic<'a> {
    rule: &'a str,
    #[schemars(with = "json_schema::Severity")]
    severity: Severity,
    #[schemars(with = "json_schema::Confidence")]
    confidence: Confidence,
    assumptions: Vec<String>,
    message: Cow<'a, str>,
    help: Option<&'a str>,
    path: &'a str,
    range: JsonRange,
    labels: Vec<JsonLabel<'a>>,
    relations: &'a [String],
    /// The major versions that it applies to; empty if to all that are configured.
    #[schemars(with = "Vec<u32>")]
    pg_versions: &'a [PgVersion],
    fixes: Vec<JsonFix<'a>>,
    /// The statements that can take the place of this one: see `pgvet rewrite`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rewrite: Vec<JsonStep<'a>>,
    fingerprint: &'a str,
    /// The same at other places of the file, or for other objects of the statement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repeats: Vec<JsonDiagnostic<'a>>,
    /// Findings of the same group are one entry in reports for people.
    group: String,
    url: String,
    /// After a trace: whether the statement was judged by its observed effects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<json_schema::Evidence>")]
    evidence: Option<Evidence>,
    /// Why a comment suppresses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonLabel<'a> {
    path: &'a str,
    range: JsonRange,
    message: &'a str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonFix<'a> {
    title: &'a str,
    #[schemars(with = "json_schema::Applicability")]
    applicability: Applicability,
    edits: Vec<JsonEdit<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonStep<'a> {
    sql: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}

impl<'a> JsonStep<'a> {
    fn new(step: &'a Step) -> Self {
        Self { sql: &step.sql, note: step.note.as_deref() }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct JsonEdit<'a> {
    range: JsonRange,
    text: &'a str,
}

/// Something that was asked for and could not be checked.
#[derive(Debug, Serialize, JsonSchema)]
struct JsonProblem<'a> {
    path: &'a str,
    message: &'a str,
}

/// Files that were not checked for the same reason.
#[derive(Debug, Serialize, JsonSchema)]
struct JsonSkipped {
    reason: SkipReason,
    files: Vec<String>,
}

fn not_checked(skipped: &[Skipped]) -> Vec<JsonSkipped> {
    let mut by_reason: BTreeMap<SkipReason, Vec<String>> = BTreeMap::new();
    for file in skipped {
        by_reason.entry(file.reason).or_default().push(file.shown());
    }
    by_reason.into_iter().map(|(reason, files)| JsonSkipped { reason, files }).collect()
}

pub(crate) fn write<'a>(report: &'a Report<'a>, out: &mut dyn Write) -> io::Result<()> {
    let said = |problem: &'a Problem| JsonProblem { path: &problem.path, message: &problem.message };
    let document = Document {
        schema_version: 1,
        diagnostics: report.findings.iter().map(|finding| diagnostic(report, finding)).collect(),
        suppressed: report.suppressed.iter().map(|finding| diagnostic(report, finding)).collect(),
        baseline: report.known.as_ref(),
        problems: report.project.problems.iter().map(said).collect(),
        notes: report.project.notes.iter().map(said).collect(),
        not_checked: not_checked(&report.project.skipped),
        summary: report.summary.clone(),
    };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}

/// A finding after a trace.
pub(super) fn traced<'a>(report: &Report<'a>, finding: &'a Finding<'a>) -> JsonDiagnostic<'a> {
    JsonDiagnostic { evidence: Some(finding.diagnostic.evidence), ..diagnostic(report, finding) }
}

fn diagnostic<'a>(report: &Report<'a>, finding: &'a Finding<'a>) -> JsonDiagnostic<'a> {
    let found = finding.diagnostic;
    let file = report.file(found.file);
    let labels = found.labels.iter().map(|label| JsonLabel {
        path: report.path(label.file),
        range: JsonRange::of(report.project_file(label.file), label.range),
        message: &label.message,
    });
    let edits = |fix: &'a Fix| {
        fix.edits.iter().map(|edit| JsonEdit { range: JsonRange::new(file, edit.range), text: &edit.text }).collect()
    };
    let fixes = found.fixes.iter().map(|fix| JsonFix {
        title: &fix.title,
        applicability: fix.applicability,
        edits: edits(fix),
    });
    JsonDiagnostic {
        rule: found.rule,
        severity: found.severity,
        confidence: found.confidence,
        assumptions: found.assumptions.iter().map(ToString::to_string).collect(),
        message: finding.message(),
        help: found.help.as_deref(),
        path: finding.path,
        range: JsonRange::of(finding.file, found.range),
        labels: labels.collect(),
        relations: &found.relations,
        pg_versions: &found.pg_versions,
        fixes: fixes.collect(),
        rewrite: found.steps.iter().map(JsonStep::new).collect(),
        fingerprint: &finding.fingerprint,
        repeats: finding.repeats.iter().map(|repeat| diagnostic(report, repeat)).collect(),
        group: finding.group(),
        url: rule_url(found.rule),
        evidence: None,
        reason: finding.reason,
    }
}
