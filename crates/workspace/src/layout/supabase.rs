//! Supabase CLI: what it sends together.
//!
//! Seen in runs of 2.109.0, 2.110.0, 2.122.0 and 3.1.0. Up to 2.109 each file is one pipeline, whatever it holds.
//! Source: Supabase CLI, `pkg/migration/file.go`.

use super::package_version;
use super::statements::{Words, statements};
use crate::nearby::Nearby;
use pgvet_model::migration::TransactionMode;
use pgvet_syntax::source::TextRange;
use std::path::Path;

/// The first version that sends some statements alone.
const DIVIDES: (u32, u32) = (2, 110);

/// The transaction of a file, and what of it is one pipeline where it is not a whole, in the version of the project, or
/// in the newest one.
pub(super) fn sent_by_version(path: &Path, text: &str, nearby: &Nearby) -> (TransactionMode, Vec<TextRange>) {
    // Few files depend on it.
    match sent(text, true) {
        (TransactionMode::Autocommit, _) if !divides(path, nearby) => sent(text, false),
        sent => sent,
    }
}

fn divides(path: &Path, nearby: &Nearby) -> bool {
    package_version::of(path, "supabase", nearby).is_none_or(|version| version >= DIVIDES)
}

fn sent(text: &str, divides: bool) -> (TransactionMode, Vec<TextRange>) {
    let statements = statements(text);
    let controls =
        |words: &Words<'_>| matches!(words.at(0), "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "ABORT");
    if divides && statements.iter().any(|(_, words)| controls(words)) {
        return (TransactionMode::Autocommit, Vec::new());
    }
    let is_alone = |words: &Words<'_>| divides && words.is_known_to_run_alone();
    let parts = || statements.split(|(_, words)| is_alone(words));
    // PostgreSQL does not yet know that the first statement of a pipeline will not be the only one.
    let after_first = |part: &[(TextRange, Words<'_>)]| {
        let is_fit = |words: &Words<'_>| words.is_other_concurrent() || words.is_known_to_run_alone();
        usize::from(part.first().is_some_and(|(_, words)| is_fit(words)))
    };
    if !statements.iter().any(|(_, words)| is_alone(words)) && parts().all(|part| after_first(part) == 0) {
        return (TransactionMode::SingleString, Vec::new());
    }
    let pipeline = |part: &[(TextRange, Words<'_>)]| {
        let part = &part[after_first(part)..];
        Some(TextRange::new(part.first()?.0.start, part.last()?.0.end))
    };
    (TransactionMode::Autocommit, parts().filter_map(pipeline).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_versions_send_a_file_as_one_pipeline() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join(".git")).unwrap();
        let mode = |version: &str| {
            let manifest = format!("{{\"devDependencies\": {{\"supabase\": \"{version}\"}}}}");
            std::fs::write(root.path().join("package.json"), manifest).unwrap();
            let path = root.path().join("supabase/migrations/1_a.sql");
            let both = ["SELECT 1; CREATE INDEX CONCURRENTLY i ON t (a);", "BEGIN; SELECT 1; COMMIT; SELECT 2;"];
            let [one, other] = both.map(|text| sent_by_version(&path, text, &Nearby::default()).0);
            assert_eq!(one, other);
            one
        };
        let text = "VACUUM; SELECT 1; SELECT 2;";
        assert_eq!(sent(text, false).1.len(), 1, "the first statement of a pipeline runs alone");
        assert_eq!(mode("2.109.0"), TransactionMode::SingleString);
        assert_eq!(mode("2.110.0"), TransactionMode::Autocommit);
        assert_eq!(mode("^2.98.0"), TransactionMode::Autocommit);
    }

    #[test]
    fn statements_between_those_that_run_alone_are_one_pipeline() {
        use TransactionMode::{Autocommit, SingleString};
        for (text, mode, strings) in [
            ("SELECT 1; SELECT 2;", SingleString, &[][..]),
            ("SELECT 1; VACUUM; SELECT 2; SELECT 3;", Autocommit, &["SELECT 1", "SELECT 2; SELECT 3"]),
            ("CREATE INDEX CONCURRENTLY i ON t (a)", Autocommit, &[]),
            ("BEGIN; SELECT 1; COMMIT; SELECT 2;", Autocommit, &[]),
            ("SELECT 1; REINDEX (CONCURRENTLY) INDEX i; SELECT 2", SingleString, &[]),
            ("ALTER TABLE p DETACH PARTITION q CONCURRENTLY; SELECT 1; SELECT 2", Autocommit, &["SELECT 1; SELECT 2"]),
        ] {
            let (actual, ranges) = sent(text, true);
            let parts: Vec<&str> = ranges.iter().map(|range| &text[range.as_usize()]).collect();
            assert_eq!((actual, parts.as_slice()), (mode, strings), "{text}");
        }
    }
}
