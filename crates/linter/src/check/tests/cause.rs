//! Which findings are one for the reader.

use crate::check::check;
use crate::settings::Settings;
use pgvet_model::migration::Migration;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;

const HISTORY: &str = "
    CREATE TABLE orders (id bigint PRIMARY KEY, note text, kind text, total int CHECK (total > 0));
    CREATE TABLE users (id bigint PRIMARY KEY, note text);
    CREATE TYPE status AS ENUM ('a', 'b');
    CREATE TYPE color AS ENUM ('a', 'b');";

/// How many findings of a rule there are, and how many causes they have.
fn causes(rule: &str, sql: &str) -> (usize, usize) {
    let files = [HISTORY, sql].map(|text| parse_file(SourceFile::new("1.sql".to_owned(), text.to_owned())));
    let [history, migration] = files.each_ref().map(Migration::new);
    let settings = Settings { only: vec![rule.to_owned()], ..Settings::default() };
    let found = check(&[history, migration], &settings);
    let mut causes: Vec<_> = Vec::new();
    for (at, finding) in found.iter().enumerate() {
        let cause = (finding.cause, finding.cause.is_none().then_some(at));
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    (found.len(), causes.len())
}

#[test]
fn one_alter_table_reads_the_rows_once() {
    let rule = "set-not-null-scans-table";
    let (note, kind) = ("ALTER COLUMN note SET NOT NULL", "ALTER COLUMN kind SET NOT NULL");
    assert_eq!(causes(rule, &format!("ALTER TABLE orders {note}, {kind}")), (2, 1));
    assert_eq!(causes(rule, &format!("ALTER TABLE orders {note}; ALTER TABLE orders {kind}")), (2, 2));
    assert_eq!(causes(rule, &format!("DO $$ BEGIN ALTER TABLE orders {note}, {kind}; END $$")), (2, 1));
    let rule = "constraint-scans-table";
    let (first, second) = ("ADD CHECK (note > '')", "ADD CHECK (kind > '')");
    assert_eq!(causes(rule, &format!("ALTER TABLE orders {first}, {second}")), (2, 1));
    assert_eq!(causes(rule, &format!("ALTER TABLE orders {first}; ALTER TABLE orders {second}")), (2, 2));
}

#[test]
fn labels_of_one_enum_are_one_cause() {
    let rename = |name: &str, old: &str| format!("ALTER TYPE {name} RENAME VALUE '{old}' TO 'new {old}';");
    let rule = "enum-value-renamed-or-removed";
    assert_eq!(causes(rule, &(rename("status", "a") + &rename("status", "b"))), (2, 1));
    assert_eq!(causes(rule, &(rename("status", "a") + &rename("color", "b"))), (2, 2));
}

#[test]
fn columns_of_one_table_are_one_cause_unless_more_is_dropped() {
    let rule = "drop-column";
    assert_eq!(causes(rule, "ALTER TABLE orders DROP COLUMN note; ALTER TABLE orders DROP COLUMN kind"), (2, 1));
    assert_eq!(causes(rule, "ALTER TABLE orders DROP COLUMN note; ALTER TABLE users DROP COLUMN note"), (2, 2));
    assert_eq!(causes(rule, "ALTER TABLE orders DROP COLUMN note, DROP COLUMN total"), (2, 2));
}
