//! Findings as text, for snapshots.

use crate::scenario::{Outcome, Scenario};
use pgvet_linter::confidence::Confidence;
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::rules;
use pgvet_syntax::source::TextRange;
use std::fmt::Write;

/// The findings of a rule with everything that a user would see.
pub(crate) fn describe(scenario: &Scenario, outcome: &Outcome, rule: &str) -> String {
    let mut out = String::new();
    for found in outcome.of_rule(rule) {
        one(scenario, outcome, found, &mut out).expect("writing to a string does not fail");
    }
    if out.is_empty() { "nothing\n".to_owned() } else { out }
}

/// The findings of the recommended rules but one, a line each.
pub(crate) fn describe_others(outcome: &Outcome, rule: &str) -> String {
    let is_recommended = |name: &str| rules::find(name).is_some_and(|rule| rule.meta.recommended);
    let others = outcome.found.iter().filter(|found| found.rule != rule && is_recommended(found.rule));
    let line = |found: &Diagnostic| {
        let confidence = format!("{:?}", found.confidence).to_lowercase();
        format!("{}: {} {confidence} {}\n", outcome.line(found), found.severity.as_str(), found.rule)
    };
    others.map(line).collect()
}

fn one(scenario: &Scenario, outcome: &Outcome, found: &Diagnostic, out: &mut String) -> std::fmt::Result {
    let place = |file: u32, range: TextRange| {
        let file = &outcome.files[file as usize];
        let text = &file.source.text;
        let start = file.source.position(range.start);
        let shown = text.get(range.as_usize()).unwrap_or("<no text>").lines().next().unwrap_or_default();
        format!("{}:{} `{shown}`", start.line, start.column)
    };
    let (severity, message) = (found.severity.as_str(), &found.message);
    writeln!(out, "{}: {severity}[{}] {message}", place(found.file, found.range), found.rule)?;
    for assumption in found.assumptions.iter().filter(|assumption| assumption.confidence() == Confidence::Possible) {
        writeln!(out, "  possible: {assumption}")?;
    }
    for label in &found.labels {
        writeln!(out, "  {}: {}", place(label.file, label.range), label.message)?;
    }
    if found.pg_versions.len() < scenario.settings.versions.iter().count() {
        let versions: Vec<String> = found.pg_versions.iter().map(ToString::to_string).collect();
        writeln!(out, "  only PostgreSQL {}", versions.join(", "))?;
    }
    if let Some(help) = &found.help {
        writeln!(out, "  help: {}", help.replace('\n', "\n  "))?;
    }
    for fix in &found.fixes {
        writeln!(out, "  fix ({:?}): {}", fix.applicability, fix.title)?;
        for edit in &fix.edits {
            writeln!(out, "    {} -> `{}`", place(found.file, edit.range), edit.text.replace('\n', "\\n"))?;
        }
    }
    Ok(())
}
