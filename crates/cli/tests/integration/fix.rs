//! `check --fix`, `--unsafe-fixes` and `--diff`.

use crate::support::{Folder, transcript};
use std::fs;

const TABLE: &[u8] = b"CREATE TABLE orders (id bigint PRIMARY KEY, note text);\n";
const INDEX: &[u8] = b"CREATE INDEX i ON orders (note);\r\nALTER TABLE orders ALTER note SET NOT NULL";

fn folder(second: &[u8]) -> Folder {
    Folder::new(&[("m/1_a.sql", TABLE), ("m/2_b.sql", second), ("pgvet.toml", b"lock-timeout = \"runner\"\n")])
}

/// psql runs the files.
fn autocommit(second: &[u8]) -> Folder {
    let config = b"lock-timeout = \"runner\"\n[migrations]\ntransaction = \"autocommit\"\n";
    Folder::new(&[("m/1_a.sql", TABLE), ("m/2_b.sql", second), ("pgvet.toml", config)])
}

fn text(folder: &Folder, path: &str) -> String {
    fs::read_to_string(folder.path().join(path)).unwrap()
}

#[test]
fn unsafe_fixes_are_made_when_they_are_asked_for() {
    let folder = autocommit(INDEX);
    assert!(folder.run(&["check", "m", "--fix"]).starts_with("exit 1"));
    assert_eq!(text(&folder, "m/2_b.sql").as_bytes(), INDEX);
    let said = folder.run(&["check", "m", "--unsafe-fixes"]);
    let expected = "exit 0\n--- stdout\nNo problems found in 2 files; 2 findings hidden by confidence (show with --confidence possible)\n\
        --- stderr\nMade 2 fixes in 1 file\n";
    assert_eq!(said, expected);
    let fixed = text(&folder, "m/2_b.sql");
    assert!(
        fixed.starts_with("CREATE INDEX CONCURRENTLY i ON orders (note);\r\nALTER TABLE orders ADD CONSTRAINT"),
        "{fixed}"
    );
    assert!(fixed.ends_with("DROP CONSTRAINT orders_note_is_not_null"), "{fixed}");
    assert!(!fixed.replace("\r\n", "").contains('\n'), "{fixed:?}");
    assert_eq!(text(&folder, "m/1_a.sql").as_bytes(), TABLE);
}

#[test]
fn similar_findings_are_fixed_in_all_places() {
    let copies = |end: &str| -> String {
        let copy = |table: &str| format!("INSERT INTO {table} SELECT id FROM orders WHERE id > 7{end};\n");
        ["a", "b", "c", "d"].map(copy).concat()
    };
    let tables = "CREATE TABLE orders (id bigint);\n".to_owned()
        + &["a", "b", "c", "d"].map(|table| format!("CREATE TABLE {table} (id bigint PRIMARY KEY);\n")).concat();
    let config = b"lock-timeout = \"runner\"\n";
    let copied = copies("");
    let folder =
        Folder::new(&[("m/1_a.sql", tables.as_bytes()), ("m/2_b.sql", copied.as_bytes()), ("pgvet.toml", config)]);
    let said = folder.run(&["check", "m"]);
    assert!(said.contains("3 similar findings:"), "{said}");
    let sarif = folder.run(&["check", "m", "--format", "sarif"]);
    assert_eq!(sarif.matches("Keep the existing row").count(), 4, "{sarif}");
    assert_eq!(sarif.matches("ON CONFLICT (id) DO NOTHING\"").count(), 4, "{sarif}");
    assert!(folder.run(&["check", "m", "--unsafe-fixes"]).contains("Made 4 fixes in 1 file"));
    assert_eq!(text(&folder, "m/2_b.sql"), copies(" ON CONFLICT (id) DO NOTHING"));
}

#[test]
fn a_diff_shows_what_would_change_and_changes_nothing() {
    let folder = folder(b"-- a note\nCREATE INDEX i ON orders (note);\n");
    let expected = "exit 1\n--- stdout\n--- m/2_b.sql\n+++ m/2_b.sql\n@@ -1,2 +1,2 @@\n -- a note\n\
        -CREATE INDEX i ON orders (note);\n+CREATE INDEX CONCURRENTLY i ON orders (note);\n";
    assert_eq!(folder.run(&["check", "m", "--diff", "--unsafe-fixes"]), expected);
    assert_eq!(text(&folder, "m/2_b.sql"), "-- a note\nCREATE INDEX i ON orders (note);\n");
    assert_eq!(folder.run(&["check", "m", "--diff"]), "exit 0\n");
    let stdin = b"CREATE INDEX i ON orders (note);\n";
    let output = folder.output(&["check", "-", "--diff", "--unsafe-fixes"], stdin, &[]);
    assert!(transcript(&output).contains("+CREATE INDEX CONCURRENTLY i"), "{}", transcript(&output));
    let output = folder.output(&["check", "-", "--fix"], stdin, &[]);
    assert!(transcript(&output).contains("standard input cannot be changed"), "{}", transcript(&output));
}

#[test]
fn safe_fixes_need_no_more_than_fix() {
    let files: [(&str, &[u8]); 2] = [
        ("m/1_a.sql", b"-- +goose Up\nCREATE TABLE t (id int);\n"),
        ("m/2_b.sql", b"-- +goose Up\nALTER TABLE t ADD x int;\n"),
    ];
    let folder = Folder::new(&files);
    assert!(folder.run(&["check", "m/2_b.sql", "--fix"]).contains("Made 1 fix in 1 file"));
    assert_eq!(text(&folder, "m/2_b.sql"), "-- +goose Up\nSET LOCAL lock_timeout = '2s';\nALTER TABLE t ADD x int;\n");
    assert!(!folder.run(&["check", "m/2_b.sql", "--fix"]).contains("Made"));
}

#[test]
fn what_runs_alone_leaves_the_transaction_of_its_tool() {
    for (before, after) in [
        ("-- +goose Up\n", "-- +goose NO TRANSACTION\n-- +goose Up\n"),
        ("-- migrate:up\n", "-- migrate:up transaction:false\n"),
        ("-- +migrate Up\r\n", "-- +migrate Up notransaction\r\n"),
    ] {
        let index = "CREATE INDEX i ON orders (note);\n";
        let folder = folder(format!("{before}{index}").as_bytes());
        folder.run(&["check", "m/2_b.sql", "--unsafe-fixes"]);
        assert_eq!(text(&folder, "m/2_b.sql"), format!("{after}{}", index.replace(" i", " CONCURRENTLY i")));
    }
}

#[test]
fn statistics_of_production_are_part_of_findings() {
    let folder = folder(b"CREATE INDEX i ON orders (note);\n");
    let statistics = br#"{"schema_version":1,"taken_at":"2026-01-01T00:00:00Z","pg_version":"16.4","tables":{
        "public.orders":{"rows":1234000000,"bytes":340000000000,"writes_per_second":900}}}"#;
    fs::write(folder.path().join("pgvet.stats.json"), statistics).unwrap();
    let said = folder.run(&["check", "m"]);
    let size = "`orders`: about 1.2 billion rows, 340 GB, 900 writes/s; the work takes about 2 h";
    assert!(said.contains(size), "{said}");
    let calibrated = String::from_utf8_lossy(statistics).replacen(
        '{',
        r#"{"throughput":{"index_build_rows_per_second":3000000},"#,
        1,
    );
    fs::write(folder.path().join("pgvet.stats.json"), calibrated).unwrap();
    let said = folder.run(&["check", "m"]);
    assert!(said.contains("the work takes about 10 min"), "{said}");
    fs::write(folder.path().join("pgvet.stats.json"), b"{}").unwrap();
    let said = folder.run(&["check", "m"]);
    assert!(said.starts_with("exit 2") && said.contains("not a statistics file of pgvet"), "{said}");
}

#[test]
fn a_read_only_file_is_left_alone_and_so_are_known_findings() {
    let folder = folder(b"CREATE INDEX i ON orders (note);\n");
    let path = folder.path().join("m/2_b.sql");
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    let said = folder.run(&["check", "m", "--unsafe-fixes"]);
    assert!(said.starts_with("exit 2") && said.contains("it is read-only"), "{said}");
    folder.run(&["baseline", "m"]);
    assert!(folder.run(&["check", "m", "--unsafe-fixes"]).starts_with("exit 0"));
}

#[test]
fn placeholders_stay_as_they_are() {
    let text_of =
        b"CREATE INDEX i ON ${schema}.orders (note);\nALTER TABLE ${schema}.orders ALTER note SET NOT NULL;\n";
    for config in ["", "[placeholders]\nschema = \"app\"\n"] {
        let config = format!("lock-timeout = \"runner\"\n[migrations]\ntransaction = \"autocommit\"\n{config}");
        let folder = Folder::new(&[("m/1_b.sql", text_of.as_slice()), ("pgvet.toml", config.as_bytes())]);
        folder.run(&["check", "m", "--unsafe-fixes"]);
        let fixed = text(&folder, "m/1_b.sql");
        assert_eq!(fixed.matches("${schema}").count(), 2, "{fixed}");
        assert!(!fixed.contains("app.") && !fixed.contains("schema_"), "{fixed}");
        assert!(fixed.contains("INDEX CONCURRENTLY i ON ${schema}.orders"), "{fixed}");
    }
}

#[test]
fn what_was_not_asked_for_is_not_fixed() {
    let files: [(&str, &[u8]); 2] = [
        ("m/1_a.sql", b"-- +goose Up\nCREATE TABLE t (id int);\n"),
        ("m/2_b.sql", b"-- +goose Up\nCREATE INDEX CONCURRENTLY i ON t (id);\n"),
    ];
    let folder = Folder::new(&files);
    let opt_out = "+-- +goose NO TRANSACTION";
    assert!(folder.run(&["check", "m", "--diff", "--unsafe-fixes"]).contains(opt_out));
    for options in [["--only", "drop-table"], ["--ignore", "concurrently-in-transaction"]] {
        let said = folder.run(&["check", "m", "--diff", "--unsafe-fixes", options[0], options[1]]);
        assert!(!said.contains(opt_out), "{options:?}: {said}");
    }
}

/// Migratus refuses two statements without a line between them.
#[test]
fn fixes_keep_the_lines_that_divide_a_file_of_migratus() {
    let folder = Folder::new(&[
        ("project.clj", b"(defproject app \"1\" :dependencies [[migratus \"1.6.5\"]])\n"),
        ("migrations/20240101120000-a.up.sql", b"CREATE TABLE users (id bigint PRIMARY KEY);\n"),
        (
            "migrations/20240102120000-b.up.sql",
            b"SELECT 1;\n--;;\nALTER TABLE users ADD COLUMN note text;\n--;;\nALTER TABLE users ADD COLUMN more text;\n",
        ),
    ]);
    let arguments = ["check", "--fix", "--start-after", "20240101120000", "--format", "concise"];
    let said = folder.run(&arguments);
    assert!(said.contains("Made 1 fix in 1 file") && said.starts_with("exit 0"), "{said}");
    let text = text(&folder, "migrations/20240102120000-b.up.sql");
    let expected = "SELECT 1;\n--;;\nSET LOCAL lock_timeout = '2s';\n--;;\nALTER TABLE users ADD COLUMN note text;\n--;;\n\
                    ALTER TABLE users ADD COLUMN more text;\n";
    assert_eq!(text, expected, "{said}");
}
