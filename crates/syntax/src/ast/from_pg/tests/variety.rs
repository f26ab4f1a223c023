//! Statements of every kind, one per line: all must convert to a statement of the kind that their section names.

use super::convert;

/// Every kind is followed by its statements.
const STATEMENTS: &str = include_str!("variety.sql");

#[test]
fn every_statement_converts() {
    let mut kind = "";
    let mut count = 0;
    for line in STATEMENTS.lines() {
        if let Some(section) = line.strip_prefix("-- ") {
            kind = section;
            continue;
        }
        let debug = format!("{:?}", convert(line).1);
        let found = debug.split(['(', ' ', '{']).next().unwrap_or_default();
        assert_eq!(found, kind, "{line}");
        assert!(!debug.contains("\"Unknown\"") && !debug.contains("\"Empty\""), "{line}: {debug}");
        count += 1;
    }
    assert!(count >= 250, "{count} statements");
}
