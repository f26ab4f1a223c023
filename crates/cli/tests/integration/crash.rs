//! `pgvet trace --crash` and `--twice`, on servers of their own, and the rules that say the same without a server.

use crate::support::Folder;
use pgvet_trace::server::testing::binaries;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const MAJORS: [u8; 2] = [14, 18];

/// The rules that judge without a server what `--crash` tries.
const RULES: &str = "not-rerunnable,invalid-index-kept,retry-blocked";

fn projects() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/retry")
}

/// The migrations of a layout, in a folder of their own.
fn project(layout: &Path) -> Folder {
    let mut files = vec![("pgvet.toml".to_owned(), fs::read(layout.join("pgvet.toml")).unwrap())];
    for entry in fs::read_dir(layout.join("migrations")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        files.push((format!("migrations/{name}"), fs::read(&path).unwrap()));
    }
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    Folder::new(&files)
}

/// The verdicts of `--crash`, by file.
fn tried(folder: &Folder, major: u8) -> BTreeMap<String, String> {
    let major = major.to_string();
    let document = folder.json(&["trace", "migrations", "--crash", "--pg-version", &major]);
    let of_migration = |one: &Value| (file(one["path"].as_str().unwrap()), one["verdict"].as_str().unwrap().to_owned());
    document["migrations"].as_array().unwrap().iter().map(of_migration).collect()
}

/// The verdicts on each major, which are tried side by side.
fn on_each_major(folder: &Folder) -> Vec<(u8, BTreeMap<String, String>)> {
    std::thread::scope(|scope| {
        let majors = MAJORS.into_iter().filter(|major| binaries(*major).is_some());
        let runs: Vec<_> = majors.map(|major| scope.spawn(move || (major, tried(folder, major)))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    })
}

/// The rules that report something, by file.
fn reported(folder: &Folder) -> BTreeMap<String, Vec<String>> {
    let args = ["check", "migrations", "--only", RULES, "--confidence", "possible", "--level", "info"];
    let document = folder.json(&args);
    let mut rules: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for finding in document["diagnostics"].as_array().unwrap() {
        let of_file = rules.entry(file(finding["path"].as_str().unwrap())).or_default();
        let rule = finding["rule"].as_str().unwrap().to_owned();
        if !of_file.contains(&rule) {
            of_file.push(rule);
        }
    }
    rules
}

fn file(path: &str) -> String {
    path.rsplit('/').next().unwrap().to_owned()
}

/// One line of `fixtures/retry/expected.tsv`.
struct Expected {
    layout: String,
    file: String,
    rules: String,
    verdict: String,
    /// Why rules and verdict differ.
    reason: String,
}

impl Expected {
    fn all() -> Vec<Self> {
        let text = fs::read_to_string(projects().join("expected.tsv")).unwrap();
        let line = |line: &str| {
            let [layout, file, rules, verdict, reason] =
                line.split('\t').map(str::to_owned).collect::<Vec<_>>().try_into().unwrap();
            Self { layout, file, rules, verdict, reason }
        };
        text.lines().skip(1).map(line).collect()
    }

    fn agrees(&self) -> bool {
        (self.rules == "-") == ["safe", "not-recorded"].contains(&self.verdict.as_str())
    }
}

#[test]
fn rules_and_servers_agree_or_the_table_says_why_not() {
    let expected = Expected::all();
    assert!(expected.len() >= 25);
    for line in &expected {
        assert_eq!(
            line.agrees(),
            line.reason == "-",
            "{}/{}: explain what differs, and only that",
            line.layout,
            line.file
        );
    }
    let mut wrong = Vec::new();
    for entry in fs::read_dir(projects()).unwrap() {
        let layout = entry.unwrap().path();
        if !layout.is_dir() {
            continue;
        }
        let name = layout.file_name().unwrap().to_str().unwrap().to_owned();
        let folder = project(&layout);
        let rules = reported(&folder);
        for (major, verdicts) in on_each_major(&folder) {
            let of_layout: Vec<&Expected> = expected.iter().filter(|line| line.layout == name).collect();
            if of_layout.len() != verdicts.len() {
                wrong.push(format!("{name}: {} lines, {} migrations", of_layout.len(), verdicts.len()));
            }
            for (file, verdict) in &verdicts {
                let rules = rules.get(file).map_or("-".to_owned(), |rules| rules.join(","));
                let is_expected =
                    of_layout.iter().any(|line| line.file == *file && line.rules == rules && line.verdict == *verdict);
                if !is_expected {
                    wrong.push(format!("{name}\t{file}\t{rules}\t{verdict}\t- (PostgreSQL {major})"));
                }
            }
        }
    }
    wrong.sort();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const GOOSE: [(&str, &str); 4] = [
    ("m/pgvet.toml", "[migrations]\ntool = \"goose\"\n"),
    ("m/00001_base.sql", "-- +goose Up\nCREATE TABLE t (id bigint PRIMARY KEY, a int, b int);\n"),
    (
        "m/00002_build.sql",
        "-- +goose NO TRANSACTION\n-- +goose Up\nCREATE INDEX CONCURRENTLY IF NOT EXISTS t_a ON t (a);\n",
    ),
    (
        "m/00003_column.sql",
        "-- +goose NO TRANSACTION\n-- +goose Up\nALTER TABLE t ADD COLUMN c int;\nUPDATE t SET c = a;\nSELECT 1;\n",
    ),
];

fn folder(files: &[(&str, &str)]) -> Folder {
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    Folder::new(&files)
}

#[test]
fn what_is_left_and_how_to_recover_is_said() {
    for major in MAJORS {
        if binaries(major).is_none() {
            continue;
        }
        let folder = folder(&GOOSE);
        let version = major.to_string();
        let text = folder.run(&["trace", "m", "--crash", "--pg-version", &version]);
        assert!(text.starts_with("exit 1\n"), "PostgreSQL {major}: {text}");
        for expected in [
            "error: m/00002_build.sql:3:1: if the session ends during this statement, the next run of the migration \
             succeeds with a different schema or different rows",
            "valid: yes -> no",
            "      1. DROP INDEX CONCURRENTLY public.t_a;",
            "      2. run the migration again",
            "error: m/00003_column.sql:3:1: if the session ends after this statement, the next run of the migration \
             fails: m/00003_column.sql:3:1: column \"c\" of relation \"t\" already exists (SQLSTATE 42701)",
            "same outcome after line 4",
            "run the statements from the first incomplete one on by hand, and record the migration as applied: \
             INSERT INTO goose_db_version (version_id, is_applied) VALUES (00003, true);",
            "      + column public.t.c integer",
            "  1: safe to retry",
        ] {
            assert!(text.contains(expected), "PostgreSQL {major}: {expected}\n{text}");
        }
        let markdown = folder.run(&["trace", "m", "--crash", "--format", "markdown", "--pg-version", &version]);
        assert!(markdown.contains("- **error**: `m/00002_build.sql:3:1: if the session ends during"), "{markdown}");
    }
}

#[test]
fn two_runs_at_once_deadlock_where_the_second_waits_with_a_snapshot() {
    let build = "CREATE INDEX CONCURRENTLY t_a ON t (a);\n";
    for major in MAJORS {
        if binaries(major).is_none() {
            continue;
        }
        let version = major.to_string();
        let twice = |tool: &str, files: &[(&str, &str)]| {
            let config = format!("[migrations]\ntool = \"{tool}\"\n");
            let folder = folder(&[&[("m/pgvet.toml", config.as_str())], files].concat());
            folder.json(&["trace", "m", "--twice", "--pg-version", &version])
        };
        let base = "CREATE TABLE t (id bigint PRIMARY KEY, a int);\n";
        let waits = twice("golang-migrate", &[("m/1_base.up.sql", base), ("m/2_build.up.sql", build)]);
        assert_eq!(waits["migrations"][0]["twice"]["together"], "waits", "{waits}");
        let deadlock = &waits["migrations"][1]["twice"];
        assert_eq!(deadlock["together"], "differs", "{waits}");
        assert!(deadlock["refused"][0]["message"].as_str().unwrap().contains("40P01"), "{waits}");
        let unique = twice("dbmate", &[("m/1_base.sql", &format!("-- migrate:up\n{base}"))]);
        assert_eq!(unique["migrations"][0]["twice"]["together"], "one-fails", "{unique}");
        let rows = "-- migrate:up\nINSERT INTO t SELECT max(id) + 1, 1 FROM t;\n";
        let rows = twice("dbmate", &[("m/1_base.sql", &format!("-- migrate:up\n{base}")), ("m/2_rows.sql", rows)]);
        assert_eq!(rows["migrations"][1]["twice"]["together"], "one-fails", "{rows}");
        let apart = twice("postgres-migrations", &[("m/1_base.sql", base), ("m/2_build.sql", "SELECT 1;\n")]);
        assert_eq!(apart["migrations"][1]["twice"]["together"], "kept-apart", "{apart}");
    }
}

#[test]
fn other_servers_are_refused() {
    let folder = folder(&GOOSE);
    let text = folder.run(&["trace", "m", "--crash", "--on", "template", "--database", "postgres://localhost/x"]);
    assert!(text.starts_with("exit 2\n"), "{text}");
    assert!(text.contains("--crash needs many copies of a database, and runs only with --on scratch"), "{text}");
    let text = folder.run(&["trace", "m", "--twice", "--canary"]);
    assert!(text.contains("cannot be used with"), "{text}");
}
