//! Every fix of every example and fixture, made.

use crate::scenario::Scenario;
use crate::{examples, expect_none, fix_made, fixtures, tested_rules};
use pgvet_linter::fix::Applicability;

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
    let mut fixes = 0;
    for found in outcome.of_rule(rule) {
        for fix in found.fixes.iter().filter(|fix| fix.applicability > Applicability::DisplayOnly) {
            fixes += 1;
            let problem = fix_made::problem(&scenario, &outcome, found, fix);
            problems.extend(problem.map(|problem| format!("{problem} in\n{text}")));
        }
    }
    fixes
}
