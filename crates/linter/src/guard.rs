//! Keeps a rule that panics from taking the run with it.

use crate::report::Reporter;
use crate::rule::Rule;
use crate::rules::engine::internal_error;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a rule. If it panics, its findings of this call are dropped and `internal-error` says so.
pub(crate) fn run_rule(rule: &'static Rule, reporter: &mut Reporter<'_>, run: impl FnOnce(&mut Reporter<'_>)) {
    let before = reporter.count();
    // What a rule can leave half done is its list of findings alone, which is cut back.
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(reporter))) else { return };
    reporter.truncate(before);
    let message = format!("rule `{}` stopped here because of a defect of pgvet: {}", rule.meta.name, text(&*panic));
    let help = "its findings for this statement are missing; please report the statement. The other rules were run";
    let range = reporter.statement();
    reporter.of_rule(&internal_error::RULE.meta).report(range, message).help(help).emit();
}

/// Returns the first line of what a panic says.
fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::locking::index_without_concurrently::RULE;
    use crate::settings::Settings;
    use crate::severity::Severity;
    use pgvet_syntax::source::TextRange;

    #[test]
    fn a_panic_costs_the_findings_of_its_rule_only() {
        let (settings, mut found) = (Settings::default(), Vec::new());
        let statement = TextRange::new(3, 9);
        let version = settings.versions.from;
        let mut reporter =
            Reporter::new(&settings, &RULE.meta, 0, statement, version, &mut found).expect("the rule is on");
        reporter.report(statement, "an earlier statement").emit();
        run_rule(&RULE, &mut reporter, |reporter| {
            reporter.report(TextRange::at(4), "half done").emit();
            panic!("out of luck\nat line 7");
        });
        let shown: Vec<_> = found.iter().map(|found| (found.rule, found.severity, found.message.as_str())).collect();
        let message = "rule `index-without-concurrently` stopped here because of a defect of pgvet: out of luck";
        assert_eq!(shown[0].2, "an earlier statement");
        assert_eq!(shown[1..], [("internal-error", Severity::Error, message)]);
        assert_eq!(found[1].range, statement);
    }
}
