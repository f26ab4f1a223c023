//! Migratus: what it sends together, and what it refuses.
//!
//! Seen with 1.6.5 from source, `pgjdbc` 42.7.4 and PostgreSQL 18: it sends each part between lines with `--;;` as a batch.
//! The driver refuses a part with several statements, after it has run them. Without a transaction, each part has a
//! connection of its own, so that a SET does not reach the next part. Source: Migratus, `migratus/migration/sql.clj` and `migratus/migrations.clj`.

use super::annotations::lines;
use super::statements::statements_in;
use pgvet_model::migration::TransactionMode;
use pgvet_model::runner::{Refusal, RefusalKind};
use pgvet_syntax::lexer::{Token, TokenKind, tokenize};
use pgvet_syntax::source::TextRange;

pub(super) const OUTSIDE: &str = "-- :disable-transaction";

/// A line with it divides a file.
pub(super) const SEPARATOR: &str = "--;;";

pub(super) fn transaction(text: &str) -> TransactionMode {
    if text.starts_with(OUTSIDE) { TransactionMode::Autocommit } else { TransactionMode::Transaction }
}

/// The parts that are sent alone.
pub(super) fn parts(text: &str) -> Vec<TextRange> {
    let (mut parts, mut start, mut end) = (Vec::new(), 0, 0);
    for (at, line) in lines(text) {
        end = at + line.len() as u32;
        if line.contains(SEPARATOR) {
            parts.push(TextRange::new(start, at));
            start = end;
        }
    }
    parts.push(TextRange::new(start, end));
    parts
}

/// What Migratus does not send as it is written, and the first statement of each part that another one follows.
pub(super) fn refusals(text: &str) -> Vec<Refusal> {
    let mut refusals = several_in_a_part(text);
    refusals.extend(constants_with_dashes(text));
    refusals.sort_by_key(|refusal| refusal.range.start);
    refusals
}

/// Migratus removes comments without looking at constants. Source: `migratus/migration/sql.clj`, `sanitize`.
fn constants_with_dashes(text: &str) -> impl Iterator<Item = Refusal> {
    let tokens = tokenize(text, TextRange::new(0, text.len() as u32));
    let is_cut = |token: &Token| token.kind == TokenKind::String && token.text(text).contains("--");
    tokens.into_iter().filter(is_cut).map(|token| Refusal {
        kind: RefusalKind::Fails,
        range: token.range,
        message: "Migratus fails here: it removes `--` and the rest of the line, also in a string constant".to_owned(),
        help: "write the constant without two dashes in a row, such as `'a-' || '-b'`".to_owned(),
        by_default: true,
        unproven: None,
    })
}

fn several_in_a_part(text: &str) -> Vec<Refusal> {
    let second = |part: TextRange| statements_in(text, part).get(1).map(|(range, _)| *range);
    let refusal = |range: TextRange| Refusal {
        kind: RefusalKind::Fails,
        range,
        message: "Migratus fails here: it expects only one statement between two `--;;` lines".to_owned(),
        help: "add a line with `--;;` before this statement".to_owned(),
        by_default: true,
        unproven: None,
    };
    parts(text).into_iter().filter_map(second).map(refusal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_divide_a_file() {
        let texts =
            |text: &'static str| parts(text).iter().map(|part| text[part.as_usize()].trim()).collect::<Vec<_>>();
        assert_eq!(
            texts("SELECT 1;\n--;;\nSELECT 2;\n-- x --;; y\r\nSELECT 3"),
            ["SELECT 1;", "SELECT 2;", "SELECT 3"]
        );
        assert_eq!(texts("SELECT 1"), ["SELECT 1"]);
    }

    #[test]
    fn a_second_statement_of_a_part_is_refused() {
        let refused = |text: &'static str| {
            refusals(text).iter().map(|refusal| &text[refusal.range.as_usize()]).collect::<Vec<_>>()
        };
        assert_eq!(refused("SELECT 1;\n--;;\nSELECT 2; SELECT 3; SELECT 4;\n"), ["SELECT 3"]);
        assert_eq!(refused("SELECT 1;\n--;;\nSELECT 2;\n-- end\n"), Vec::<&str>::new());
        assert_eq!(refused("-- :disable-transaction\nSELECT 1; SELECT 2;"), ["SELECT 2"]);
        assert_eq!(refused("SELECT 'a--b', 'c'; -- 'd--e'\n--;;\nDO $$ BEGIN -- f\nEND $$"), ["'a--b'"]);
    }
}
