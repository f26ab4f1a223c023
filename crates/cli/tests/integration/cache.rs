//! The cache makes runs faster and changes nothing else.

#![cfg(unix)]
use crate::support::{Folder, Transcript};
use std::fmt::Write as _;
use std::fs;

/// Tables, functions, views and types of every sort that a state consists of, long enough to be worth keeping.
fn history() -> Vec<(String, String)> {
    let table = |number: usize| {
        let mut sql = String::new();
        for copy in 0..8 {
            let name = format!("t{number}_{copy}");
            let _ = writeln!(
                sql,
                "CREATE TYPE {name}_state AS ENUM ('a', 'b');
                CREATE DOMAIN {name}_code AS text CHECK (VALUE <> '');
                CREATE TABLE {name} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, code {name}_code NOT NULL,
                    state {name}_state DEFAULT 'a', at timestamptz DEFAULT now(), v varchar(20) CHECK (length(v) > 2),
                    parent bigint REFERENCES {name}, low text GENERATED ALWAYS AS (lower(v)) STORED);
                CREATE UNIQUE INDEX {name}_low ON {name} (lower(v)) WHERE state = 'a';
                CREATE VIEW {name}_view AS SELECT id, v FROM {name} WHERE at > now() - interval '1 day';
                CREATE FUNCTION {name}_touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    INSERT INTO {name} (v, code) VALUES (NEW.v, 'x'); RETURN NEW; END $$;
                CREATE FUNCTION {name}_sum() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT sum(id) FROM {name}; END;
                CREATE TRIGGER {name}_touch BEFORE UPDATE ON {name} FOR EACH ROW EXECUTE FUNCTION {name}_touch();
                ALTER TABLE {name} ENABLE ROW LEVEL SECURITY;
                CREATE POLICY own ON {name} USING (parent = 1);"
            );
        }
        (format!("migrations/{number:03}_t.sql"), sql)
    };
    (1..=12).map(table).collect()
}

const LAST: &str = "migrations/100_last.sql";

const CHANGES: &str = "CREATE INDEX i ON t1_0 (at);
ALTER TABLE t2_1 ALTER COLUMN v TYPE varchar(10);
ALTER TABLE t3_1 ALTER COLUMN v TYPE varchar(40);
ALTER TABLE t3_2 ADD FOREIGN KEY (parent) REFERENCES t2_2;
DROP TABLE t4_1;
";

fn project() -> Folder {
    let history = history();
    let mut files: Vec<(&str, &[u8])> = history.iter().map(|(path, sql)| (path.as_str(), sql.as_bytes())).collect();
    files.push((LAST, CHANGES.as_bytes()));
    Folder::new(&files)
}

fn check(folder: &Folder, args: &[&str]) -> Transcript {
    folder.run(&[&["check", "--format", "json", "--strict", "--level", "info"], args].concat())
}

/// How many states, and how many findings of whole runs, are kept.
fn entries(folder: &Folder) -> (usize, usize) {
    let names = fs::read_dir(folder.path().join(".pgvet-cache")).map_or_else(
        |_| Vec::new(),
        |files| files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect(),
    );
    let count = |ending: &str| names.iter().filter(|name| name.ends_with(ending)).count();
    (count(".checkpoint"), count(".outcome"))
}

/// The one state that is kept: what is written again is another file.
fn state(folder: &Folder) -> u64 {
    let mut files = fs::read_dir(folder.path().join(".pgvet-cache")).unwrap().map(|file| file.unwrap());
    let state = files.find(|file| file.path().extension().is_some_and(|kind| kind == "checkpoint"));
    std::os::unix::fs::MetadataExt::ino(&state.unwrap().metadata().unwrap())
}

#[test]
fn a_run_from_the_cache_finds_what_a_whole_run_finds() {
    let folder = project();
    let whole = check(&folder, &["--no-cache", LAST]);
    assert_eq!(entries(&folder), (0, 0));
    assert!(whole.contains("index-without-concurrently") && whole.contains("statement-will-fail"), "{whole}");
    assert_eq!(check(&folder, &[LAST]), whole);
    assert_eq!(entries(&folder), (1, 1));
    assert_eq!(check(&folder, &[LAST]), whole, "all of it is kept");
    assert_eq!(entries(&folder), (1, 1));
    // The file that is checked changes: the state before it is known.
    fs::write(folder.path().join(LAST), format!("{CHANGES}CREATE INDEX j ON t5_0 (v);\nSELECT t1_0_sum();\n")).unwrap();
    let changed = check(&folder, &["--no-cache", LAST]);
    assert_ne!(changed, whole);
    let kept = state(&folder);
    assert_eq!(check(&folder, &[LAST]), changed);
    assert_eq!(state(&folder), kept, "it was read and not made again");
}

#[test]
fn a_changed_history_and_other_settings_are_other_runs() {
    let folder = project();
    let before = check(&folder, &[LAST]);
    let versions = ["--pg-version", "16", LAST];
    assert_eq!(check(&folder, &versions), check(&folder, &["--no-cache", "--pg-version", "16", LAST]));
    fs::write(folder.path().join("migrations/003_t.sql"), "CREATE TABLE t3_1 (id bigint, v varchar(80));").unwrap();
    let after = check(&folder, &[LAST]);
    assert_ne!(before, after);
    assert_eq!(after, check(&folder, &["--no-cache", LAST]));
}

#[test]
fn a_whole_folder_is_the_same_from_the_cache() {
    let folder = project();
    let whole = check(&folder, &["--no-cache", "migrations"]);
    assert_eq!(check(&folder, &["migrations"]), whole);
    assert_eq!(entries(&folder), (0, 1));
    assert_eq!(check(&folder, &["migrations"]), whole);
}

#[test]
fn a_damaged_cache_is_as_good_as_none() {
    let folder = project();
    let whole = check(&folder, &[LAST]);
    for file in fs::read_dir(folder.path().join(".pgvet-cache")).unwrap() {
        fs::write(file.unwrap().path(), b"damaged").unwrap();
    }
    assert_eq!(check(&folder, &[LAST]), whole);
}
