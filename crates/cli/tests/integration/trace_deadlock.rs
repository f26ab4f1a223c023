//! `pgvet trace --workload`, with a workload that deadlocks with the migration.

use crate::support::runs::folder;
use serde_json::Value;

const TABLES: (&str, &str) = (
    "m/1_tables.sql",
    "CREATE TABLE users (id int PRIMARY KEY, total int);\nCREATE TABLE orders (id int PRIMARY KEY, total int);\n\
     INSERT INTO users VALUES (1, 0);\nINSERT INTO orders VALUES (1, 0);\n",
);

/// Holds the first table until each client waits for it.
const MIGRATION: &str = "BEGIN;\nALTER TABLE users ADD COLUMN a int;\nSELECT pg_sleep(2.5);\n\
    ALTER TABLE orders ADD COLUMN a int;\nCOMMIT;\n";

const WORKLOAD: &str = "BEGIN;\nUPDATE orders SET total = total + 1 WHERE id = 1;\n\
    UPDATE users SET total = total + 1 WHERE id = 1;\nCOMMIT;\n";

#[test]
fn a_deadlock_is_shown_with_both_sequences() {
    let files = [TABLES, ("m/2_add.sql", MIGRATION), ("w.sql", WORKLOAD)];
    let Some(folder) = folder(&files) else { return };
    let args = ["trace", "m/2_add.sql", "--history", "m", "--workload", "w.sql"];
    let output = folder.output(&[&args[..], &["--format", "json"]].concat(), b"", &[]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let deadlock = &document["migrations"][0]["deadlocks"][0];
    let report = deadlock["report"].as_str().unwrap();
    assert_eq!(report.lines().count(), 2, "{document:#}");
    for part in [" waits for AccessExclusiveLock on relation ", "(orders)", "(users)", "; blocked by process "] {
        assert!(report.contains(part), "{part} is missing: {report}");
    }
    let sessions = deadlock["sessions"].as_array().unwrap();
    let ran = |name: &str| {
        let session = sessions.iter().find(|session| session["name"] == name).unwrap();
        let statements = session["statements"].as_array().unwrap().iter();
        let shown = |one: &Value| (one["place"].as_str().map(str::to_owned), one["sql"].as_str().unwrap().to_owned());
        statements.map(shown).collect::<Vec<_>>()
    };
    let sql: Vec<String> = ran("the migration").into_iter().map(|(_, sql)| sql).collect();
    assert_eq!(
        sql,
        ["ALTER TABLE users ADD COLUMN a int", "SELECT pg_sleep(2.5)", "ALTER TABLE orders ADD COLUMN a int"]
    );
    let places: Vec<_> = ran("client 1").into_iter().filter_map(|(place, _)| place).collect();
    assert_eq!(places, ["w.sql:2", "w.sql:3"]);
    let rules: Vec<&str> =
        document["diagnostics"].as_array().unwrap().iter().filter_map(|found| found["rule"].as_str()).collect();
    assert!(rules.contains(&"inconsistent-lock-order"), "{rules:?}");

    let said = folder.run(&args);
    for part in ["deadlock  PostgreSQL cancelled ", "SQLSTATE 40P01", "is client 1, which ran in its transaction:"] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    assert!(said.contains("w.sql:3  UPDATE users SET total"), "{said}");
}

#[test]
fn the_lock_first_leaves_no_deadlock() {
    let migration = MIGRATION.replacen("BEGIN;", "BEGIN;\nLOCK TABLE orders;", 1);
    let files = [TABLES, ("m/2_add.sql", migration.as_str()), ("w.sql", WORKLOAD)];
    let Some(folder) = folder(&files) else { return };
    let args = ["trace", "m/2_add.sql", "--history", "m", "--workload", "w.sql", "--format", "json"];
    let output = folder.output(&args, b"", &[]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["migrations"][0]["deadlocks"], serde_json::json!([]), "{document:#}");
    assert_eq!(document["migrations"][0]["outcome"], "ok");
}
