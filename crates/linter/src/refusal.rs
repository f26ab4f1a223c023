//! The rules that say that PostgreSQL refuses a statement.

use crate::diagnostic::Diagnostic;
use crate::rule::Rule;
use crate::rules::{engine, transaction};
use crate::settings::Settings;
use crate::severity::Severity;

static REFUSALS: [&Rule; 3] =
    [&engine::syntax_error::RULE, &engine::statement_will_fail::RULE, &transaction::concurrently_in_transaction::RULE];

/// Whether a finding says that PostgreSQL refuses the statement.
pub fn is_refusal(diagnostic: &Diagnostic) -> bool {
    REFUSALS.iter().any(|rule| diagnostic.is_of(&rule.meta))
}

/// The same settings, with the rules that say that PostgreSQL refuses a statement.
#[must_use]
pub fn with_refusals(mut settings: Settings) -> Settings {
    settings.ignore.retain(|rule| REFUSALS.iter().all(|refusal| refusal.meta.name != rule.as_str()));
    for rule in REFUSALS {
        if !settings.only.is_empty() {
            settings.only.push(rule.meta.name.to_owned());
        }
        settings.levels.rules.insert(rule.meta.name.to_owned(), Some(Severity::Error));
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::compatibility::drop_column;
    use crate::settings::Levels;

    #[test]
    fn refusals_are_said_whatever_was_asked_for() {
        let off = |rule: &Rule| (rule.meta.name.to_owned(), None);
        let asked = Settings {
            only: vec!["drop-table".to_owned()],
            ignore: vec!["syntax-error".to_owned()],
            levels: Levels { rules: REFUSALS.map(off).into_iter().collect(), ..Levels::default() },
            ..Settings::default()
        };
        let severity = |settings: &Settings, rule: &Rule| settings.severity_of(&rule.meta);
        for rule in REFUSALS {
            assert_eq!(severity(&asked, rule), None, "{}", rule.meta.name);
            assert_eq!(severity(&with_refusals(asked.clone()), rule), Some(Severity::Error), "{}", rule.meta.name);
        }
        assert_eq!(severity(&with_refusals(asked), &drop_column::RULE), None);
    }
}
