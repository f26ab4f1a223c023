//! Drizzle: what it sends together.
//!
//! It splits a file at `--> statement-breakpoint`, and sends each part as one string in one transaction for all pending
//! files. COMMIT ends that transaction, and Drizzle opens no other. Seen in runs of 0.45.4 with `pg`. Source:
//! `drizzle-orm/src/migrator.ts`, `readMigrationFiles`; `drizzle-orm/src/pg-core/dialect.ts`, `migrate`.

use super::statements::{Words, statements};
use pgvet_syntax::source::TextRange;

const BREAKPOINT: &str = "--> statement-breakpoint";

/// What is sent together in a file that has breakpoints and ends Drizzle's transaction; otherwise nothing. The first of
/// the ranges is in that transaction.
pub(super) fn sent(text: &str) -> Vec<TextRange> {
    let mut starts = text.match_indices(BREAKPOINT).map(|(at, _)| at as u32).peekable();
    if starts.peek().is_none() {
        return Vec::new();
    }
    let Some((end, _)) = statements(text).into_iter().find(|(_, words)| ends_transaction(words)) else {
        return Vec::new();
    };
    let mut sent = Vec::new();
    let mut start = 0;
    for next in starts.chain([text.len() as u32]) {
        if next > end.start {
            sent.push(TextRange::new(start, next));
            start = next;
        }
    }
    sent
}

fn ends_transaction(words: &Words<'_>) -> bool {
    let is_to_savepoint = || words.at(1) == "TO" || words.at(2) == "TO";
    match words.at(0) {
        "COMMIT" | "END" | "ABORT" => true,
        "ROLLBACK" => !is_to_savepoint(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_after_a_commit_are_sent_alone() {
        for (text, parts) in [
            ("SELECT 1;--> statement-breakpoint\nSELECT 2;", &[][..]),
            ("SELECT 1; COMMIT; SELECT 2;", &[]),
            ("SELECT 1;--> statement-breakpoint\nROLLBACK TO a;--> statement-breakpoint\nSELECT 2;", &[]),
            (
                "SELECT 1;--> statement-breakpoint\nCOMMIT;--> statement-breakpoint\nVACUUM;--> statement-breakpoint\nSELECT 2; SELECT 3;",
                &[
                    "SELECT 1;--> statement-breakpoint\nCOMMIT;",
                    "--> statement-breakpoint\nVACUUM;",
                    "--> statement-breakpoint\nSELECT 2; SELECT 3;",
                ],
            ),
        ] {
            let ranges = sent(text);
            let found: Vec<&str> = ranges.iter().map(|range| &text[range.as_usize()]).collect();
            assert_eq!(found, parts, "{text}");
        }
    }
}
