//! The program as its users meet it: arguments, exit status, and what is printed where.

use crate::support::{Folder, transcript};
use std::process::{Command, Stdio};

/// A file with a byte that is no UTF-8, the one finding that needs no rule.
const LATIN1: &[u8] = b"-- 1\n-- caf\xe9\n";

#[test]
fn a_clean_file_is_clean() {
    let folder = Folder::new(&[("1_a.sql", b"-- nothing\n")]);
    insta::assert_snapshot!(folder.run(&["check", "1_a.sql"]), @r"
    exit 0
    --- stdout
    No problems found in 1 file
    ");
}

#[test]
fn a_finding_is_shown_with_its_source() {
    let folder = Folder::new(&[("db/1_a.sql", LATIN1), ("db/2_b.sql", b"-- nothing\n")]);
    insta::assert_snapshot!(folder.run(&["check"]), @"
    exit 1
    --- stdout
    error[unsupported-encoding]

      × byte 11 is not UTF-8, the encoding in which migrations are read
       ╭─[db/1_a.sql:2:7]
     1 │ -- 1
     2 │ -- caf?
       ·       ─
       ╰────
      help: save the file as UTF-8; the bytes were read as `?`, and the rest was checked

    1 error in 1 of 2 files
    `pgvet explain unsupported-encoding` says more about the rule.
    ");
}

#[test]
fn concise_findings_are_one_line_each() {
    let folder = Folder::new(&[("db/1_a.sql", LATIN1), ("db/2_b.sql", LATIN1)]);
    insta::assert_snapshot!(folder.run(&["check", "db", "--format", "concise"]), @"
    exit 1
    --- stdout
    db/1_a.sql:2:7: error[unsupported-encoding] byte 11 is not UTF-8, the encoding in which migrations are read
    db/2_b.sql:2:7: error[unsupported-encoding] byte 11 is not UTF-8, the encoding in which migrations are read
    2 errors in 2 of 2 files
    ");
}

#[test]
fn json_findings_have_the_documented_shape() {
    let folder = Folder::new(&[("db/1_a.sql", LATIN1)]);
    let output = folder.output(&["check", "db", "missing", "--format", "json", "--pg-version", "16"], b"", &[]);
    assert_eq!(output.status.code(), Some(2));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    insta::assert_json_snapshot!(document, @r#"
    {
      "diagnostics": [
        {
          "assumptions": [],
          "confidence": "certain",
          "fingerprint": "1be948b32b787fbe",
          "fixes": [],
          "group": "unsupported-encoding:db/1_a.sql",
          "help": "save the file as UTF-8; the bytes were read as `?`, and the rest was checked",
          "labels": [],
          "message": "byte 11 is not UTF-8, the encoding in which migrations are read",
          "path": "db/1_a.sql",
          "pg_versions": [
            16
          ],
          "range": {
            "end": {
              "column": 8,
              "line": 2,
              "offset": 12
            },
            "start": {
              "column": 7,
              "line": 2,
              "offset": 11
            }
          },
          "relations": [],
          "rule": "unsupported-encoding",
          "severity": "error",
          "url": "https://github.com/pgvet/pgvet/blob/main/rules/unsupported-encoding.md"
        }
      ],
      "problems": [
        {
          "message": "does not exist",
          "path": "missing"
        }
      ],
      "schema_version": 1,
      "summary": {
        "configuration": {
          "before_start": 0,
          "ignored_tables": 0,
          "only_paths": false,
          "overrides": 0,
          "placeholders": 0,
          "rules_off": 0
        },
        "errors": 1,
        "files": 1,
        "files_with_findings": 1,
        "hidden_below_confidence": 0,
        "hidden_below_level": 0,
        "history_files": 0,
        "infos": 0,
        "known": 0,
        "not_checked": 1,
        "rollbacks": 0,
        "skipped": 0,
        "suppressed": 0,
        "unlisted": 0,
        "warnings": 0
      }
    }
    "#);
}

#[test]
fn files_that_the_list_of_the_tool_omits_are_counted() {
    let journal = br#"{"version": "7", "dialect": "postgresql", "entries": [{"idx": 0, "tag": "0000_a"}]}"#;
    let folder = Folder::new(&[
        ("drizzle/meta/_journal.json", journal),
        ("drizzle/0000_a.sql", b"CREATE TABLE t (id bigint PRIMARY KEY);\n"),
        ("drizzle/0001_b.sql", b"DROP TABLE t;\n"),
    ]);
    let judged = folder.run(&["check", "drizzle", "--down", "--only", "drop-table", "--confidence", "possible"]);
    assert!(judged.contains("\n1 warning in 1 of 2 files\n"), "{judged}");
    let said = folder.run(&["check", "drizzle"]);
    let expected = "No problems found in 1 file; 1 file only parsed, because the migration tool does not run it";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn fingerprints_outlive_lines_added_above() {
    let fingerprint = |text: &[u8]| {
        let folder = Folder::new(&[("1_a.sql", text)]);
        let output = folder.output(&["check", "1_a.sql", "--format", "json"], b"", &[]);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        document["diagnostics"][0]["fingerprint"].as_str().unwrap().to_owned()
    };
    assert_eq!(fingerprint(LATIN1), fingerprint(&[b"-- more\n\n", LATIN1].concat()));
}

#[test]
fn the_severity_that_fails_is_chosen() {
    let folder = Folder::new(&[("1_a.sql", LATIN1)]);
    for (fail_on, status) in [("error", 1), ("info", 1), ("never", 0)] {
        let output = folder.output(&["check", "1_a.sql", "--fail-on", fail_on], b"", &[]);
        assert_eq!(output.status.code(), Some(status), "{fail_on}");
    }
}

#[test]
fn a_missing_path_is_named_and_the_others_are_checked() {
    let folder = Folder::new(&[("1_a.sql", LATIN1)]);
    insta::assert_snapshot!(folder.run(&["check", "nowhere.sql", "1_a.sql", "--format", "concise"]), @"
    exit 2
    --- stdout
    1_a.sql:2:7: error[unsupported-encoding] byte 11 is not UTF-8, the encoding in which migrations are read
    1 error in 1 of 1 file; 1 path not checked
    --- stderr
    error: `nowhere.sql` does not exist
      help: check the spelling; the path is relative to the current folder
    ");
}

#[test]
fn a_folder_without_sql_is_an_error() {
    let folder = Folder::new(&[("readme.txt", b"")]);
    insta::assert_snapshot!(folder.run(&["check"]), @"
    exit 2
    --- stderr
    error: `.` has no SQL files to check
      help: name a folder or file with `.sql` migrations
    ");
}

#[test]
fn a_folder_named_like_a_file_is_a_folder() {
    let folder = Folder::new(&[("x.sql/readme.txt", b"")]);
    insta::assert_snapshot!(folder.run(&["check", "x.sql"]), @"
    exit 2
    --- stderr
    error: `x.sql` has no SQL files to check
      help: name a folder or file with `.sql` migrations
    ");
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let folder = Folder::new(&[("1_a.sql", b"")]);
    std::os::unix::fs::symlink("nowhere", folder.path().join("2_b.sql")).unwrap();
    insta::assert_snapshot!(folder.run(&["check", "--format", "concise"]), @"
    exit 2
    --- stdout
    No problems found in 1 file; 1 path not checked
    --- stderr
    error: `2_b.sql` is a symbolic link whose target does not exist
    ");
}

#[test]
fn a_missing_history_or_schema_is_an_error() {
    let folder = Folder::new(&[("1_a.sql", b"")]);
    insta::assert_snapshot!(folder.run(&["check", "1_a.sql", "--history", "old", "--schema", "dump.sql"]), @"
    exit 2
    --- stdout
    No problems found in 1 file; 2 paths not checked
    --- stderr
    error: `old` does not exist
      help: check the spelling; the path is relative to the current folder
    error: `dump.sql` does not exist
      help: check the spelling; the path is relative to the current folder
    ");
}

#[test]
fn a_dump_omits_the_rows_that_the_database_has() {
    let dump = b"CREATE TABLE t (id int);\nCREATE MATERIALIZED VIEW m AS SELECT id FROM t WITH NO DATA;\n\
        CREATE UNIQUE INDEX i ON m (id);\n";
    let migration = b"CREATE TABLE copy AS SELECT * FROM m;\nREFRESH MATERIALIZED VIEW CONCURRENTLY m;\n\
        REFRESH MATERIALIZED VIEW m;\n";
    let folder = Folder::new(&[("dump.sql", dump), ("1_a.sql", migration)]);
    let rules = "--only=statement-will-fail,refresh-blocks-readers";
    insta::assert_snapshot!(folder.run(&["check", "1_a.sql", "--schema", "dump.sql", "--format=concise", rules]), @"
    exit 0
    --- stdout
    1_a.sql:3:1: warning[refresh-blocks-readers] this refresh blocks all reads of `m` until the transaction ends
    1 warning in 1 of 1 file
    1 finding can be fixed with `pgvet check --unsafe-fixes`; review the result.
    ");
}

#[test]
fn an_unknown_rule_is_an_error() {
    let folder = Folder::new(&[("1_a.sql", b"")]);
    for args in [&["check", "--only", "not-a-rule-of-pgvet"][..], &["explain", "not-a-rule-of-pgvet"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(folder.run(args), @"
            exit 2
            --- stderr
            error: there is no rule `not-a-rule-of-pgvet`
              help: `pgvet rules` lists all rules
            ");
        }
    }
}

#[test]
fn an_unknown_version_or_format_is_an_error() {
    let folder = Folder::new(&[("1_a.sql", b"")]);
    insta::assert_snapshot!(folder.run(&["check", "--pg-version", "9.6"]), @"
    exit 2
    --- stderr
    error: invalid value '9.6' for '--pg-version <VERSION>': `9.6` is not a PostgreSQL version: expected a major version or a range between 10 and 18, such as 16 or 14-18

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(folder.run(&["check", "--format", "jsn"]), @"
    exit 2
    --- stderr
    error: invalid value 'jsn' for '--format <FORMAT[=FILE]>': there is no format `jsn`; formats are full, concise, json, sarif, github, gitlab, sonarqube, markdown, junit, checkstyle

    For more information, try '--help'.
    ");
}

#[test]
fn colour_is_used_only_where_it_is_wanted() {
    let folder = Folder::new(&[("1_a.sql", LATIN1)]);
    let has_color = |args: &[&str], env: &[(&str, &str)]| folder.output(args, b"", env).stdout.contains(&0x1b);
    assert!(!has_color(&["check"], &[]), "standard output is no terminal");
    assert!(has_color(&["check", "--color", "always"], &[]));
    assert!(has_color(&["check", "--color", "always", "--format", "concise"], &[("NO_COLOR", "1")]));
    assert!(!has_color(&["check", "--color", "never"], &[]));
}

#[test]
fn standard_input_has_the_given_name() {
    let folder = Folder::new(&[]);
    let args = ["check", "-", "--stdin-filename", "db/9_z.sql", "--format", "concise"];
    insta::assert_snapshot!(transcript(&folder.output(&args, LATIN1, &[])), @"
    exit 1
    --- stdout
    db/9_z.sql:2:7: error[unsupported-encoding] byte 11 is not UTF-8, the encoding in which migrations are read
    1 error in 1 of 1 file
    ");
}

#[test]
fn a_migration_tool_is_recognized_from_inside_its_folders() {
    const CONCURRENTLY: &[u8] = b"CREATE INDEX CONCURRENTLY i ON t (a);\n";
    let folder = Folder::new(&[
        ("diesel/2024-01-01-000000_a/up.sql", CONCURRENTLY),
        ("diesel/2024-01-01-000000_a/down.sql", b"DROP INDEX i;\n"),
        ("Cargo.toml", b"[dependencies]\nsqlx = \"0.8\"\n"),
        ("migrations/1_a.sql", CONCURRENTLY),
        ("sqitch.plan", b"%project=x\nzebras 2024-01-01T00:00:00Z a <a@b.c>\napes 2024-01-02T00:00:00Z a <a@b.c>\n"),
        ("deploy/zebras.sql", b"CREATE TABLE t (a int);\n"),
        ("deploy/apes.sql", b"CREATE TABLE t (a int);\n"),
    ]);
    for (inside, file, rule) in [
        ("diesel/2024-01-01-000000_a", "up.sql", "concurrently-in-transaction"),
        ("migrations", "1_a.sql", "concurrently-in-transaction"),
        ("deploy", "apes.sql", "statement-will-fail"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgvet"));
        let output = command
            .args(["check", file, "--no-cache", "--format", "concise"])
            .current_dir(folder.path().join(inside))
            .output();
        let shown = String::from_utf8(output.unwrap().stdout).unwrap();
        assert!(shown.contains(&format!("error[{rule}]")), "{inside}: {shown}");
    }
}

#[test]
fn effects_name_version_and_files() {
    let folder = Folder::new(&[("1_a.sql", b"-- nothing\n")]);
    let output = folder.output(&["effects", "1_a.sql", "--format", "json", "--pg-version", "14-17"], b"", &[]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = serde_json::json!({
        "schema_version": 1, "pg_version": 17, "files": [{ "path": "1_a.sql", "statements": [] }]
    });
    assert_eq!(document, expected);
    insta::assert_snapshot!(folder.run(&["effects", "1_a.sql"]), @"
    exit 0
    --- stdout
    Effects on PostgreSQL 18

    1_a.sql
      no statements
    ");
}

#[test]
fn rules_are_listed_for_programs() {
    let output = Folder::new(&[]).output(&["rules", "--format", "json"], b"", &[]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema_version"], 1);
    assert!(document["rules"].is_array());
}

#[test]
fn completions_and_manual_are_generated() {
    let folder = Folder::new(&[]);
    for (args, part) in [(&["completions", "bash"][..], "_pgvet()"), (&["man"], ".TH pgvet")] {
        let output = folder.output(args, b"", &[]);
        assert!(String::from_utf8(output.stdout).unwrap().contains(part), "{args:?}");
        assert!(output.status.success());
    }
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_no_error_message() {
    let folder = Folder::new(&[("1_a.sql", LATIN1)]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_pgvet"))
        .args(["completions", "bash"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
