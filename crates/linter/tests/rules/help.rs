//! The statements that help shows, run in place of the statement of the finding: they parse, PostgreSQL refuses none of
//! them, and the rule finds nothing wrong with them.

use crate::scenario::{Outcome, Scenario, Section, SectionKind};
use crate::{examples, expect_none, fixtures, tested_rules};
use pgvet_linter::confidence::Confidence;
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::refusal::is_refusal;
use pgvet_model::migration::TransactionMode;

/// Placeholders for something that only the reader knows.
const PLACEHOLDERS: [&str; 4] = ["...", "…", "$1", "<"];

pub(crate) fn check() {
    let mut problems = Vec::new();
    let mut run = 0;
    for meta in tested_rules() {
        let fixtures = fixtures::files(meta.name).into_iter().map(|path| std::fs::read_to_string(path).unwrap());
        let examples = examples::of(meta).into_iter().map(|example| example.text);
        for text in fixtures.chain(examples) {
            let scenario = Scenario::parse(&text);
            let outcome = scenario.run();
            for found in outcome.of_rule(meta.name) {
                let statements = statements(found);
                run += statements.len();
                problems.extend(problems_of(&scenario, &outcome, found, &statements));
            }
        }
    }
    assert!(run > 0 || std::env::var_os("RULE").is_some(), "no help shows a statement");
    expect_none(&problems);
}

/// The statements of a help: lines that are indented, without those that have placeholders.
fn statements(found: &Diagnostic) -> Vec<String> {
    let lines = found.help.iter().flat_map(|help| help.lines());
    let mut statements: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in lines {
        let Some(sql) = line.strip_prefix("    ") else {
            is_open = false;
            continue;
        };
        match statements.last_mut().filter(|_| is_open) {
            Some(last) => *last = format!("{last}\n{sql}"),
            None => statements.push(sql.to_owned()),
        }
        is_open = !sql.ends_with(';');
    }
    let is_whole = |sql: &String| !PLACEHOLDERS.iter().any(|placeholder| sql.contains(placeholder));
    if statements.iter().all(is_whole) { statements } else { Vec::new() }
}

/// Returns the problems of the statements, run in place of the statement of the finding, and also if they are run after
/// it.
fn problems_of(scenario: &Scenario, outcome: &Outcome, found: &Diagnostic, statements: &[String]) -> Vec<String> {
    let help = found.help.as_deref().unwrap_or_default();
    if statements.is_empty() || PARTIAL.iter().any(|partial| help.contains(partial)) {
        return Vec::new();
    }
    let in_place = run(scenario, outcome, found, statements, found.statement.start);
    let after = run(scenario, outcome, found, statements, found.statement.end);
    if after.is_empty() { after } else { in_place }
}

/// Phrases in help that shows the statements for one of several objects.
const PARTIAL: [&str; 2] = ["do the same for the", " more)"];

/// Phrases in help about statements that must commit together.
const TOGETHER: [&str; 2] = ["in one transaction:", "in the same transaction"];

/// Runs the statements after the text of the file up to `end`: each as a migration of its own, or all together.
fn run(scenario: &Scenario, outcome: &Outcome, found: &Diagnostic, statements: &[String], end: u32) -> Vec<String> {
    let file = found.file as usize;
    let mut sections: Vec<Section> = scenario.sections[..=file].to_vec();
    for section in sections.iter_mut().filter(|section| section.kind == SectionKind::Migration) {
        section.kind = SectionKind::History;
    }
    let last = &mut sections[file];
    last.text.truncate(end as usize);
    let has = |word: &str| statements.iter().any(|sql| sql.contains(word));
    let mode = match last.mode {
        _ if has("CONCURRENTLY") || has("BEGIN;") => TransactionMode::Autocommit,
        TransactionMode::Autocommit if last.text.contains("BEGIN;") => TransactionMode::Transaction,
        mode => mode,
    };
    // A transaction that the file has opened ends before.
    last.mode = TransactionMode::Autocommit;
    last.text.push_str(";\nCOMMIT;\n");
    let first = sections.len();
    let help = found.help.as_deref().unwrap_or_default();
    let migrations = if TOGETHER.iter().any(|together| help.contains(together)) || has("BEGIN;") {
        vec![statements.join("\n")]
    } else {
        statements.to_vec()
    };
    sections.extend(migrations.into_iter().map(|text| Section::new(SectionKind::Migration, mode, text)));
    let mut settings = scenario.settings.clone();
    // Help may be for some of the versions.
    settings.versions.from = found.pg_versions.iter().copied().min().unwrap_or(settings.versions.from);
    let again = Scenario { sections, settings, ..*scenario }.run();
    let name = format!("{}:{}", found.rule, outcome.line(found));
    let mut problems = Vec::new();
    for file in &again.files[first..] {
        let broken = file.statements.iter().filter(|statement| statement.parsed.is_err());
        problems.extend(broken.map(|_| format!("{name}: `{}` does not parse", file.source.text)));
    }
    for other in again.found.iter().filter(|other| other.file as usize >= first) {
        let text = &again.files[other.file as usize].source.text;
        let is_excepted = EXCEPTIONS.iter().any(|(rule, _)| *rule == found.rule);
        if is_refusal(other) {
            problems.push(format!("{name}: `{text}` is refused: {}", other.message));
        } else if other.rule == found.rule && other.confidence >= Confidence::Likely && !is_excepted {
            problems.push(format!("{name}: `{text}` is found again: {}", other.message));
        }
    }
    problems
}

/// Rules whose help makes the harm shorter and cannot take it away.
const EXCEPTIONS: [(&str, &str); 3] = [
    ("drop-index-without-concurrently", "PostgreSQL refuses CONCURRENTLY for the index of a partitioned table"),
    ("foreign-key-locks-other-table", "dropping a foreign key always locks both tables"),
    ("explicit-table-lock", "a lock that is given up at once is still a lock"),
];
