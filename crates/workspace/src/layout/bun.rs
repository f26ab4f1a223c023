//! bun: what it sends together.
//!
//! It splits a file at lines `--bun:split` and sends each part as one string, of which several statements are one
//! transaction; a name that ends in `.tx.up.sql` asks for a transaction around all parts. Source: bun,
//! `migrate/migration.go`, `NewSQLMigrationFunc`.

use pgvet_model::migration::TransactionMode::{self, Autocommit, Transaction};
use pgvet_syntax::source::TextRange;
use std::path::Path;

const SPLIT: &str = "--bun:split";

/// The parts of a text that has lines which split it, and the transaction around them.
pub(super) fn sent(path: &Path, text: &str) -> Option<(TransactionMode, Vec<TextRange>)> {
    let (mut parts, mut start, mut end) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        end += line.len() as u32;
        if line.trim_end_matches(['\r', '\n']) == SPLIT {
            parts.push(TextRange::new(start, end - line.len() as u32));
            start = end;
        }
    }
    if parts.is_empty() {
        return None;
    }
    parts.push(TextRange::new(start, end));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_in_transaction = [".tx.up.sql", ".tx.down.sql"].iter().any(|suffix| name.ends_with(suffix));
    Some((if is_in_transaction { Transaction } else { Autocommit }, parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_sent_alone() {
        let sent = |name: &str, text: &str| {
            let (transaction, parts) = sent(Path::new(name), text)?;
            let texts: Vec<String> = parts.iter().map(|part| text[part.as_usize()].trim().to_owned()).collect();
            Some((transaction, texts))
        };
        let parts = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
        let text = "SELECT 1\n\n--bun:split\r\nSELECT 2; SELECT 3;";
        assert_eq!(sent("1_a.up.sql", text), Some((Autocommit, parts(["SELECT 1", "SELECT 2; SELECT 3;"]))));
        assert_eq!(sent("1_a.tx.up.sql", text), Some((Transaction, parts(["SELECT 1", "SELECT 2; SELECT 3;"]))));
        assert_eq!(sent("1_a.up.sql", "SELECT 1;\n --bun:split\nSELECT 2;"), None);
        assert_eq!(sent("1_a.up.sql", "SELECT 1;"), None);
    }
}
