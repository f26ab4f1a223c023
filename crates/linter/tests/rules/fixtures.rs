//! `fixtures/rules/<rule>/*.sql`: marks such as `-- error: rule-name` at the end of a line say where a rule reports, and
//! it must not report anywhere else. Snapshots beside them show how findings read.

use crate::scenario::{Scenario, SectionKind};
use crate::{expect_none, findings, fixture_folder, tested_rules};
use pgvet_linter::severity::Severity;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where a rule is expected to report.
type Mark = (String, u32, Severity);

pub(crate) fn check_marks() {
    let mut problems = Vec::new();
    for rule in tested_rules().map(|meta| meta.name) {
        let fixtures: Vec<(PathBuf, String)> =
            files(rule).into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect();
        let reports = |text: &str| marks(text).iter().any(|mark| mark.0 == rule);
        if !fixtures.iter().any(|(_, text)| reports(text)) {
            problems.push(format!("{rule}: fixtures/rules/{rule} has no file with a mark of the rule"));
        }
        if fixtures.iter().all(|(_, text)| reports(text)) {
            problems.push(format!("{rule}: fixtures/rules/{rule} has no file without a mark of the rule"));
        }
        for (path, text) in &fixtures {
            problems.extend(differences(rule, path, text));
        }
    }
    expect_none(&problems);
}

/// The `.sql` files of a rule's folder, in order.
pub(crate) fn files(rule: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(fixture_folder(rule)) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    files.sort();
    files
}

/// Marks without a finding, and findings without a mark.
fn differences(folder: &str, path: &Path, text: &str) -> Vec<String> {
    let scenario = Scenario::parse(text);
    let outcome = scenario.run();
    let expected = marks(text);
    let rules: BTreeSet<&str> = expected.iter().map(|mark| mark.0.as_str()).chain([folder]).collect();
    let mut found: Vec<Mark> = rules
        .into_iter()
        .flat_map(|rule| outcome.of_rule(rule).map(|found| (rule.to_owned(), outcome.line(found), found.severity)))
        .collect();
    found.sort();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let describe = |problem: &str, (rule, line, severity): &Mark| {
        format!("fixtures/rules/{folder}/{name}:{line}: {problem} {}: {rule}", severity.as_str())
    };
    let mut problems = Vec::new();
    let mut unmarked = found;
    for mark in &expected {
        match unmarked.iter().position(|found| found == mark) {
            Some(at) => drop(unmarked.remove(at)),
            None => problems.push(describe("not reported:", mark)),
        }
    }
    problems.extend(unmarked.iter().map(|found| describe("reported without a mark:", found)));
    problems
}

/// The marks of a text, in order.
fn marks(text: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        for comment in line.split("--").skip(1) {
            let Some((word, rule)) = comment.trim().split_once(": ") else { continue };
            let severity = match word {
                "error" => Severity::Error,
                "warning" => Severity::Warning,
                "info" => Severity::Info,
                _ => continue,
            };
            marks.push((rule.trim().to_owned(), number, severity));
        }
    }
    marks.sort();
    marks
}

pub(crate) fn check_snapshots() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for rule in tested_rules().map(|meta| meta.name) {
        settings.set_snapshot_path(fixture_folder(rule));
        for path in files(rule) {
            let scenario = Scenario::parse(&std::fs::read_to_string(&path).unwrap());
            assert!(
                scenario.sections.iter().any(|section| section.kind == SectionKind::Migration),
                "{}: no migration",
                path.display()
            );
            let outcome = scenario.run();
            let mut text = findings::describe(&scenario, &outcome, rule);
            let others = findings::describe_others(&outcome, rule);
            if !others.is_empty() {
                text.push_str("\nOther rules:\n");
                text.push_str(&others);
            }
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            settings.bind(|| insta::assert_snapshot!(name, text));
        }
    }
}
