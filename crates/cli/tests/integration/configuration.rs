//! `pgvet.toml`, `init`, `config`, baselines and git as users meet them.

use crate::support::Folder;
use crate::support::repository;
use crate::support::repository::{git, write};
use std::fs;
use std::process::Command;

const TABLE: &str = "CREATE TABLE orders (id bigint PRIMARY KEY, note text);\n";
const INDEX: &str = "SET lock_timeout = '2s';\nCREATE INDEX i ON orders (note);\n";
const UNIQUE: &str = "SET lock_timeout = '2s';\nCREATE UNIQUE INDEX u ON orders (note);\n";

fn project(more: &[(&str, &str)]) -> Folder {
    let mut files = vec![("db/migrations/1_a.sql", TABLE), ("db/migrations/2_b.sql", INDEX)];
    files.extend(more);
    folder(&files)
}

fn folder(files: &[(&str, &str)]) -> Folder {
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    Folder::new(&files)
}

fn concise(folder: &Folder, args: &[&str]) -> String {
    folder.run(&[&["check", "--format", "concise"], args].concat())
}

#[test]
fn a_mistake_in_the_configuration_is_underlined() {
    let folder = project(&[("pgvet.toml", "pg-version = 16\n\n[rules]\nindex-without-concurently = \"off\"\n")]);
    insta::assert_snapshot!(folder.run(&["check"]).replace(&folder.path().display().to_string(), "[folder]"), @r#"
    exit 2
    --- stderr
    error: configuration

      × there is no rule `index-without-concurently`
       ╭─[pgvet.toml:4:1]
     3 │ [rules]
     4 │ index-without-concurently = "off"
       · ─────────────────────────
       ╰────
      help: did you mean `index-without-concurrently`?
    "#);
}

#[test]
fn the_configuration_changes_levels_tables_and_exit_status() {
    let rule = "index-without-concurrently";
    for (config, status, shown) in [
        (String::new(), 1, true),
        (format!("[rules]\n{rule} = \"off\""), 0, false),
        (format!("[rules]\n{rule} = \"warning\""), 0, true),
        (format!("fail-on = \"warning\"\n[rules]\n{rule} = \"warning\""), 1, true),
        ("[categories]\nlocking = \"off\"".to_owned(), 0, false),
        ("[tables]\norders = { rows = 100 }".to_owned(), 0, false),
        ("level = \"info\"\n[tables]\norders = { rows = 100 }".to_owned(), 0, true),
        ("level = \"info\"\n[tables]\norders = { ignore = true }".to_owned(), 0, false),
        (format!("[[overrides]]\npaths = [\"db\"]\nrules = {{ {rule} = \"off\" }}"), 0, false),
        (format!("[[overrides]]\npaths = [\"db/migrations/1*\"]\nrules = {{ {rule} = \"off\" }}"), 1, true),
        ("[migrations]\nexclude = [\"db/migrations/2_*\"]".to_owned(), 0, false),
        ("[migrations]\nstart-after = \"2_b.sql\"".to_owned(), 0, false),
        ("[migrations]\nstart-after = \"1\"".to_owned(), 1, true),
        ("[migrations]\nstart-after = [\"1_a.sql\", \"migrations/2_b.sql\"]".to_owned(), 0, false),
    ] {
        let text = concise(&project(&[("pgvet.toml", &config)]), &[]);
        assert!(text.starts_with(&format!("exit {status}\n")), "{config}: {text}");
        assert_eq!(text.contains(rule), shown, "{config}: {text}");
    }
}

#[test]
fn a_start_that_is_not_a_migration_is_reported() {
    let folder = project(&[("pgvet.toml", "[migrations]\nstart-after = \"9_z.sql\"\n")]);
    insta::assert_snapshot!(concise(&folder, &[]), @r"
    exit 2
    --- stdout
    db/migrations/2_b.sql:2:1: error[index-without-concurrently] building this index blocks all writes to `orders` until the transaction ends
    1 error in 1 of 2 files; 1 path not checked
    1 finding can be fixed with `pgvet check --unsafe-fixes`; review the result.
    `pgvet rewrite db/migrations/2_b.sql` writes safer migrations for 1 finding.
    --- stderr
    error: `9_z.sql` (start-after in pgvet.toml) matches no migration
      help: write the file name, the path or the version of a migration, as in `0041_add_users.sql` or `0041`
    ");
}

#[test]
fn a_single_file_is_judged_after_its_history() {
    let folder = project(&[("db/migrations/3_c.sql", UNIQUE)]);
    insta::assert_snapshot!(concise(&folder, &["db/migrations/2_b.sql", "--level", "info"]), @r"
    exit 1
    --- stdout
    db/migrations/2_b.sql:2:1: error[index-without-concurrently] building this index blocks all writes to `orders` until the transaction ends
    1 error in 1 of 1 file; 1 earlier migration replayed, not reported
    1 finding can be fixed with `pgvet check --unsafe-fixes`; review the result.
    `pgvet rewrite db/migrations/2_b.sql` writes safer migrations for 1 finding.
    ");
    // History shows that the column has that type already.
    let new = "ALTER TABLE orders ALTER COLUMN id TYPE bigint;\n";
    fs::write(folder.path().join("db/migrations/4_d.sql"), new).unwrap();
    let with = concise(&folder, &["db/migrations/4_d.sql", "--only", "type-change-rewrites-table"]);
    let without = concise(&folder, &["db/migrations/4_d.sql", "--only", "type-change-rewrites-table", "--no-history"]);
    assert_eq!(with.matches("type-change-rewrites-table").count(), 0, "{with}");
    assert_eq!(without.matches("type-change-rewrites-table").count(), 1, "{without}");
}

#[test]
fn standard_input_has_the_history_of_its_name() {
    let folder = project(&[]);
    let args = ["check", "-", "--stdin-filename", "db/migrations/2_b.sql", "--format", "concise"];
    let output = folder.output(&args, b"CREATE TABLE orders (id int);", &[]);
    insta::assert_snapshot!(crate::support::transcript(&output), @r#"
    exit 1
    --- stdout
    db/migrations/2_b.sql:1:14: error[statement-will-fail] PostgreSQL refuses this: relation "orders" already exists
    1 error in 1 of 1 file; 1 earlier migration replayed, not reported
    "#);
}

#[test]
fn known_findings_are_held_back_until_they_are_fixed() {
    let folder = project(&[]);
    insta::assert_snapshot!(folder.run(&["baseline"]), @r"
    exit 0
    --- stdout
    Wrote 1 known finding to pgvet-baseline.json; `pgvet check` now reports only new findings.
    ");
    insta::assert_snapshot!(concise(&folder, &[]), @r"
    exit 0
    --- stdout
    No problems found in 2 files; 1 finding not shown (in the baseline)
    ");
    let moved = format!("-- a comment\n\n{}", INDEX.to_lowercase());
    fs::write(folder.path().join("db/migrations/2_b.sql"), moved).unwrap();
    fs::write(folder.path().join("db/migrations/3_c.sql"), UNIQUE).unwrap();
    insta::assert_snapshot!(concise(&folder, &[]), @r"
    exit 1
    --- stdout
    db/migrations/3_c.sql:2:1: error[index-without-concurrently] building this index blocks all writes to `orders` until the transaction ends
    1 error in 1 of 3 files; 1 finding not shown (in the baseline); 2 findings hidden by confidence (show with --confidence possible)
    1 finding can be fixed with `pgvet check --unsafe-fixes`; review the result.
    `pgvet rewrite db/migrations/3_c.sql` writes safer migrations for 1 finding.
    ");
    fs::write(folder.path().join("db/migrations/2_b.sql"), "").unwrap();
    insta::assert_snapshot!(concise(&folder, &["--no-history"]), @r"
    exit 1
    --- stdout
    db/migrations/3_c.sql:2:1: error[index-without-concurrently] building this index blocks all writes to `orders` until the transaction ends
    fixed since pgvet-baseline.json was written (`pgvet baseline` removes these entries from it):
      db/migrations/2_b.sql: index-without-concurrently building this index blocks all writes to `orders` until the transaction ends
    1 error in 1 of 3 files; 2 findings hidden by confidence (show with --confidence possible)
    1 finding can be fixed with `pgvet check --unsafe-fixes`; review the result.
    `pgvet rewrite db/migrations/3_c.sql` writes safer migrations for 1 finding.
    ");
    assert!(concise(&folder, &["db/migrations/3_c.sql"]).contains("error[index-without-concurrently]"));
    fs::write(folder.path().join("pgvet-baseline.json"), "{}").unwrap();
    assert!(concise(&folder, &[]).starts_with("exit 2\n"));
    assert!(concise(&folder, &["--no-baseline"]).starts_with("exit 1\n"));
}

#[test]
fn a_baseline_takes_no_place_of_another_file() {
    let folder = Folder::new(&[
        ("1.sql", b"DROP TABLE t;\n"),
        ("pgvet.toml", b"baseline = \"package.json\"\n"),
        ("package.json", b"{\"name\": \"mine\"}\n"),
    ]);
    let said = folder.run(&["baseline"]);
    assert!(said.contains("exit 2") && said.contains("the file exists, and it is not a baseline"), "{said}");
    assert_eq!(fs::read_to_string(folder.path().join("package.json")).unwrap(), "{\"name\": \"mine\"}\n");
    let said = folder.run(&["baseline", "--baseline", "package.json"]);
    assert!(said.starts_with("exit 0\n"), "{said}");
    assert!(folder.run(&["baseline"]).starts_with("exit 0\n"), "it is one now");
}

#[test]
fn a_baseline_is_the_same_from_any_folder() {
    let folder = project(&[("pgvet.toml", "")]);
    folder.run(&["baseline"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgvet"));
    let output = command.args(["check", "."]).current_dir(folder.path().join("db/migrations")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn placeholders_have_values_and_findings_are_about_the_file() {
    let config = "[migrations]\ntransaction = \"autocommit\"\n[placeholders]\nschema = \"app\"\nprefix = \"t_\"\n";
    let folder = Folder::new(&[
        ("pgvet.toml", config.as_bytes()),
        ("db/migrations/1_a.sql", b"CREATE SCHEMA app;\nCREATE TABLE ${schema}.${prefix}orders (id int);\n"),
        ("db/migrations/2_b.sql", b"/* ${schema} */ CREATE INDEX i ON ${schema}.${prefix}orders (id), ${schema};\n"),
        (
            "db/migrations/3_c.sql",
            b"/* ${schema} */ CREATE INDEX i ON app.{{ prefix }}orders (id); SELECT ${schema}.f();\n",
        ),
    ]);
    let args = ["--only", "index-without-concurrently,syntax-error", "--pg-version", "17"];
    insta::assert_snapshot!(concise(&folder, &args), @r#"
    exit 1
    --- stdout
    db/migrations/2_b.sql:1:65: error[syntax-error] syntax error at or near ","
    db/migrations/3_c.sql:1:17: error[index-without-concurrently] building this index blocks all writes to `t_orders` until the transaction ends
    2 errors in 2 of 3 files; pgvet.toml affects this result: 2 placeholders replaced (see pgvet config)
    1 finding can be fixed with `pgvet check --unsafe-fixes`; review the result.
    "#);
    let effects = folder.run(&["effects", "db/migrations/3_c.sql", "--format", "concise"]);
    assert!(effects.contains("app.t_orders"), "{effects}");
}

#[test]
fn only_changes_are_reported_and_all_is_replayed() {
    let folder = project(&[]);
    repository::init(&folder);
    for option in [&["--staged"][..], &["--changed"], &["--since", "main"]] {
        assert_eq!(concise(&folder, option), "exit 0\n--- stdout\nNo problems found in 0 files\n", "{option:?}");
    }
    write(&folder, "db/migrations/3_c.sql", UNIQUE);
    git(&folder, &["add", "-A"]);
    let expected = "exit 1\n--- stdout\ndb/migrations/3_c.sql:2:1: error[index-without-concurrently] building this \
                    index blocks all writes to `orders` until the transaction ends\n1 error in 1 of 1 file; 2 earlier \
                    migrations replayed, not reported; 2 findings hidden by confidence (show with --confidence possible)\n";
    for option in [&["--staged"][..], &["--changed"], &["--since", "main"]] {
        let said = concise(&folder, option);
        assert!(said.starts_with(expected), "{option:?}: {said}");
    }
    insta::assert_snapshot!(concise(&folder, &["--since", "nowhere"]), @r"
    exit 2
    --- stderr
    error: `.` has no revision `nowhere` in its repository
      help: name a branch, tag or commit that `git log` knows, such as origin/main
    ");
}

/// Repeatable migrations, and files that are not migrations, come after the newest one in order.
#[test]
fn init_names_histories_and_the_newest_migration_of_each() {
    let folder = folder(&[
        ("app/db/migration/V1__users.sql", "CREATE TABLE users (id bigint);"),
        ("app/db/migration/R__active_users.sql", "CREATE OR REPLACE VIEW active_users AS SELECT id FROM users;"),
        ("tools/migrate/migrations/1_a.up.sql", "CREATE TABLE a (id bigint);"),
        ("tools/migrate/migrations/1_a.down.sql", "DROP TABLE a;"),
        ("tools/migrate/migrations/seed.sql", "INSERT INTO a VALUES (1);"),
        ("tools/migrate/views.sql", "CREATE VIEW all_of_a AS SELECT id FROM a;"),
        ("warehouse/sqitch.plan", "%project=warehouse\n\nstock 2024-01-01T00:00:00Z a <a@b.c>\n"),
        ("warehouse/deploy/stock.sql", "-- Deploy warehouse:stock to pg\nCREATE TABLE stock (id bigint);"),
        ("warehouse/deploy/old.sql", "-- Deploy warehouse:old to pg\nCREATE TABLE old (id bigint);"),
    ]);
    insta::assert_snapshot!(folder.run(&["init"]), @r"
    exit 0
    --- stdout
    Wrote pgvet.toml.
      app/db/migration: flyway, 2 files
      tools/migrate/migrations: golang-migrate, 3 files (1 up migration)
      warehouse/deploy: sqitch, 2 files (1 up migration)
    `pgvet config` shows their order and transactions.

    No errors in the existing migrations. Next, run `pgvet check`, also in CI.
    ");
    let text = fs::read_to_string(folder.path().join("pgvet.toml")).unwrap();
    let start_after = text.lines().find(|line| line.contains("start-after")).unwrap();
    insta::assert_snapshot!(start_after, @r#"# start-after = ["app/db/migration/V1__users.sql", "tools/migrate/migrations/1_a.up.sql", "warehouse/deploy/stock.sql"]"#);
    insta::assert_snapshot!(folder.run(&["config", "warehouse"]), @r"
    exit 0
    --- stdout
    configuration: pgvet.toml
    PostgreSQL:    14-18 (the default)
    rules:         recommended

    warehouse/deploy
      tool:        sqitch, from the folder and the files around it
      files:       2 files
      order:       warehouse/deploy/stock.sql is the first, warehouse/deploy/stock.sql the last
      transaction: each statement by statement
      not run:     1 file that the tool does not run, checked only with --down: warehouse/deploy/old.sql
    ");
}

#[test]
fn config_names_the_files_whose_order_is_unknown() {
    let folder = folder(&[
        ("db/1_a.sql", "CREATE TABLE a (id bigint);"),
        ("db/2_b.sql", "CREATE TABLE b (id bigint);"),
        ("db/3_c.sql", "-- +goose Up\nCREATE TABLE c (id bigint);"),
        ("db/schema.sql", "CREATE TABLE d (id bigint);"),
        ("db/views.sql", "CREATE VIEW e AS SELECT 1;"),
    ]);
    let said = folder.run(&["config", "db"]);
    let expected = "\
  no order:    2 files without a version in the name: db/schema.sql, db/views.sql
               1 file of another tool than most files: db/3_c.sql
";
    assert!(said.contains(expected), "{said}");
    let output = folder.output(&["config", "db", "--format", "json"], b"", &[]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = serde_json::json!([
        { "reason": "no-version", "files": ["db/schema.sql", "db/views.sql"] },
        { "reason": "other-tool", "files": ["db/3_c.sql"] },
    ]);
    assert_eq!(document["migrations"][0]["unordered"], expected);
}

/// A new migration may be in each of several folders.
#[test]
fn init_proposes_no_newest_migration_where_folders_follow_each_other() {
    let folder = folder(&[
        ("db/migrations/auth/1_users.sql", "CREATE TABLE users (id bigint);"),
        ("db/migrations/auth/2_index.sql", "CREATE INDEX i ON users (id);"),
        ("db/migrations/billing/3_orders.sql", "CREATE TABLE orders (id bigint);"),
    ]);
    insta::assert_snapshot!(folder.run(&["init"]), @r"
    exit 0
    --- stdout
    Wrote pgvet.toml.
      db/migrations: plain SQL files, 3 files
    `pgvet config` shows their order and transactions.
    No migration tool was recognized: set `transaction` in pgvet.toml to how the files are run.

    The existing migrations have 1 error, but have already run. To report only new findings:
      - run `pgvet baseline`, which records them as known, or
      - check only what a branch changes: `pgvet check --since origin/main`.
    ");
    insta::assert_snapshot!(folder.run(&["config"]), @r"
    exit 0
    --- stdout
    configuration: pgvet.toml
    PostgreSQL:    14-18 (the default)
    rules:         recommended

    db/migrations
      tool:        plain SQL files, because no migration tool was recognized
      files:       3 files
      order:       db/migrations/auth/1_users.sql is the first, db/migrations/billing/3_orders.sql the last
                   2 folders, one after the other; if they belong to different databases, list them in [migrations] paths
      transaction: each in a transaction of the tool
                   assumed, because no tool was recognized; if wrong, set `transaction` under [migrations]
    ");
}

/// The same table of two databases is created twice.
#[test]
fn folders_with_the_same_versions_are_two_databases() {
    let folder = folder(&[
        ("db/migrations/users/1_a.sql", "CREATE TABLE a (id bigint, name text);"),
        ("db/migrations/orders/1_a.sql", "CREATE TABLE a (id bigint);"),
        ("db/migrations/orders/2_b.sql", "CREATE TABLE a (id bigint);"),
    ]);
    let said = concise(&folder, &["db"]);
    assert!(said.contains("1 error in 1 of 3 files") && said.contains("orders/2_b.sql:1:14: error"), "{said}");
    let said = concise(&folder, &["db/migrations/users/1_a.sql"]);
    assert!(said.contains("No problems found in 1 file\n"), "{said}");
    let said = concise(&folder, &["db/migrations/orders/2_b.sql"]);
    assert!(said.contains("1 error in 1 of 1 file; 1 earlier migration replayed, not reported"), "{said}");
}

/// Rails has a dump of the schema and migrations in Ruby.
#[test]
fn init_says_what_to_do_without_migrations_in_sql() {
    let folder = folder(&[("db/structure.sql", "CREATE TABLE public.users (id bigint NOT NULL);\n")]);
    insta::assert_snapshot!(folder.run(&["init"]), @r"
    exit 0
    --- stdout
    Wrote pgvet.toml.
    No migrations in SQL were found below this folder.
      - If they are in a folder with another name, name it in [migrations] paths.
      - If the migrations are programs, check the SQL that they send: `pgvet capture -- COMMAND`.
      - A dump of the current schema, such as db/structure.sql, goes into [migrations] schema.
    ");
    let text = fs::read_to_string(folder.path().join("pgvet.toml")).unwrap();
    let named = text.replace("[migrations]\n", "[migrations]\nschema = \"db/structure.sql\"\n");
    fs::write(folder.path().join("pgvet.toml"), named).unwrap();
    let output = folder.output(&["check", "-", "--format", "concise"], b"CREATE INDEX i ON users (id);", &[]);
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.contains("index-without-concurrently] building this index blocks all writes to `users`"),
        "{output}"
    );
}

#[test]
fn init_writes_a_configuration_that_works() {
    let folder = project(&[("queries/get.sql", "SELECT 1;")]);
    insta::assert_snapshot!(folder.run(&["init"]), @r"
    exit 0
    --- stdout
    Wrote pgvet.toml.
      db/migrations: plain SQL files, 2 files
    `pgvet config` shows their order and transactions.
    No migration tool was recognized: set `transaction` in pgvet.toml to how the files are run.

    The existing migrations have 1 error, but have already run. To report only new findings:
      - set start-after to the newest migration in pgvet.toml (the file has a line for it), or
      - run `pgvet baseline`, which records them as known, or
      - check only what a branch changes: `pgvet check --since origin/main`.
    ");
    insta::assert_snapshot!(fs::read_to_string(folder.path().join("pgvet.toml")).unwrap(), @r#"
    # Configuration of pgvet. Every key is optional; paths are relative to this file.

    # The PostgreSQL versions that run these migrations: 16, or "14-18" for several.
    # pg-version = 16

    # "strict" also runs the opt-in rules; `pgvet rules` lists all.
    # preset = "recommended"

    # Lowest severity at which `pgvet check` fails: error, warning, info or never.
    # fail-on = "error"

    # Set this when the tool, the role or the database sets lock_timeout for migrations.
    # lock-timeout = "runner"

    [migrations]
    paths = ["db/migrations"]
    # db/migrations: plain SQL files, because no migration tool was recognized; each in a transaction of the tool.
    # tool = "plain"
    # No tool was recognized. Set how the files are run: "transaction" (each in a transaction of the program that runs
    # it), "autocommit" (statement by statement, as by psql) or "single-string" (each sent as one string).
    # transaction = "transaction"
    # Report only migrations after the newest existing migration.
    # start-after = "2_b.sql"
    # Files that are not migrations.
    # exclude = ["seeds/**"]

    # [rules]
    # not-rerunnable = "off"

    # Facts about tables that migrations cannot show: how large they are, and how much they are used.
    # [tables]
    # orders = { rows = 50_000_000 }
    # "public.settings" = { rows = 200 }

    # [functions]
    # "public.place_order" = { calls-per-hour = 40_000 }

    # [[overrides]]
    # paths = ["legacy/**"]
    # rules = { missing-lock-timeout = "off" }
    "#);
    insta::assert_snapshot!(folder.run(&["config"]), @r"
    exit 0
    --- stdout
    configuration: pgvet.toml
    PostgreSQL:    14-18 (the default)
    rules:         recommended

    db/migrations
      tool:        plain SQL files, because no migration tool was recognized
      files:       2 files
      order:       db/migrations/1_a.sql is the first, db/migrations/2_b.sql the last
      transaction: each in a transaction of the tool
                   assumed, because no tool was recognized; if wrong, set `transaction` under [migrations]
    ");
    insta::assert_snapshot!(folder.run(&["init"]), @r"
    exit 2
    --- stderr
    error: `pgvet.toml` already exists
      help: `pgvet config` shows what is in effect; `pgvet init --print` prints what would be written
    ");
    // What is commented out works as well.
    let text = fs::read_to_string(folder.path().join("pgvet.toml")).unwrap();
    let is_setting =
        |line: &str| line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
    let lines = text.lines().map(|line| line.strip_prefix("# ").filter(|rest| is_setting(rest)).unwrap_or(line));
    let active: Vec<&str> = lines.collect();
    fs::write(folder.path().join("pgvet.toml"), active.join("\n")).unwrap();
    let output = folder.run(&["check"]);
    assert!(output.starts_with("exit 0\n"), "{}\n{output}", active.join("\n"));
}

#[test]
fn a_baseline_stays_what_it_is_when_migrations_are_added() {
    let alter = |column: &str| format!("ALTER TABLE orders ADD COLUMN {column} int;\n");
    let (first, second) = (alter("a"), alter("b"));
    let folder = project(&[("db/migrations/3_c.sql", &first), ("db/migrations/4_d.sql", &second)]);
    folder.run(&["baseline", "--level", "info"]);
    let written = fs::read_to_string(folder.path().join("pgvet-baseline.json")).unwrap();
    for (name, text) in [("5_e.sql", alter("e")), ("6_f.sql", alter("f")), ("7_g.sql", alter("g"))] {
        fs::write(folder.path().join("db/migrations").join(name), text).unwrap();
        let said = concise(&folder, &["--level", "info"]);
        assert!(said.contains(&format!("db/migrations/{name}:1:13: warning[missing-lock-timeout]")), "{said}");
        for known in ["1_a.sql:", "2_b.sql:", "3_c.sql:", "4_d.sql:", "fixed since"] {
            assert!(!said.contains(known), "{known}: {said}");
        }
    }
    // Without the new ones, the same baseline is written again.
    for name in ["5_e.sql", "6_f.sql", "7_g.sql"] {
        fs::remove_file(folder.path().join("db/migrations").join(name)).unwrap();
    }
    folder.run(&["baseline", "--level", "info"]);
    assert_eq!(fs::read_to_string(folder.path().join("pgvet-baseline.json")).unwrap(), written);
}

#[test]
fn numbered_files_in_any_folder_are_a_history() {
    let drop = "SET lock_timeout = '2s';\nALTER TABLE orders DROP COLUMN note;\n";
    for place in ["sql", "db/sql", "schema", "scripts"] {
        let files = [("001_a.sql", TABLE), ("002_b.sql", drop), ("003_c.sql", drop)]
            .map(|(name, text)| (format!("{place}/{name}"), text));
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let folder = folder(&files);
        let one = concise(&folder, &[&format!("{place}/003_c.sql")]);
        assert!(one.contains("error[statement-will-fail]") && one.contains("2 earlier migrations replayed"), "{one}");
        let said = folder.run(&["init"]);
        assert!(said.contains(&format!("  {place}: plain SQL files, 3 files\n")), "{said}");
        let written = fs::read_to_string(folder.path().join("pgvet.toml")).unwrap();
        assert!(written.contains(&format!("paths = [\"{place}\"]\n")), "{written}");
        assert_eq!(concise(&folder, &[&format!("{place}/003_c.sql")]), one);
    }
}

#[test]
fn a_program_is_not_read_as_sql() {
    let folder = folder(&[("manage.py", ""), ("shop/migrations/0001_initial.py", "import x  # y\n")]);
    let said = folder.run(&["check", "shop/migrations/0001_initial.py"]);
    assert!(said.starts_with("exit 2") && said.contains("is a program in Python, not SQL"), "{said}");
    assert!(said.contains("`pgvet capture -- COMMAND`"), "folders above count within a repository: {said}");
    repository::init(&folder);
    let said = folder.run(&["check", "shop/migrations/0001_initial.py"]);
    assert!(said.contains("`pgvet capture -- python manage.py migrate`"), "{said}");
}

#[test]
fn paths_and_overrides_that_match_nothing_are_reported() {
    let folder = project(&[("pgvet.toml", "[migrations]\npaths = [\"db/migration\"]\n")]);
    let said = folder.run(&["check"]);
    assert!(
        said.contains("`db/migration` does not exist\n  help: `[migrations] paths` in pgvet.toml names it"),
        "{said}"
    );
    let text = "[[overrides]]\npaths = [\"legacy/**\"]\nrules = { drop-table = \"off\" }\n";
    fs::write(folder.path().join("pgvet.toml"), text).unwrap();
    let said = folder.run(&["config"]);
    assert!(said.contains("overrides:     `legacy/**` matches none of the files\n"), "{said}");
}

#[test]
fn what_configuration_hides_is_said() {
    let config = "[migrations]\npaths = [\"m\"]\nstart-after = \"2_b.sql\"\n[rules]\ndrop-table = \"off\"\n\
                  [tables.t]\nignore = true\n[placeholders]\nx = \"--\"\n\
                  [[overrides]]\npaths = [\"m/**\"]\n[overrides.rules]\ndrop-column = \"off\"\n";
    let folder = Folder::new(&[
        ("pgvet.toml", config.as_bytes()),
        ("m/1_a.sql", b"CREATE TABLE t (a int);\n"),
        ("m/2_b.sql", b"DROP TABLE u;\n"),
        ("m/3_c.sql", b"DROP TABLE t;\n"),
        ("other/1_a.sql", b"DROP TABLE v;\n"),
    ]);
    let said = folder.run(&["check"]);
    let hides = "No problems found in 1 file; 2 earlier migrations replayed, not reported; pgvet.toml affects this \
                 result: 2 migrations not reported because of `start-after`, 1 rule off, 1 table ignored, 1 override, 1 \
                 placeholder replaced (see pgvet config); only `paths` of pgvet.toml searched";
    assert!(said.contains(hides), "{said}");
    let said = folder.run(&["check", "--no-config", "--start-after", "2_b.sql", "m"]);
    assert!(!said.contains("pgvet.toml affects"), "{said}");
}

/// Flyway puts its default schema first in `search_path`.
#[test]
fn unqualified_names_are_in_the_default_schema_of_flyway() {
    let folder = Folder::new(&[
        ("m/V1__a.sql", b"CREATE TABLE t (id bigint PRIMARY KEY);\n"),
        ("m/V2__b.sql", b"CREATE TABLE darts.t (id int);\n"),
    ]);
    let refused = "relation \"darts.t\" already exists";
    let check = || folder.run(&["check", "--format", "concise", "m"]);
    assert!(!check().contains(refused));
    for (name, text, expected) in [
        ("flyway.toml", "[flyway]\ndefaultSchema = \"darts\"\n", true),
        ("flyway.conf", "flyway.schemas=darts,other\n", true),
        ("application.properties", "spring.flyway.default-schema=darts\n", true),
        ("application.yml", "spring:\n  flyway:\n    schemas: darts\n", true),
        ("application.yml", "spring:\n  flyway:\n    schemas: ${SCHEMA:darts}\n", false),
        ("application.yml", "spring:\n  flyway:\n    schemas: other\n", false),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        assert_eq!(check().contains(refused), expected, "{name}: {text}");
        std::fs::remove_file(&path).unwrap();
    }
}
