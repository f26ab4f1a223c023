//! Every fix of every example and fixture, applied: the text still parses, and the finding is gone.

use crate::scenario::Scenario;
use crate::{examples, expect_none, fixtures, tested_rules};
use pgvet_linter::fix::{Applicability, Fix};

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
            let mut fixed = Scenario { sections: scenario.sections.clone(), settings: scenario.settings.clone() };
            let section = &mut fixed.sections[found.file as usize];
            section.text = apply(&section.text, fix);
            let after = fixed.run();
            let broken =
                after.files.iter().flat_map(|file| &file.statements).any(|statement| statement.parsed.is_err());
            if broken {
                problems.push(format!("{rule}: the fix `{}` breaks the syntax of\n{text}", fix.title));
            } else if after.of_rule(rule).count() >= before {
                problems.push(format!("{rule}: the fix `{}` does not silence it in\n{text}", fix.title));
            }
        }
    }
    fixes
}

fn apply(text: &str, fix: &Fix) -> String {
    let mut edits: Vec<_> = fix.edits.iter().collect();
    edits.sort_by_key(|edit| edit.range);
    let mut text = text.to_owned();
    for edit in edits.into_iter().rev() {
        text.replace_range(edit.range.as_usize(), &edit.text);
    }
    text
}
