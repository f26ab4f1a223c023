//! `pgvet capture`, as a user runs it.

use crate::support::capturing;
use crate::support::capturing::{FILES, FINDING, SCRIPT, TABLE, assert_has, command, row};
use crate::support::repository::init;
use crate::support::runs::folder;
use crate::support::{Folder, Transcript};
use std::fs;

fn capture(folder: &Folder, options: &[&str], script: &[&str]) -> Transcript {
    capturing::capture(folder, options, script, &[])
}

#[test]
fn migrations_are_captured_saved_and_checked_again() {
    let Some(folder) = folder(&FILES) else { return };
    let (one, two) = (row("1_users.js"), row("2_email.js"));
    let script = [
        "SET lock_timeout = '3s'",
        TABLE,
        "BEGIN",
        "CREATE TABLE users (id int, email text)",
        "prepared:INSERT INTO users (email) VALUES ($1)",
        "prepared:INSERT INTO users (email) VALUES ($1)",
        &one,
        "COMMIT",
        "CREATE INDEX users_email ON users (email)",
        &two,
        "SELECT 'after' FROM users",
    ];
    let said = capture(&folder, &["--save", "captured"], &script);
    assert!(said.starts_with("exit 1\n"), "{said}");
    assert_has(
        &said,
        &[
            FINDING,
            "captured 2 migrations of knex with 4 statements",
            "not checked: 1 statement after the last migration, beginning with SELECT 'after' FROM users",
            "saved 2 migrations in `captured`",
        ],
    );
    let text = fs::read_to_string(folder.path().join("captured/1_users.sql")).unwrap();
    assert_has(&text, &["-- transaction: one", "SET lock_timeout = '3s';", "-- sent 2 times", "$1 text (6 bytes)"]);
    let (sql, tool) = text.split_once("-- tool: ").unwrap();
    assert!(!text.contains("secret") && !sql.contains("knex_migrations") && tool.contains("knex_migrations"), "{text}");
    assert_has(&folder.run(&["check", "captured", "--format", "concise"]), &[FINDING]);
    // Without a folder it is found as well.
    assert_has(&folder.run(&["check", "--format", "concise"]), &[FINDING]);
    fs::write(folder.path().join("migrations/1_users.js"), "exports.up = () => {};").unwrap();
    let stale = folder.run(&["check", "captured"]);
    assert!(stale.starts_with("exit 2\n"), "{stale}");
    assert_has(&stale, &["captured/1_users.sql", "`migrations/1_users.js`, which has changed since it was captured"]);
    let said = capture(&folder, &["--save", "captured", "--values"], &script);
    assert_has(&said, &["all migrations run again, because `1_users.sql`"]);
    assert_has(&said, &[FINDING]);
    assert_has(&fs::read_to_string(folder.path().join("captured/1_users.sql")).unwrap(), &["'secret'"]);
    fs::write(folder.path().join("captured/own.sql"), "SELECT 1;").unwrap();
    let said = capture(&folder, &["--save", "captured", "--from-beginning"], &script);
    assert!(said.starts_with("exit 2\n"), "{said}");
    assert_has(&said, &["`captured` contains `own.sql`, which no capture has written", "name a new folder"]);
}

/// The statements of a run from the beginning that leaves the tables of knex.
fn first_run() -> Vec<String> {
    [TABLE, "CREATE TABLE users (id int, email text)", "INSERT INTO users (email) VALUES ('a')", &row("1_users.js")]
        .map(str::to_owned)
        .to_vec()
}

fn save(folder: &Folder, script: &[String], options: &[&str]) -> Transcript {
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    capture(folder, &[&["--save", "captured"], options].concat(), &script)
}

#[test]
fn only_what_is_new_runs_after_a_saved_capture() {
    let Some(folder) = folder(&FILES[..1]) else { return };
    assert_has(&save(&folder, &first_run(), &[]), &["captured 1 migration of knex", "saved 1 migration"]);
    let text = fs::read_to_string(folder.path().join("captured/1_users.sql")).unwrap();
    let tool = "\n\n-- tool: CREATE TABLE knex_migrations (id serial, name text, batch int)\n\
                -- tool: INSERT INTO knex_migrations (name, batch) VALUES ('1_users.js', 1)\n";
    assert!(text.ends_with(tool), "{text}");
    fs::create_dir_all(folder.path().join("migrations")).unwrap();
    fs::write(folder.path().join(FILES[1].0), FILES[1].1).unwrap();
    // The table of the tool and its row are there, as are the tables of the migration, and no rows.
    let second = [
        "DO $$ BEGIN ASSERT (SELECT array_agg(name) FROM knex_migrations) = '{1_users.js}'; END $$",
        "DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM users); END $$",
        "CREATE INDEX users_email ON users (email)",
        &row("2_email.js"),
    ]
    .map(str::to_owned);
    let said = save(&folder, &second, &[]);
    assert!(said.starts_with("exit 1\n"), "{said}");
    let applied = "applying 1 saved migration, without their rows (1 statement omitted)";
    assert_has(&said, &[applied, "captured 1 migration of knex with 3 statements", "saved 2 migrations", FINDING]);
    assert_has(&folder.run(&["check", "captured", "--format", "concise"]), &[FINDING]);
    // Nothing is new: the saved migrations are checked.
    let said = save(&folder, &["SELECT name FROM knex_migrations".to_owned()], &[]);
    assert_has(&said, &["applying 2 saved migrations", "saved 2 migrations", FINDING]);
    // The last one has changed, and runs again.
    fs::write(folder.path().join(FILES[1].0), "exports.up = (knex) => knex.raw('CREATE INDEX ON users (id)');")
        .unwrap();
    let again = ["CREATE INDEX ON users (id)".to_owned(), row("2_email.js")];
    let said = save(&folder, &again, &[]);
    assert_has(&said, &["all migrations after the first 1 run again, because `2_email.sql`", "saved 2 migrations"]);
    // Everything runs if that is asked for.
    let said = save(&folder, &first_run(), &["--from-beginning"]);
    assert!(!said.contains("applying"), "{said}");
    assert_has(&said, &["captured 1 migration of knex", "saved 1 migration"]);
}

#[test]
fn a_saved_capture_that_cannot_be_applied_is_run_again() {
    let Some(folder) = folder(&FILES) else { return };
    save(&folder, &first_run(), &[]);
    let path = folder.path().join("captured/1_users.sql");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("CREATE TABLE users (id int, email text);", "CREATE TABLE users (id no_such_type);"))
        .unwrap();
    let said = save(&folder, &first_run(), &[]);
    assert_has(
        &said,
        &[
            "the saved migrations cannot be applied, so the command ran all of them: captured/1_users.sql:",
            "type \"no_such_type\" does not exist",
            "captured 1 migration of knex",
        ],
    );
    assert!(fs::read_to_string(&path).unwrap().contains("email text"));
    // A file without the statements of the tool.
    fs::write(&path, text.split("\n-- tool").next().unwrap()).unwrap();
    let said = save(&folder, &first_run(), &[]);
    assert_has(
        &said,
        &["all migrations run again, because `1_users.sql` does not say how the migration tool recorded it"],
    );
}

#[test]
fn special_files_are_not_waited_for() {
    let Some(folder) = folder(&FILES) else { return };
    let pipe = |path: &str| {
        let path = folder.path().join(path);
        let _ = fs::remove_file(&path);
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let text = |path: &str| fs::read(folder.path().join(path)).unwrap();
    save(&folder, &first_run(), &[]);
    let saved = text("captured/1_users.sql");
    pipe("captured/1_users.sql");
    let said = save(&folder, &first_run(), &[]);
    assert!(said.starts_with("exit 2\n"), "{said}");
    assert_has(
        &said,
        &[
            "all migrations run again, because `1_users.sql` cannot be read: it is not a regular file",
            "which no capture has written",
        ],
    );
    fs::remove_file(folder.path().join("captured/1_users.sql")).unwrap();
    fs::write(folder.path().join("captured/1_users.sql"), saved).unwrap();
    pipe("migrations/1_users.js");
    let said = save(&folder, &first_run(), &[]);
    assert_has(&said, &["was captured from `migrations/1_users.js`, which cannot be read: it is not a regular file"]);
    pipe("captured/pgvet-capture.json");
    let said = save(&folder, &first_run(), &[]);
    assert_has(&said, &["`captured` contains `", "which no capture has written"]);
    pipe("schema.sql");
    let config = "[migrations]\nschema = \"schema.sql\"\n";
    fs::write(folder.path().join("pgvet.toml"), config).unwrap();
    let said = capture(&folder, &[], &["SELECT 1"]);
    assert!(said.starts_with("exit 2\n"), "{said}");
    assert_has(&said, &["cannot read the schema in `schema.sql`: it is not a regular file"]);
}

#[test]
fn statements_without_a_source_are_reported_under_a_name() {
    let Some(folder) = folder(&[]) else { return };
    let script = [
        TABLE,
        "CREATE TABLE users (id int)",
        &row("1.js"),
        "CREATE INDEX users_id ON users (id)",
        "CREATE INDEX users_no ON users (no)",
    ];
    let said = capture(&folder, &[], &script);
    assert_has(&said, &["\nunfinished.sql:", "error[index-without-concurrently]"]);
    assert_has(&said, &["nothing is reported about 1 migration without a file in this folder, such as 1.js"]);
}

#[test]
fn since_reports_only_what_is_new() {
    let Some(folder) = folder(&FILES) else { return };
    init(&folder);
    let migrations = [
        ("CREATE INDEX users_email ON users (email)", "2_email.js"),
        ("CREATE INDEX users_both ON users (id, email)", "3_both.js"),
    ];
    let mut script = first_run();
    script.extend(migrations.iter().flat_map(|(sql, name)| [(*sql).to_owned(), row(name)]));
    fs::write(folder.path().join("migrations/3_both.js"), "// an index users_both\n").unwrap();
    let lines: Vec<&str> = script.iter().map(String::as_str).collect();
    let said = capture(&folder, &["--since", "HEAD"], &lines);
    assert_has(&said, &["migrations/3_both.js:1:1: error[index-without-concurrently]"]);
    assert!(!said.contains("2_email.js"), "{said}");
    fs::remove_file(folder.path().join("migrations/3_both.js")).unwrap();
    let said = capture(&folder, &["--since", "HEAD"], &lines[..6]);
    assert!(said.starts_with("exit 0\n"), "{said}");
    assert_has(&said, &["no migration has changed since HEAD, so nothing is reported"]);
    let said = capture(&folder, &["--since", "no-such"], &lines);
    assert!(said.starts_with("exit 2\n"), "{said}");
    assert_has(&said, &["has no revision `no-such`"]);
    assert!(!said.contains("captured"), "{said}");
}

#[test]
fn a_capture_starts_from_a_dump() {
    let dump = "CREATE TABLE users (id int, email text);\nCREATE TABLE knex_migrations (name text, batch int);\n\
                COPY knex_migrations (name, batch) FROM stdin;\n1_users.js\t1\n\\.\n";
    let Some(folder) = folder(&[FILES[1], ("schema.sql", dump), ("broken.sql", "CREATE TABLE a (b no_such_type);")])
    else {
        return;
    };
    let script = [
        "DO $$ BEGIN ASSERT (SELECT name FROM knex_migrations) = '1_users.js'; END $$",
        "CREATE INDEX users_email ON users (email)",
        &row("2_email.js"),
    ];
    let said = capture(&folder, &["--schema", "schema.sql"], &script);
    assert_has(&said, &[FINDING, "captured 1 migration of knex"]);
    let said = capture(&folder, &["--schema", "broken.sql"], &script);
    assert!(said.starts_with("exit 2\n"), "{said}");
    assert_has(&said, &["the schema cannot be restored: broken.sql:1:1", "no_such_type"]);
    let said = capture(&folder, &["--schema", "missing.sql"], &script);
    assert_has(&said, &["cannot read the schema in `missing.sql`"]);
}

#[test]
fn a_configured_command_is_printed_and_run_by_capture_alone() {
    let Some(folder) = folder(&FILES) else { return };
    let words = command().iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
    let script = [TABLE, "CREATE TABLE users (id int, email text)", &row("1_users.js")].join("\\n");
    let config = format!("[capture]\ncommand = [{words}]\nenv = {{ {SCRIPT} = \"{script}\" }}\nsave = \"captured\"\n");
    fs::write(folder.path().join("pgvet.toml"), &config).unwrap();
    let said = folder.run(&["capture", "--quiet"]);
    assert_has(&said, &["note: running `", "the command of pgvet.toml"]);
    assert!(folder.path().join("captured/1_users.sql").is_file(), "{said}");
    // The words of the user come first, and no variable of the configuration comes with them.
    let said = folder.run(&["capture", "--", "true"]);
    assert_has(&said, &["`true` never connected"]);
    assert!(!said.contains("running"), "{said}");
    let said = folder.run(&["capture", "--", "sh", "-c", &format!("[ -z \"${SCRIPT}\" ] && exit 7")]);
    assert!(said.starts_with("exit 7\n"), "{said}");
    let touch = "[capture]\ncommand = [\"touch\", \"ran\"]\n";
    fs::write(folder.path().join("pgvet.toml"), touch).unwrap();
    for command in ["check", "fix", "config", "effects", "schema", "trace", "init"] {
        folder.run(&[command]);
        assert!(!folder.path().join("ran").exists(), "{command}");
    }
    folder.run(&["capture"]);
    assert!(folder.path().join("ran").exists());
    for (config, message) in [
        ("[capture]\ncommand = []\n", "this command has no program"),
        ("[capture]\ntable = \"applied\"\n", "`[capture]` needs both `table` and `column`, or neither"),
        ("[capture]\ncolumn = \"applied\"\n", "`[capture]` needs both `table` and `column`, or neither"),
        ("[capture]\nsave = \"../elsewhere\"\n", "which is outside"),
        ("", "there is no command to run"),
    ] {
        fs::write(folder.path().join("pgvet.toml"), config).unwrap();
        let said = folder.run(&["capture"]);
        assert!(said.starts_with("exit 2\n"), "{said}");
        assert_has(&said, &[message]);
    }
}

#[test]
fn a_table_that_pgvet_does_not_know_can_be_named() {
    let Some(folder) = folder(&FILES) else { return };
    let script = [
        "CREATE TABLE applied (file text)",
        "CREATE TABLE users (id int, email text)",
        "INSERT INTO applied (file) VALUES ('1_users.js')",
        "CREATE INDEX users_email ON users (email)",
        "INSERT INTO applied (file) VALUES ('2_email.js')",
    ];
    let said = capture(&folder, &[], &script);
    assert_has(
        &said,
        &[
            "the command added no row to a table of applied migrations that pgvet knows",
            "`--table migrations --column name`",
        ],
    );
    let said = capture(&folder, &["--table", "applied", "--column", "file"], &script);
    assert_has(&said, &["captured 2 migrations", FINDING]);
}

#[test]
fn text_from_the_wire_is_inert() {
    let Some(folder) = folder(&FILES) else { return };
    let script = [
        TABLE,
        "CREATE TABLE \"users\u{1b}[2J\" (id int)",
        "INSERT INTO knex_migrations (name, batch) VALUES (E'../../x\\x1b[2J\\n; DROP TABLE users; --', 1)",
        "CREATE INDEX i ON \"users\u{1b}[2J\" (id)",
        "SELECT '\u{1b}[2J' FROM \"users\u{1b}[2J\"; SELECT \"\u{1b}[2J\"",
    ];
    let said = capture(&folder, &["--save", "captured", "--format", "full"], &script);
    assert!(!said.contains("\u{1b}[2J"), "{said:?}");
    let names: Vec<String> = fs::read_dir(folder.path().join("captured"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().all(|name| !name.contains(['/', '\u{1b}', '\n'])), "{names:?}");
    assert_eq!(names.len(), 2, "{names:?}");
}

/// A list makes no migration disappear: those that no capture wrote are checked, those that it omits are errors, and those
/// that look like migrations of a package are named.
#[test]
fn a_list_of_captured_migrations_hides_none() {
    let title =
        "-- SQL that a migration sent, written by pgvet capture. Do not edit it: capture the migration again.\n";
    let migration = "-- name: 2\n-- transaction: one\n\nDROP TABLE users;\n";
    let titled = format!("{title}{migration}");
    let (table, listed) = (format!("{title}-- name: 1\n\nCREATE TABLE users (id int);\n"), "\"1.sql\", \"2.sql\"");
    for (text, listed, exit, parts) in [
        (
            migration,
            listed,
            "exit 2\n",
            &[
                "m/2.sql:4:12: warning[drop-table]",
                "`m/2.sql` is listed in `pgvet-capture.json`, but pgvet capture did not",
            ][..],
        ),
        (
            &titled,
            "\"1.sql\"",
            "exit 2\n",
            &["`m/2.sql` is not listed in `pgvet-capture.json`, which is in the same folder"],
        ),
        (
            &titled,
            listed,
            "exit 0\n",
            &["`m/1.sql` and 1 other file were captured from migrations outside this project"],
        ),
    ] {
        let manifest = format!(r#"{{"version": 1, "tool": "knex", "root": "..", "files": [{listed}]}}"#);
        let files = [("m/1.sql", &*table), ("m/2.sql", text), ("m/pgvet-capture.json", &manifest)];
        let folder = Folder::new(&files.map(|(path, text)| (path, text.as_bytes())));
        let said = folder.run(&["check", "m", "--format", "concise"]);
        assert!(said.starts_with(exit), "{said}");
        assert_has(&said, parts);
    }
}
