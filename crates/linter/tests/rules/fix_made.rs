//! A text with a fix made: it still parses, PostgreSQL refuses nothing more, and the finding is gone.

use crate::scenario::{Outcome, Scenario};
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::fix::{Fix, apply};
use pgvet_linter::refusal::is_refusal;

/// Returns the problem of a fix that `found` of the `outcome` offers; `None` if it does what it should.
pub(crate) fn problem(scenario: &Scenario, outcome: &Outcome, found: &Diagnostic, fix: &Fix) -> Option<String> {
    let rule = found.rule;
    let fixed = with(scenario, found.file, fix);
    let after = fixed.run();
    let again = after.of_rule(rule).filter(|again| again.fixes.iter().any(|other| other.title == fix.title));
    let offered = outcome.of_rule(rule).filter(|one| one.fixes.iter().any(|other| other.title == fix.title));
    if failures(&after) > failures(outcome) {
        Some(format!("{rule}: the fix `{}` makes PostgreSQL refuse", fix.title))
    } else if after.of_rule(rule).count() >= outcome.of_rule(rule).count() {
        Some(format!("{rule}: the fix `{}` does not silence it", fix.title))
    } else if again.count() >= offered.count() {
        Some(format!("{rule}: the fix `{}` is offered again", fix.title))
    } else {
        None
    }
}

/// The scenario with a fix made.
fn with(scenario: &Scenario, file: u32, fix: &Fix) -> Scenario {
    let mut fixed = Scenario { sections: scenario.sections.clone(), settings: scenario.settings.clone(), ..*scenario };
    let section = &mut fixed.sections[file as usize];
    let applied = apply(&section.text, [fix]);
    assert_eq!(applied.made, [0], "{fix:?}");
    section.text = applied.text;
    fixed
}

/// Counts the statements that do not parse, or fail when they are run.
fn failures(outcome: &Outcome) -> usize {
    let statements = outcome.files.iter().flat_map(|file| &file.statements);
    let broken = statements.filter(|statement| statement.parsed.is_err()).count();
    // Errors in bodies are findings only.
    broken + outcome.found.iter().filter(|found| is_refusal(found)).count()
}
