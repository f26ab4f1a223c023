use crate::ranges::assert_inside;
use crate::scenario::Scenario;
use pgvet_linter::check::{Outcome, run};
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::meta::Category;
use pgvet_linter::rules;
use pgvet_syntax::source::TextRange;

/// Beginnings of suppressions, each with a similar one of a comment without meaning.
const MARKS: [(&str, &str); 4] = [
    ("pgvet:", "qgvet:"),
    ("squawk-ignore", "tquawk-ignore"),
    ("eugene:", "fugene:"),
    ("atlas:nolint", "btlas:nolint"),
];

/// Every finding is either reported or suppressed, and suppressions make no new ones but about themselves.
pub fn suppressions(text: &str) {
    let Some(suppressed) = outcome(text) else { return };
    for (mark, other) in MARKS {
        if text.contains(other) || !text.contains(mark) {
            continue;
        }
        let without = MARKS.iter().fold(text.to_owned(), |text, (mark, other)| text.replace(mark, other));
        // A phase suppresses nothing: it is what rules judge.
        let without = without.replace("qgvet: phase", "pgvet: phase").replace("qgvet:phase", "pgvet:phase");
        let Some(plain) = outcome(&without) else { return };
        let all = suppressed.found.iter().chain(suppressed.suppressed.iter().map(|one| &one.diagnostic));
        assert_eq!(places(all), places(&plain.found), "{text}");
        return;
    }
}

fn outcome(text: &str) -> Option<Outcome> {
    let scenario = Scenario::read(text).ok()?;
    let files = scenario.files();
    let outcome = run(&scenario.migrations(&files), &scenario.settings, &());
    for found in outcome.found.iter().chain(outcome.suppressed.iter().map(|one| &one.diagnostic)) {
        let text = &files[found.file as usize].source.text;
        assert_inside(text, &(found.range, found.statement, &found.fixes));
    }
    Some(outcome)
}

/// Where rules report that do not yield to other rules.
fn places<'d>(found: impl IntoIterator<Item = &'d Diagnostic>) -> Vec<(&'static str, u32, TextRange)> {
    let yields_to_none = |name: &str| {
        rules::find(name).is_some_and(|rule| rule.meta.yields_to.is_empty() && rule.meta.category != Category::Engine)
    };
    let found = found.into_iter().filter(|found| yields_to_none(found.rule));
    let mut places: Vec<_> = found.map(|found| (found.rule, found.file, found.range)).collect();
    places.sort();
    places
}
