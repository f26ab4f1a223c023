//! Flyway: what it runs without a transaction, which files it refuses, and where it waits for itself.

use super::flyway_project::{LOCKS_IN_TRANSACTION, is_set, version_around};
use super::statements::{Words, statements};
use crate::nearby::Nearby;
use crate::order::FlywayName;
use pgvet_model::runner::{Refusal, RefusalKind};
use pgvet_syntax::lexer::{Token, tokenize};
use pgvet_syntax::source::TextRange;
use std::path::Path;

/// Whether Flyway runs a statement without a transaction. Source: Flyway,
/// `PostgreSQLParser.detectCanExecuteInTransaction`, and runs of 11.1 and 13.12: `REINDEX INDEX CONCURRENTLY` and
/// `DETACH PARTITION ... CONCURRENTLY` stay inside of it.
fn runs_alone(words: &Words<'_>) -> bool {
    let verbose =
        words.first_two() == ("REINDEX", "VERBOSE") && matches!(words.at(2), "SCHEMA" | "DATABASE" | "SYSTEM");
    verbose || words.is_known_to_run_alone()
}

/// Flyway runs such files before and after others. Source: Flyway documentation, "Callbacks".
pub(super) fn is_callback(name: &str) -> bool {
    name.starts_with("before") || name.starts_with("after")
}

/// Whether a text holds a statement that Flyway runs without a transaction.
pub(super) fn has_alone(text: &str) -> bool {
    statements(text).iter().any(|(_, words)| runs_alone(words))
}

/// Statements of a file that Flyway refuses, with the settings that are found around it.
pub(super) fn refusals(path: &Path, text: &str, opted_out: bool, nearby: &Nearby) -> Vec<Refusal> {
    let statements = statements(text);
    let Some((alone, words)) = statements.iter().find(|(_, words)| runs_alone(words)) else { return Vec::new() };
    let mut refusals = Vec::new();
    let has_other = statements.iter().any(|(_, words)| !runs_alone(words));
    if has_other && !opted_out && !is_set(path, "mixed", "true", nearby) {
        refusals.push(Refusal {
            kind: RefusalKind::Fails,
            range: *alone,
            message:
                "Flyway refuses this file, because it runs this statement without a transaction, but other statements \
                      of the file in a transaction"
                    .to_owned(),
            help: "move this statement to a separate migration that contains nothing else, not even a SET. Or set \
                   flyway.mixed=true, so that Flyway runs the whole file without a transaction"
                .to_owned(),
            by_default: true,
            unproven: None,
        });
    }
    if builds_without_end(path, words, nearby) {
        refusals.push(Refusal {
            kind: RefusalKind::NeverEnds,
            range: *alone,
            message:
                "Flyway 9.1.3 and later hangs here: this statement waits for all older transactions, and Flyway holds \
                      its own lock in one of them"
                    .to_owned(),
            help: LOCK_WITHOUT_TRANSACTION.to_owned(),
            by_default: true,
            unproven: None,
        });
    }
    refusals
}

/// Non-breaking spaces before statements, which Flyway does not send: to PostgreSQL they are letters. Those after a
/// comment or within a statement are sent. Source: Flyway, `Parser.getNextStatement` and `Parser.readToken`.
pub(super) fn dropped_spaces(path: &Path, text: &str) -> Vec<(TextRange, &'static str)> {
    let is_flyway = path.file_name().is_some_and(|name| FlywayName::parse(&name.to_string_lossy()).is_some());
    if !is_flyway || !text.contains(NO_BREAK_SPACE) {
        return Vec::new();
    }
    let tokens = tokenize(text, TextRange::new(0, text.len() as u32));
    let ends = tokens.iter().filter(|token| token.is_punctuation(b';')).map(|token| token.range.end as usize);
    let spaces = |start: usize| {
        let blank = text[start..].char_indices().take_while(|(_, one)| one.is_whitespace() || *one == '\u{feff}');
        blank.filter(|(_, one)| *one == NO_BREAK_SPACE).map(move |(at, _)| {
            let at = (start + at) as u32;
            (TextRange::new(at, at + NO_BREAK_SPACE.len_utf8() as u32), "  ")
        })
    };
    [0].into_iter().chain(ends).flat_map(spaces).collect()
}

/// Parentheses that Flyway does not send: those of a part between semicolons that holds nothing else but comments. To
/// PostgreSQL, they are a statement that it refuses. Source: Flyway, `Parser.getNextStatement` and `Parser.readToken`, and
/// runs of 7.15, 9.22, 10.22 and 13.12.
pub(super) fn dropped_parentheses(path: &Path, text: &str) -> Vec<(TextRange, &'static str)> {
    if path.file_name().is_none_or(|name| FlywayName::parse(&name.to_string_lossy()).is_none()) {
        return Vec::new();
    }
    let tokens = tokenize(text, TextRange::new(0, text.len() as u32));
    let is_parenthesis = |token: &Token| token.is_punctuation(b'(') || token.is_punctuation(b')');
    let parts = tokens.split(|token| token.is_punctuation(b';'));
    let dropped = parts.filter(|part| part.iter().all(is_parenthesis));
    dropped.flatten().map(|token| (token.range, " ")).collect()
}

const NO_BREAK_SPACE: char = '\u{a0}';

/// The setting with which Flyway can build an index concurrently.
pub(super) const LOCK_WITHOUT_TRANSACTION: &str =
    "set flyway.postgresql.transactional.lock=false, so that Flyway locks without a transaction";

/// Whether Flyway waits for itself in a file, as far as the settings around it tell.
pub(super) fn waits_for_itself(path: &Path, text: &str) -> bool {
    statements(text).iter().any(|(_, words)| builds_without_end(path, words, &Nearby::default()))
}

fn builds_without_end(path: &Path, words: &Words<'_>, nearby: &Nearby) -> bool {
    words.first_two().0 == "CREATE"
        && words.is_concurrent_index()
        && version_around(path, nearby).is_none_or(|version| version >= LOCKS_IN_TRANSACTION)
        && !is_set(path, "transactionallock", "false", nearby)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_spaces_before_a_statement_are_not_sent() {
        let text = "\u{a0} SELECT\u{a0}1;\n\u{a0}\u{a0}SELECT ';';\n-- a\n\u{a0}SELECT 2;";
        let starts =
            |name: &str| dropped_spaces(Path::new(name), text).iter().map(|(range, _)| range.start).collect::<Vec<_>>();
        assert_eq!(starts("V1__a.sql"), [0, 14, 16]);
        assert!(starts("1_a.sql").is_empty());
    }

    #[test]
    fn parentheses_that_are_no_statement_are_not_sent() {
        let starts = |text: &str| {
            dropped_parentheses(Path::new("V1__a.sql"), text).iter().map(|(range, _)| range.start).collect::<Vec<_>>()
        };
        for (text, expected) in [
            ("SELECT 1;\n)", &[10][..]),
            ("SELECT 1;\n\n-- c\n)", &[16]),
            ("SELECT 1;\n/* c */ ( ) ;\nSELECT 2;", &[18, 20]),
            ("SELECT (1);", &[]),
            ("SELECT 1);\nSELECT 2;", &[]),
            ("SELECT 1;\n)\nSELECT 2;", &[]),
            ("SELECT 1;\n]", &[]),
            ("SELECT ';\n)';", &[]),
        ] {
            assert_eq!(starts(text), expected, "{text}");
        }
    }

    #[test]
    fn files_of_both_sorts_are_refused() {
        let messages = |text: &str| refusals(Path::new("nowhere/V1__a.sql"), text, false, &Nearby::default()).len();
        let build = "CREATE INDEX CONCURRENTLY i ON t (a);";
        assert_eq!(messages("CREATE INDEX i ON t (a); SELECT 1"), 0);
        assert_eq!(messages("VACUUM t;"), 0);
        assert_eq!(messages("SET lock_timeout = 0; VACUUM t;"), 1);
        assert_eq!(messages(build), 1);
        assert_eq!(messages(&format!("SET lock_timeout = 0;\n{build}")), 2);
        assert_eq!(refusals(Path::new("nowhere/V1__a.sql"), "SELECT 1; VACUUM t", true, &Nearby::default()).len(), 0);
    }
}
