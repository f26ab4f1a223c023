//! Supabase CLI: what it sends together.
//!
//! Seen in runs of 2.109.0, 2.110.0, 2.122.0 and 3.1.0. Up to 2.109 each file is one pipeline, whatever it holds; what is
//! said here is true of 2.110 and later. Source: Supabase CLI, `pkg/migration/file.go`.

use super::statements::{Words, statements};
use pgvet_model::migration::TransactionMode;
use pgvet_syntax::source::TextRange;

/// The transaction of a file, and what of it is one pipeline where it is not a whole.
pub(super) fn sent(text: &str) -> (TransactionMode, Vec<TextRange>) {
    let statements = statements(text);
    let controls =
        |words: &Words<'_>| matches!(words.at(0), "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "ABORT");
    if statements.iter().any(|(_, words)| controls(words)) {
        return (TransactionMode::Autocommit, Vec::new());
    }
    let parts = || statements.split(|(_, words)| words.is_known_to_run_alone());
    // PostgreSQL does not yet know that the first statement of a pipeline will not be the only one.
    let after_first = |part: &[(TextRange, Words<'_>)]| {
        usize::from(part.first().is_some_and(|(_, words)| words.is_other_concurrent()))
    };
    if !statements.iter().any(|(_, words)| words.is_known_to_run_alone()) && parts().all(|part| after_first(part) == 0)
    {
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
            let (actual, ranges) = sent(text);
            let parts: Vec<&str> = ranges.iter().map(|range| &text[range.as_usize()]).collect();
            assert_eq!((actual, parts.as_slice()), (mode, strings), "{text}");
        }
    }
}
