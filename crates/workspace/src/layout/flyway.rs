//! Flyway: what it runs without a transaction, which files it refuses, and where it waits for itself.

use super::statements::{Words, statements};
use crate::boundary::Boundary;
use crate::read;
use pgvet_model::runner::{Refusal, RefusalKind};
use std::path::Path;

/// Whether Flyway runs a statement without a transaction. Source: Flyway,
/// `PostgreSQLParser.detectCanExecuteInTransaction`, and runs of 11.1 and 13.12: `REINDEX INDEX CONCURRENTLY` and
/// `DETACH PARTITION ... CONCURRENTLY` stay inside of it.
fn runs_alone(words: &Words<'_>) -> bool {
    let verbose =
        words.first_two() == ("REINDEX", "VERBOSE") && matches!(words.at(2), "SCHEMA" | "DATABASE" | "SYSTEM");
    verbose || words.is_known_to_run_alone()
}

/// Whether a text holds a statement that Flyway runs without a transaction.
pub(super) fn has_alone(text: &str) -> bool {
    statements(text).iter().any(|(_, words)| runs_alone(words))
}

/// Statements of a file that Flyway refuses, with the settings that are found around it.
pub(super) fn refusals(path: &Path, text: &str, opted_out: bool) -> Vec<Refusal> {
    let statements = statements(text);
    let Some((alone, words)) = statements.iter().find(|(_, words)| runs_alone(words)) else { return Vec::new() };
    let mut refusals = Vec::new();
    let has_other = statements.iter().any(|(_, words)| !runs_alone(words));
    if has_other && !opted_out && !is_set(path, "mixed", "true") {
        refusals.push(Refusal {
            kind: RefusalKind::Fails,
            range: *alone,
            message: "Flyway refuses this file: it runs this statement without a transaction, and others of the file in one"
                .to_owned(),
            help: "put it in a migration of its own, which holds nothing else, not even a SET; or set flyway.mixed=true: then \
                   nothing of the file runs in a transaction"
                .to_owned(),
            by_default: true,
                unproven: None,
        });
    }
    if builds_without_end(path, words) {
        refusals.push(Refusal {
            kind: RefusalKind::NeverEnds,
            range: *alone,
            message: "Flyway 9.1.3 and later waits for itself here and never ends: the transaction in which it holds its lock \
                      is older than this statement, which waits for it"
                .to_owned(),
            help: LOCK_WITHOUT_TRANSACTION.to_owned(),
            by_default: true,
                unproven: None,
        });
    }
    refusals
}

/// The setting with which Flyway can build an index concurrently.
pub(super) const LOCK_WITHOUT_TRANSACTION: &str =
    "set flyway.postgresql.transactional.lock=false, so that Flyway locks without a transaction";

/// Whether Flyway waits for itself in a file, as far as the settings around it tell.
pub(super) fn waits_for_itself(path: &Path, text: &str) -> bool {
    statements(text).iter().any(|(_, words)| builds_without_end(path, words))
}

fn builds_without_end(path: &Path, words: &Words<'_>) -> bool {
    words.first_two().0 == "CREATE" && words.is_concurrent_index() && !is_set(path, "transactionallock", "false")
}

/// Files that may configure Flyway, in a folder around the migrations.
const CONFIGURATIONS: [&str; 21] = [
    "flyway.conf",
    "flyway.toml",
    "conf/flyway.conf",
    "conf/flyway.toml",
    "application.properties",
    "application.yml",
    "application.yaml",
    "src/main/resources/application.properties",
    "src/main/resources/application.yml",
    "src/main/resources/application.yaml",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "gradle.properties",
    "docker-compose.yml",
    "docker-compose.yaml",
    "compose.yml",
    "compose.yaml",
    ".env",
    "Dockerfile",
    "Makefile",
];

/// Maximum number of levels above the migrations at which their configuration is searched.
const LEVELS: usize = 8;

/// Whether a file around the migrations gives the setting this value. `name` is without the marks that differ between
/// the forms: `transactional.lock=false`, `transactional-lock: false`, `TRANSACTIONAL_LOCK=false`.
fn is_set(path: &Path, name: &str, value: &str) -> bool {
    let folder = crate::config::absolute(path);
    let boundary = Boundary::around(&folder);
    let around = folder.ancestors().skip(1).take(LEVELS).take_while(|folder| boundary.refusal(folder).is_none());
    let mut files = around.flat_map(|folder| CONFIGURATIONS.iter().map(|file| folder.join(file)));
    files.any(|file| read::text(&file).is_ok_and(|text| sets(&text, name, value)))
}

fn sets(text: &str, name: &str, value: &str) -> bool {
    let is_set = |line: &str| {
        let line: String = line.chars().filter(|c| !matches!(c, '.' | '-' | '_' | ' ' | '\t' | '"' | '\'')).collect();
        let line = line.to_ascii_lowercase();
        let rest = line.find(name).map(|at| &line[at + name.len()..]);
        rest.is_some_and(|rest| rest.starts_with(['=', ':', '>', ',']) && rest[1..].starts_with(value))
    };
    text.lines().filter(|line| !line.trim_start().starts_with('#')).any(is_set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_found_in_every_form() {
        for text in [
            "flyway.postgresql.transactional.lock=false",
            "spring.flyway.postgresql.transactional-lock = false",
            "      transactional-lock: false",
            "FLYWAY_POSTGRESQL_TRANSACTIONAL_LOCK: \"false\"",
            "<flyway.postgresql.transactional.lock>false</flyway.postgresql.transactional.lock>",
        ] {
            assert!(sets(text, "transactionallock", "false"), "{text}");
        }
        assert!(!sets("# transactional.lock=false", "transactionallock", "false"));
        assert!(!sets("transactional.lock=true", "transactionallock", "false"));
    }

    #[test]
    fn files_of_both_sorts_are_refused() {
        let messages = |text: &str| refusals(Path::new("nowhere/V1__a.sql"), text, false).len();
        let build = "CREATE INDEX CONCURRENTLY i ON t (a);";
        assert_eq!(messages("CREATE INDEX i ON t (a); SELECT 1"), 0);
        assert_eq!(messages("VACUUM t;"), 0);
        assert_eq!(messages("SET lock_timeout = 0; VACUUM t;"), 1);
        assert_eq!(messages(build), 1);
        assert_eq!(messages(&format!("SET lock_timeout = 0;\n{build}")), 2);
        assert_eq!(refusals(Path::new("nowhere/V1__a.sql"), "SELECT 1; VACUUM t", true).len(), 0);
    }
}
