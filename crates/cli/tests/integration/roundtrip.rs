//! `pgvet roundtrip` and `pgvet squash`, on servers of their own.

use crate::support::Folder;
use pgvet_trace::server::testing::binaries;

/// One migration for each verdict.
const PAIRS: [(&str, &str); 14] = [
    ("m/01_honest.up.sql", "CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL, total int NOT NULL);\n"),
    ("m/01_honest.down.sql", "DROP TABLE t;\n"),
    ("m/02_dishonest.up.sql", "CREATE INDEX t_name ON t (name);\nALTER TABLE t ADD COLUMN note text;\n"),
    ("m/02_dishonest.down.sql", "DROP INDEX t_name;\n"),
    ("m/03_empty.up.sql", "ALTER TABLE t ADD CONSTRAINT positive CHECK (total > 0);\n"),
    ("m/03_empty.down.sql", "-- nothing to do\nSELECT 1;\n"),
    ("m/04_fails.up.sql", "CREATE TABLE u (id int);\n"),
    ("m/04_fails.down.sql", "\nDROP TABLE v;\n"),
    ("m/05_loses.up.sql", "ALTER TABLE t DROP COLUMN note;\n"),
    ("m/05_loses.down.sql", "ALTER TABLE t ADD COLUMN note text;\n"),
    ("m/06_rows.up.sql", "ALTER TABLE t ALTER COLUMN total DROP NOT NULL, DROP COLUMN name;\n"),
    ("m/06_rows.down.sql", "ALTER TABLE t ALTER COLUMN total SET NOT NULL, ADD COLUMN name text NOT NULL;\n"),
    ("m/07_none.up.sql", "CREATE ROLE pgvet_reader;\nGRANT SELECT ON t TO pgvet_reader;\n"),
    ("m/08_late.up.sql", "INSERT INTO u VALUES (1);\n"),
];

fn project(files: &[(&str, &str)]) -> Folder {
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    Folder::new(&files)
}

#[test]
fn down_migrations_are_judged_by_what_they_leave() {
    for major in [14, 18] {
        if binaries(major).is_none() {
            continue;
        }
        let folder = project(&PAIRS);
        let version = major.to_string();
        let json = folder.output(&["roundtrip", "m", "--format", "json", "--pg-version", &version], b"", &[]);
        let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        let migrations = document["migrations"].as_array().unwrap();
        let verdicts: Vec<&str> = migrations.iter().map(|one| one["verdict"].as_str().unwrap()).collect();
        let expected = ["honest", "dishonest", "empty", "fails", "partial", "fails"];
        assert_eq!(verdicts, expected, "PostgreSQL {major}: {document}");
        assert_eq!(document["without_down"], 2);
        assert_eq!(json.status.code(), Some(1));
        let text = folder.run(&["roundtrip", "m", "--pg-version", &version]);
        for expected in [
            "error: m/02_dishonest.down.sql: after the down migration, the schema differs from that before the up migration",
            "    + column public.t.note text",
            "error: m/03_empty.down.sql: the down migration undoes none of the changes of the up migration",
            "    + constraint public.t.positive CHECK",
            "error: m/04_fails.down.sql:2:1: the down migration fails: table \"v\" does not exist (SQLSTATE 42P01)",
            "warning: m/05_loses.down.sql: column public.t.note had 20 values before the up migration, and has 0 after",
            "the down migration fails only on tables with generated rows: column \"name\" of relation",
            "2 migrations without a down migration",
        ] {
            assert!(text.contains(expected), "PostgreSQL {major}: {expected}\n{text}");
        }
    }
}

#[test]
fn a_named_file_is_judged_after_its_history() {
    if binaries(18).is_none() {
        return;
    }
    let folder = project(&PAIRS);
    let text = folder.run(&["roundtrip", "m/05_loses.up.sql", "--pg-version", "18"]);
    assert!(text.starts_with("exit 0\n") && text.contains("1 down migration on PostgreSQL 18"), "{text}");
    let text = folder.run(&["roundtrip", "m/05_loses.down.sql", "--pg-version", "18", "--fail-on", "warning"]);
    assert!(text.starts_with("exit 1\n"), "{text}");
    let markdown = folder.run(&["roundtrip", "m/04_fails.up.sql", "--pg-version", "18", "--format", "markdown"]);
    assert!(markdown.contains("- **error**: `m/04_fails.down.sql:2:1: the down migration fails"), "{markdown}");
}

#[test]
fn what_cannot_be_run_is_said() {
    let folder = project(&[("m/1_a.up.sql", "CREATE TABLE t (id int);\n")]);
    let none = folder.run(&["roundtrip", "m"]);
    assert!(none.starts_with("exit 2\n") && none.contains("the migration has no down migration"), "{none}");
    if binaries(18).is_none() {
        return;
    }
    let folder = project(&[
        ("m/1_a.up.sql", "CREATE TABLE t (id int);\nSELECT nothing;\n"),
        ("m/1_a.down.sql", "DROP TABLE t;\n"),
        ("m/2_b.up.sql", "CREATE TABLE u (id int);\n"),
        ("m/2_b.down.sql", "DROP TABLE u;\n"),
    ]);
    let text = folder.run(&["roundtrip", "m", "--pg-version", "18"]);
    assert!(text.starts_with("exit 2\n"), "{text}");
    assert!(text.contains("m/1_a.up.sql:2:1: an earlier migration fails: column \"nothing\" does not exist"), "{text}");
    assert!(text.contains("1 other not run, because an earlier migration fails"), "{text}");
    let gone = folder.run(&["roundtrip", "m", "--pg-bin", "nowhere"]);
    assert!(gone.starts_with("exit 2\n") && gone.contains("nowhere"), "{gone}");
    let squash = folder.run(&["squash", "m", "--check", "m/2_b.up.sql", "--pg-version", "18"]);
    assert!(
        squash.starts_with("exit 2\n") && squash.contains("an earlier migration fails: m/1_a.up.sql:2:1"),
        "{squash}"
    );
}

#[test]
fn a_run_that_ends_early_shows_what_was_found_until_then() {
    if binaries(18).is_none() {
        return;
    }
    let folder = project(&[
        ("m/1_a.up.sql", "CREATE TABLE t (id int);\n"),
        ("m/1_a.down.sql", "SELECT 1;\n"),
        ("m/2_b.up.sql", "CREATE TABLE ${schema}.u (id int);\n"),
        ("m/2_b.down.sql", "DROP TABLE ${schema}.u;\n"),
    ]);
    let text = folder.run(&["roundtrip", "m", "--pg-version", "18"]);
    assert!(text.starts_with("exit 2\n"), "{text}");
    for expected in [
        "error: m/1_a.down.sql: the down migration undoes none of the changes of the up migration",
        "1 other not run, because the run ended early",
        "--- stderr\nerror: ",
        "${schema}",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let json = folder.output(&["roundtrip", "m", "--format", "json", "--pg-version", "18"], b"", &[]);
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&document["migrations"][0]["verdict"], &document["not_reached"]), (&"empty".into(), &1.into()));
    assert!(document["stopped"].as_str().unwrap().contains("${schema}"), "{document}");
    let markdown = folder.run(&["roundtrip", "m", "--pg-version", "18", "--format", "markdown"]);
    assert!(markdown.contains("- **error**: the run ended early: `"), "{markdown}");
    let first = folder.run(&["roundtrip", "m/2_b.up.sql", "--pg-version", "18"]);
    assert!(first.starts_with("exit 2\n--- stderr\nerror: "), "nothing was found: {first}");
}

const HISTORY: [(&str, &str); 3] = [
    ("m/1_a.sql", "CREATE TABLE t (id int PRIMARY KEY, name text, made timestamptz DEFAULT clock_timestamp());\n"),
    ("m/2_b.sql", "INSERT INTO t (id, name) VALUES (1, 'one'), (2, 'two');\nCREATE TABLE gone (id int);\n"),
    ("m/3_c.sql", "CREATE ROLE pgvet_app;\nGRANT SELECT ON t TO pgvet_app;\nDROP TABLE gone;\n"),
];

const EQUAL: &str = "CREATE TABLE t (id int PRIMARY KEY, name text, made timestamptz DEFAULT clock_timestamp());
INSERT INTO t (id, name) VALUES (2, 'two'), (1, 'one');
GRANT SELECT ON t TO pgvet_app;
";

#[test]
fn a_squash_is_compared_with_its_history() {
    for major in [14, 18] {
        if binaries(major).is_none() {
            continue;
        }
        let version = major.to_string();
        let folder = project(&[&HISTORY[..], &[("squashed.sql", EQUAL)]].concat());
        let check = |file: &str| folder.run(&["squash", "m", "--check", file, "--pg-version", &version]);
        let equal = check("squashed.sql");
        assert!(equal.starts_with("exit 0\n"), "PostgreSQL {major}: {equal}");
        assert!(equal.contains("roles created first, because the file needs them: pgvet_app"), "{equal}");
        assert!(equal.contains("values that differ in each run were not compared: public.t.made"), "{equal}");
        let other = EQUAL.replace("'one'", "'uno'").replace("GRANT SELECT", "GRANT INSERT");
        std::fs::write(folder.path().join("other.sql"), other).unwrap();
        let differs = check("other.sql");
        assert!(differs.starts_with("exit 1\n"), "{differs}");
        for expected in [
            "~ table public.t",
            "~ rows of public.t: 2 -> 2",
            "    - {\"id\": 1, \"name\": \"one\"}",
            "    + {\"id\": 1, \"name\": \"uno\"}",
        ] {
            assert!(differs.contains(expected), "PostgreSQL {major}: {expected}\n{differs}");
        }
        std::fs::write(folder.path().join("broken.sql"), "SELECT 1;\nDROP TABLE t;\n").unwrap();
        let broken = check("broken.sql");
        assert!(broken.starts_with("exit 1\n") && broken.contains("error: broken.sql:2:1: table \"t\""), "{broken}");
    }
}

#[test]
fn a_squash_is_written_with_what_it_omits() {
    let folder = project(&HISTORY);
    let written = folder.run(&["squash", "m", "--output", "squashed.sql"]);
    assert!(written.starts_with("exit 1\n"), "{written}");
    assert!(written.contains("omitted: the rows that migrations insert into"), "{written}");
    let sql = std::fs::read_to_string(folder.path().join("squashed.sql")).unwrap();
    assert!(sql.contains("CREATE TABLE public.t") && !sql.contains("gone"), "{sql}");
    let again = folder.run(&["squash", "m", "--output", "squashed.sql"]);
    assert!(again.starts_with("exit 2\n") && again.contains("already exists"), "{again}");
    let first = folder.run(&["squash", "m", "--at", "1"]);
    assert!(first.starts_with("exit 0\n") && first.contains("CREATE TABLE public.t"), "{first}");
    if binaries(18).is_some() {
        let check = folder.run(&["squash", "m", "--check", "squashed.sql", "--pg-version", "18"]);
        assert!(check.starts_with("exit 1\n") && check.contains("rows of public.t: 2 -> 0"), "{check}");
        assert!(!check.contains("~ table"), "only the rows differ: {check}");
    }
}
