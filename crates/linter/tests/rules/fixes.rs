//! Every fix of every example and fixture, applied: the text still parses, and the finding is gone.

use crate::scenario::{Outcome, Scenario};
use crate::{examples, expect_none, fixtures, tested_rules};
use pgvet_linter::fix::{Applicability, Fix, apply};

pub(crate) fn check() {
    let mut problems = Vec::new();
    for meta in tested_rules() {
        let fixtures = fixtures::files(meta.name).into_iter().map(|path| std::fs::read_to_string(path).unwrap());
        let examples = examples::of(meta).into_iter().map(|example| example.text);
        let mut fixes = 0;
        for text in fixtures.chain(examples) {
            fixes += check_text(meta.name, &text, &mut problems);
        }
        if meta.fixable != (fixes > 0) {
            problems.push(format!("{}: `fixable` is {} and {fixes} fixes were seen", meta.name, meta.fixable));
        }
    }
    expect_none(&problems);
}

/// Returns the number of fixes.
fn check_text(rule: &str, text: &str, problems: &mut Vec<String>) -> usize {
    let scenario = Scenario::parse(text);
    let outcome = scenario.run();
    let before = outcome.of_rule(rule).count();
    let mut fixes = 0;
    for found in outcome.of_rule(rule) {
        for fix in found.fixes.iter().filter(|fix| fix.applicability > Applicability::DisplayOnly) {
            fixes += 1;
            let fixed = with(&scenario, found.file, fix);
            let after = fixed.run();
            let again = after.of_rule(rule).filter(|again| again.fixes.iter().any(|other| other.title == fix.title));
            let offered = outcome.of_rule(rule).filter(|one| one.fixes.iter().any(|other| other.title == fix.title));
            if failures(&after) > failures(&outcome) {
                problems.push(format!("{rule}: the fix `{}` makes PostgreSQL refuse\n{text}", fix.title));
            } else if after.of_rule(rule).count() >= before {
                problems.push(format!("{rule}: the fix `{}` does not silence it in\n{text}", fix.title));
            } else if again.count() >= offered.count() {
                problems.push(format!("{rule}: the fix `{}` is offered again in\n{text}", fix.title));
            }
        }
    }
    fixes
}

/// The scenario with a fix made.
fn with(scenario: &Scenario, file: u32, fix: &Fix) -> Scenario {
    let mut fixed = Scenario { sections: scenario.sections.clone(), settings: scenario.settings.clone() };
    let section = &mut fixed.sections[file as usize];
    let applied = apply(&section.text, [fix]);
    assert_eq!(applied.made, [0], "{fix:?}");
    section.text = applied.text;
    fixed
}

/// What does not parse, or fails when it is run.
fn failures(outcome: &Outcome) -> usize {
    let statements = outcome.files.iter().flat_map(|file| &file.statements);
    let broken = statements.filter(|statement| statement.parsed.is_err()).count();
    // Errors in bodies are findings only.
    broken + outcome.found.iter().filter(|found| found.is_refusal()).count()
}
