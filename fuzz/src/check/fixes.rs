use crate::fix_made;
use crate::scenario::{Outcome, Scenario};
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::fix::{Applicability, Fix, apply};
use pgvet_linter::rewrite::rewrite;
use pgvet_syntax::statement;

/// Every fix does what it should, and changes nothing but its ranges. The statements that replace a migration parse.
pub fn fixes(text: &str) {
    let Ok(scenario) = Scenario::read(text) else { return };
    let outcome = scenario.run();
    // Behind what does not parse, a fix may meet a statement that has no beginning.
    let mut statements = outcome.files.iter().flat_map(|file| &file.statements);
    let parses = statements.all(|statement| statement.parsed.is_ok());
    for found in &outcome.found {
        for fix in &found.fixes {
            assert_local(&outcome, found, fix);
            if parses && fix.applicability > Applicability::DisplayOnly {
                let problem = fix_made::problem(&scenario, &outcome, found, fix);
                assert!(problem.is_none(), "{} in\n{text}\n{fix:?}", problem.unwrap_or_default());
            }
        }
    }
    let migrations = scenario.migrations(&outcome.files);
    let Ok(plan) = rewrite(&migrations, &scenario.settings) else { return };
    for file in plan.files {
        let broken = statement::parse(&file.text()).into_iter().find(|statement| statement.parsed.is_err());
        assert!(broken.is_none(), "{broken:?} in\n{}\nof\n{text}", file.text());
    }
}

/// Asserts that the texts between and around its edits are the same afterwards.
fn assert_local(outcome: &Outcome, found: &Diagnostic, fix: &Fix) {
    let text = &outcome.files[found.file as usize].source.text;
    let applied = apply(text, [fix]);
    assert_eq!(applied.made, [0], "{fix:?} in\n{text}");
    let mut edits: Vec<_> = fix.edits.iter().map(|edit| edit.range).collect();
    edits.sort();
    let mut rest = applied.text.as_str();
    let mut at = 0;
    for (number, edit) in edits.into_iter().enumerate() {
        let kept = &text[at..edit.start as usize];
        let place = rest.find(kept).unwrap_or_else(|| panic!("{kept:?} is gone after {fix:?} in\n{text}"));
        assert!(number > 0 || place == 0, "{kept:?} is moved by {fix:?} in\n{text}");
        rest = &rest[place + kept.len()..];
        at = edit.end as usize;
    }
    assert!(rest.ends_with(&text[at..]), "{fix:?} in\n{text}");
}
