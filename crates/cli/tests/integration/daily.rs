//! Conveniences of daily use: counts, categories, suppressions written, hints, widths, completions, manual pages.

use crate::support::Folder;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const TABLE: &[u8] = b"CREATE TABLE orders (id bigint PRIMARY KEY, note text);\n";
const INDEX: &[u8] = b"SET lock_timeout = '2s';\nCREATE INDEX i ON orders (note);\n";
const DROP: &[u8] = b"SET lock_timeout = '2s';\nALTER TABLE orders DROP COLUMN note;\n";

fn project() -> Folder {
    Folder::new(&[
        ("db/migrations/1_table.sql", TABLE),
        ("db/migrations/2_index.sql", INDEX),
        ("db/migrations/3_drop.sql", DROP),
    ])
}

fn stdout(folder: &Folder, args: &[&str]) -> String {
    String::from_utf8(folder.output(args, b"", &[]).stdout).unwrap()
}

#[test]
fn statistics_count_the_findings_of_each_rule() {
    let folder = project();
    insta::assert_snapshot!(folder.run(&["check", "--statistics", "--no-config"]), @"
    exit 1
    --- stdout
         1  warning  drop-column                 in 1 file
         1  error    index-without-concurrently  in 1 file, 1 with a fix

    1 error, 1 warning in 2 of 3 files
    1 finding can be fixed with `pgvet check --unsafe-fixes`; review the result.
    `pgvet rewrite db/migrations/2_index.sql` writes safer migrations for 1 finding.
    ");
    let counts = stdout(&folder, &["check", "--statistics", "--format", "json"]);
    let counts: serde_json::Value = serde_json::from_str(&counts).unwrap();
    let rules: Vec<&str> =
        counts["statistics"].as_array().unwrap().iter().map(|count| count["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, ["drop-column", "index-without-concurrently"]);
    assert_eq!(counts["statistics"][1]["files"], 1);
    let refused = folder.run(&["check", "--statistics", "--format", "sarif"]);
    assert!(refused.starts_with("exit 2") && refused.contains("cannot show statistics"), "{refused}");
}

#[test]
fn quiet_leaves_the_findings_and_verbose_lists_the_files() {
    let folder = project();
    let said = folder.run(&["check", "--quiet", "--format", "concise", "--only", "drop-column"]);
    assert!(said.starts_with("exit 0\n--- stdout\ndb/migrations/3_drop.sql:2:32: warning[drop-column] "), "{said}");
    assert_eq!(said.lines().count(), 3, "{said}");
    let said = folder.run(&["check", "--quiet", "--only", "drop-column"]);
    assert!(said.ends_with("\n\n") && said.contains("help:"), "{said}");
    assert_eq!(folder.run(&["check", "--quiet", "db/migrations/1_table.sql"]), "exit 0\n");
    fs::create_dir_all(folder.path().join("tests")).unwrap();
    fs::write(folder.path().join("tests/reset.sql"), "TRUNCATE orders;").unwrap();
    let said = folder.run(&["check", "--verbose", "--only", "drop-column"]);
    for line in ["checked: db/migrations/3_drop.sql\n", "skipped: tests/reset.sql (for tests)\n"] {
        assert!(said.contains(line), "{said}");
    }
    let said = folder.run(&["check", "-v", "db/migrations/3_drop.sql"]);
    assert!(said.contains("replayed: db/migrations/1_table.sql\n"), "{said}");
}

#[test]
fn categories_stand_for_their_rules() {
    let folder = project();
    let rules = |args: &[&str]| {
        let said = stdout(&folder, &[&["check", "--format", "concise", "--quiet"], args].concat());
        let name = |line: &str| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned());
        said.lines().filter_map(name).collect::<Vec<_>>()
    };
    assert_eq!(rules(&[]), ["index-without-concurrently", "drop-column"]);
    assert_eq!(rules(&["--only", "locking"]), ["index-without-concurrently"]);
    assert_eq!(rules(&["--only", "bloat"]), [""; 0]);
    assert_eq!(rules(&["--only", "locking,drop-column"]), ["index-without-concurrently", "drop-column"]);
    assert_eq!(rules(&["--ignore", "locking"]), ["drop-column"]);
    assert_eq!(rules(&["--level", "error"]), ["index-without-concurrently"]);
    assert_eq!(rules(&["--level", "error,compatibility=error"]), ["index-without-concurrently", "drop-column"]);
    assert_eq!(rules(&["--level", "locking=off"]), ["drop-column"]);
    assert_eq!(rules(&["--level", "error", "--level", "locking=warning"]), [""; 0]);
    let unknown = folder.run(&["check", "--only", "lockin"]);
    assert!(unknown.starts_with("exit 2") && unknown.contains("there is no rule `lockin`"), "{unknown}");
    // A rule that the configuration turns off stays off in its category, and not by its own name.
    fs::write(folder.path().join("pgvet.toml"), "[rules]\nindex-without-concurrently = \"off\"\n").unwrap();
    assert_eq!(rules(&["--only", "locking"]), [""; 0]);
    assert_eq!(rules(&["--only", "index-without-concurrently"]), ["index-without-concurrently"]);
}

#[test]
fn excluded_files_are_not_even_replayed() {
    let folder = project();
    let said = folder.run(&["check", "--format", "concise", "--exclude", "db/migrations/2_*"]);
    assert!(!said.contains("2_index.sql") && said.contains("1 excluded by configuration"), "{said}");
    let said = folder.run(&["check", "--format", "concise", "--exclude", "**/1_table.sql", "db/migrations/3_drop.sql"]);
    assert!(said.contains("1 earlier migration replayed"), "{said}");
    let said = folder.run(&["check", "--exclude", "[a"]);
    assert!(said.starts_with("exit 2") && said.contains("--exclude"), "{said}");
}

#[test]
fn a_hook_gets_what_check_says_about_the_files_that_it_names() {
    let folder = project();
    let at = |path: &str| folder.path().join(path);
    let skipped = [
        ("mysql/1_a.sql", "CREATE TABLE m (id int AUTO_INCREMENT) ENGINE=InnoDB;\n"),
        ("queries/users.sql", "-- name: GetUser :one\nSELECT note FROM orders WHERE id = @id;\n"),
        ("tests/reset.sql", "TRUNCATE orders;\n"),
        ("schema/structure.sql", "-- PostgreSQL database dump\n--\nDROP TABLE orders;\n"),
        ("db/migrations/old/1.sql", "DROP TABLE orders;\n"),
        ("report.sql", "DELETE FROM orders;\n"),
        ("notes.sql.txt", "nothing\n"),
    ];
    for (path, text) in skipped {
        fs::create_dir_all(at(path).parent().unwrap()).unwrap();
        fs::write(at(path), text).unwrap();
    }
    fs::write(at("pgvet.toml"), "[migrations]\nexclude = [\"db/migrations/old\"]\n").unwrap();
    let names = skipped.map(|(path, _)| path);
    let forced = |more: &[&str]| {
        folder.run(&[&["check", "--format", "concise", "--force-exclude", "--"], &names[..], more].concat())
    };
    let nothing = forced(&[]);
    assert!(nothing.starts_with("exit 0") && nothing.contains("No problems found in 0 files"), "{nothing}");
    assert!(nothing.contains("7 files skipped"), "{nothing}");
    let one = forced(&["db/migrations/3_drop.sql"]);
    let whole = folder.run(&["check", "--format", "concise"]);
    let lines = |said: &str, file: &str| {
        said.lines().filter(|line| line.starts_with(file)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&one, "db/migrations/3_drop.sql"), lines(&whole, "db/migrations/3_drop.sql"));
    assert_eq!(lines(&one, "").iter().filter(|line| line.contains(".sql:")).count(), 1, "{one}");
    assert!(one.contains("in 1 of 1 file; 2 earlier migrations replayed, not reported"), "{one}");
    let missing = forced(&["db/migrations/4_gone.sql"]);
    assert!(missing.starts_with("exit 2") && missing.contains("does not exist"), "{missing}");
    // A folder stands for its files.
    let folder_named = folder.run(&["check", "--format", "concise", "--force-exclude", "db", "tests"]);
    assert_eq!(lines(&folder_named, "db/"), lines(&whole, "db/"));
}

#[test]
fn suppressions_are_written_with_their_reason() {
    let folder = project();
    let at = |path: &str| folder.path().join(path);
    fs::write(
        at("db/migrations/4_more.sql"),
        "SELECT 1;\r\n  SELECT 2; DROP TABLE orders;\r\n  TRUNCATE settings;\r\n",
    )
    .unwrap();
    let shown = folder.run(&["check", "--add-ignore", "the table is small", "--diff"]);
    assert!(shown.contains("+-- pgvet: ignore[drop-column] the table is small\n"), "{shown}");
    assert_eq!(fs::read(at("db/migrations/3_drop.sql")).unwrap(), DROP);
    let said = folder.run(&["check", "--add-ignore", "the table is small", "--require-reasons", "--level", "info"]);
    assert!(said.starts_with("exit 0") && said.contains("No problems found"), "{said}");
    assert_eq!(
        fs::read_to_string(at("db/migrations/2_index.sql")).unwrap(),
        "SET lock_timeout = '2s';\n-- pgvet: ignore[index-without-concurrently] the table is small\nCREATE INDEX i ON orders (note);\n"
    );
    let again = folder.run(&["check", "--require-reasons", "--level", "info"]);
    assert!(again.starts_with("exit 0") && again.contains("No problems found in 4 files"), "{again}");
    let mixed = fs::read_to_string(at("db/migrations/4_more.sql")).unwrap();
    assert!(mixed.starts_with("SELECT 1;\r\n  SELECT 2; /* pgvet: ignore["), "{mixed}");
    assert!(
        mixed.contains(" the table is small\r\n  TRUNCATE settings;\r\n") && !mixed.replace("\r\n", "").contains('\n'),
        "{mixed}"
    );
    for wrong in ["", "two\nlines"] {
        let refused = folder.run(&["check", "--add-ignore", wrong]);
        assert!(refused.starts_with("exit 2"), "{refused}");
    }
}

#[test]
fn the_end_says_what_can_be_done() {
    let folder = Folder::new(&[
        ("db/migrations/1_table.sql", TABLE),
        ("db/migrations/2_index.sql", INDEX),
        ("db/migrations/3_open.sql", b"BEGIN;\nALTER TABLE orders ADD COLUMN a int;\nCOMMIT;\n"),
    ]);
    let said = folder.run(&["check"]);
    assert!(said.contains("can be fixed with `pgvet check --fix`"), "{said}");
    assert!(
        said.contains("`pgvet rewrite db/migrations/2_index.sql` writes safer migrations for 1 finding."),
        "{said}"
    );
    assert!(said.contains("`pgvet explain RULE` says more about a rule, for example `pgvet explain "), "{said}");
    let said = folder.run(&["check", "--only", "index-without-concurrently"]);
    assert!(said.ends_with("`pgvet explain index-without-concurrently` says more about the rule.\n"), "{said}");
}

#[test]
fn text_is_as_wide_as_the_terminal() {
    let folder = project();
    for width in [60, 80, 120] {
        let output = folder.output(&["check", "--color", "never"], b"", &[("COLUMNS", &width.to_string())]);
        let said = String::from_utf8(output.stdout).unwrap();
        // SQL is not broken, so that it can be copied.
        let is_prose = |line: &&str| !line.contains('│') && !line.starts_with("            ");
        let widest = said.lines().filter(is_prose).map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= width, "{width}: {said}");
        assert!(widest > width - 20, "{width}: {said}");
    }
    let whole = stdout(&folder, &["check", "--only", "drop-column"]);
    let mut lines = whole.lines().skip_while(|line| !line.starts_with("  ⚠ "));
    assert!(lines.next().is_some_and(|line| line.chars().count() > 60), "{whole}");
    assert!(lines.next().is_some_and(|line| line.starts_with("   ╭")), "the message is on one line: {whole}");
}

#[test]
fn colour_can_be_forced_by_the_environment() {
    let folder = project();
    let has_colour = |env: &[(&str, &str)]| {
        let output = folder.output(&["check", "--format", "concise"], b"", env);
        String::from_utf8(output.stdout).unwrap().contains("\u{1b}[")
    };
    assert!(!has_colour(&[]));
    assert!(has_colour(&[("CLICOLOR_FORCE", "1")]));
    assert!(has_colour(&[("FORCE_COLOR", "1")]));
    assert!(!has_colour(&[("FORCE_COLOR", "0")]));
    assert!(!has_colour(&[("FORCE_COLOR", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn explain_knows_rules_by_all_their_names() {
    let folder = Folder::new(&[]);
    let explained = |name: &str| stdout(&folder, &["explain", name]);
    for name in ["drop-column", "squawk/ban-drop-column", "ban-drop-column", "drop-col"] {
        assert!(explained(name).starts_with("drop-column (compatibility, warning, on by default)\n"), "{name}");
    }
    assert!(explained("locking").contains("index-without-concurrently (error)\n"));
    assert!(explained("rename-").contains("rename-column"));
    for name in ["eugene/E6", "strong_migrations/add_index", "atlas/PG101"] {
        assert!(explained(name).contains("index-without-concurrently"), "{name}: {}", explained(name));
    }
    let unknown = folder.run(&["explain", "no-such-rule-at-all"]);
    assert!(unknown.starts_with("exit 2") && unknown.contains("`pgvet rules` lists all rules"), "{unknown}");
}

#[test]
fn completions_know_rules_categories_and_formats() {
    let folder = Folder::new(&[]);
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = stdout(&folder, &["completions", shell]);
        for word in ["index-without-concurrently", "compatibility", "sonarqube"] {
            assert!(shell == "powershell" || script.contains(word), "{shell} does not complete {word}");
        }
    }
    // A real shell completes them.
    let script = folder.path().join("pgvet.bash");
    fs::write(&script, stdout(&folder, &["completions", "bash"])).unwrap();
    let complete = |words: &[&str]| {
        let list = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let ask = format!(
            "source '{}'; COMP_WORDS=({list}); COMP_CWORD={}; _pgvet pgvet \"${{COMP_WORDS[COMP_CWORD]}}\" \
             \"${{COMP_WORDS[COMP_CWORD-1]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display(),
            words.len() - 1
        );
        let output = Command::new("bash").args(["--norc", "-c", &ask]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(complete(&["pgvet", "check", "--only", "index-w"]).contains("index-without-concurrently"));
    assert!(complete(&["pgvet", "check", "--ignore", "lock"]).contains("locking"));
    assert!(complete(&["pgvet", "check", "--format", "sa"]).contains("sarif"));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = Folder::new(&[]);
    let page = stdout(&folder, &["man", "check"]);
    assert!(page.contains(".TH pgvet-check") && page.contains("Exit status") && page.contains("fail\\-on"), "{page}");
    assert_eq!(folder.run(&["man", "--out", "pages"]), "exit 0\n");
    let program = fs::read_to_string(folder.path().join("pages/pgvet.1")).unwrap();
    let referred = program.split("pgvet\\-").skip(1).filter_map(|rest| rest.split_once("(1)"));
    let mut count = 0;
    for (name, _) in referred {
        let name = name.replace('\\', "");
        if name.len() > 30 {
            continue;
        }
        count += 1;
        assert!(folder.path().join(format!("pages/pgvet-{name}.1")).exists(), "{name}");
    }
    assert!(count > 10, "{program}");
    let unknown = folder.run(&["man", "no-such"]);
    assert!(unknown.starts_with("exit 2") && unknown.contains("commands are check, "), "{unknown}");
}

#[test]
fn help_has_headings_defaults_and_exit_statuses() {
    let folder = Folder::new(&[]);
    let help = stdout(&folder, &["check", "--help"]);
    for part in ["Files:", "Configuration:", "Rules:", "Output:", "Fixes:", "Known findings:", "Exit status:"] {
        assert!(help.contains(&format!("\n{part}\n")), "{part}: {help}");
    }
    assert!(help.contains("[default: 14-18]") && !help.contains("possible values: not-analyzed"), "{help}");
    for command in ["effects", "rewrite", "config", "schema", "explain", "trace", "baseline", "init", "snapshot"] {
        assert!(stdout(&folder, &[command, "--help"]).contains("Exit status"), "{command}");
    }
}

#[cfg(unix)]
#[test]
fn a_watch_checks_again_after_a_change() {
    let folder = project();
    let mut child = Command::new(env!("CARGO_BIN_EXE_pgvet"))
        .args(["check", "--watch", "--format", "concise", "--only", "drop-column,drop-table", "--no-cache"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |end: &str| {
        let mut seen = String::new();
        loop {
            let line = lines.next().unwrap().unwrap();
            seen.push_str(&line);
            if line.contains(end) {
                return seen;
            }
        }
    };
    assert!(until("in 1 of 3 files").contains("drop-column"));
    fs::write(folder.path().join("db/migrations/4_table.sql"), "SET lock_timeout = '1s';\nDROP TABLE orders;\n")
        .unwrap();
    assert!(until("in 2 of 4 files").contains("drop-table"));
    fs::remove_file(folder.path().join("db/migrations/3_drop.sql")).unwrap();
    until("in 1 of 3 files");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_schema_is_that_as_of_a_migration() {
    let folder = Folder::new(&[
        (
            "db/migrations/1_users.sql",
            b"CREATE TYPE state AS ENUM ('new', 'old');\n\
              CREATE TABLE users (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email varchar(80) NOT NULL,\n\
              state state DEFAULT 'new', made timestamptz DEFAULT now(), lower text GENERATED ALWAYS AS (lower(email)) STORED);\n",
        ),
        (
            "db/migrations/2_orders.sql",
            b"CREATE TABLE shop.orders (id bigint, user_id bigint REFERENCES users, note text DEFAULT 'a' || 'b');\n\
              CREATE UNIQUE INDEX ON shop.orders (user_id, lower(note)) WHERE note IS NOT NULL;\n\
              ALTER TABLE shop.orders ADD CONSTRAINT c CHECK (id > 0) NOT VALID;\n\
              ALTER TABLE legacy ADD COLUMN a int;\nALTER TABLE users ENABLE ROW LEVEL SECURITY;\n",
        ),
        ("db/migrations/3_drop.sql", b"DROP TABLE shop.orders;\n"),
    ]);
    insta::assert_snapshot!(folder.run(&["schema", "--at", "2"]));
    let names = |args: &[&str]| {
        let text = stdout(&folder, &[&["schema", "--format", "json"], args].concat());
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let relations = document["databases"][0]["relations"].as_array().unwrap();
        relations.iter().map(|relation| relation["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["--at", "1_users.sql"]), ["users"]);
    assert_eq!(names(&["--at", "2"]), ["legacy", "users", "orders"]);
    assert_eq!(names(&["--at", "2", "--table", "shop.orders,nothing"]), ["orders"]);
    assert_eq!(names(&[]), ["legacy", "users"]);
    assert_eq!(names(&["db/migrations/2_orders.sql"]), ["legacy", "users", "orders"]);
    let refused = folder.run(&["schema", "--at", "9"]);
    assert!(refused.starts_with("exit 2") && refused.contains("no migration matches `9`"), "{refused}");
}
