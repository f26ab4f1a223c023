//! Commands of `pgvet capture` that fail, connect elsewhere or start other programs.

use crate::support::capturing::{FILES, FINDING, SCRIPT, TABLE, assert_has, capture, command, row};
use crate::support::runs::folder;
use crate::support::{Folder, Transcript, transcript};
use pgvet_trace::server::testing::server;

/// Captures a shell script, in which `$@` is the client.
fn capture_shell(folder: &Folder, shell: &str, env: &[(&str, &str)]) -> Transcript {
    let client = command();
    let mut args = vec!["capture", "--format", "concise", "--", "sh", "-c", shell, "sh"];
    args.extend(client.iter().map(String::as_str));
    transcript(&folder.output(&args, b"", env))
}

#[test]
fn a_command_that_fails_half_way_is_checked_as_far_as_it_came() {
    let Some(folder) = folder(&FILES) else { return };
    let script = [
        TABLE,
        "CREATE TABLE users (id int, email text)",
        &row("1_users.js"),
        "CREATE INDEX users_email ON users (email)",
        "CREATE INDEX users_name ON users (name)",
    ];
    let said = capture(&folder, &["--save", "captured"], &script, &[]);
    // The status of a test program that fails.
    assert!(said.starts_with("exit 101\n"), "{said}");
    assert_has(
        &said,
        &[
            "failed (exit status: 101)",
            "the statements before the failure are checked",
            "the last migration did not finish: 2 statements",
            FINDING,
            "saved 1 migration in `captured`",
        ],
    );
    assert!(!folder.path().join("captured/2_email.sql").exists());
}

#[test]
fn a_command_that_is_killed_is_checked_as_far_as_it_came() {
    let Some(folder) = folder(&FILES) else { return };
    let script = [TABLE, "CREATE TABLE users (id int, email text)", &row("1_users.js")].join("\n");
    let said = capture_shell(&folder, "\"$@\" >/dev/null && kill -KILL $$", &[(SCRIPT, &script)]);
    // As a shell reports it.
    assert!(said.starts_with("exit 137\n"), "{said}");
    assert_has(&said, &["failed (signal: 9 (SIGKILL))", "captured 1 migration of knex"]);
}

#[test]
fn a_command_that_never_connects_is_reported() {
    let Some(folder) = folder(&FILES) else { return };
    let said = folder.run(&["capture", "--", "true"]);
    assert!(said.starts_with("exit 2\n"), "{said}");
    assert_has(
        &said,
        &["`true` never connected to 127.0.0.1:", "its settings name another database", "--env DB_HOST={host}"],
    );
    let said = capture(&folder, &[], &["SELECT 1"], &[]);
    assert!(said.starts_with("exit 2\n"), "{said}");
    assert_has(
        &said,
        &["and ran no migration, so nothing was captured", "applies all migrations to an empty database"],
    );
    let said = folder.run(&["capture", "--", "no-such-program"]);
    assert!(said.starts_with("exit 2\n"), "{said}");
    assert_has(&said, &["cannot run `no-such-program`", "write the command as you run it in this folder"]);
}

#[test]
fn a_command_that_ignores_the_environment_and_fails_is_reported() {
    let Some(folder) = folder(&FILES) else { return };
    // Its own settings name a server that is not there.
    let shell = "DATABASE_URL=postgres://127.0.0.1:1/shop PGHOST=127.0.0.1 PGPORT=1 \"$@\" >/dev/null 2>&1";
    let said = capture_shell(&folder, shell, &[(SCRIPT, "SELECT 1")]);
    assert!(said.starts_with("exit 101\n"), "{said}");
    assert_has(
        &said,
        &[
            "failed and never connected to 127.0.0.1:",
            "so nothing was captured",
            "if its settings name another database, it may have migrated that database",
        ],
    );
    assert!(!said.contains("the statements before the failure are checked"), "{said}");
}

#[test]
fn a_command_that_migrates_another_database_is_reported() {
    let Some(folder) = folder(&FILES) else { return };
    let Some(other) = server(18) else { return };
    let host = other.socket().display().to_string().replace('/', "%2F");
    let address = format!("DATABASE_URL=postgres://postgres@{host}/postgres");
    let said = capture(&folder, &["--env", &address], &["CREATE TABLE elsewhere (a int)"], &[]);
    assert!(said.starts_with("exit 2\n"), "{said}");
    assert_has(
        &said,
        &["never connected to 127.0.0.1:", "if its settings name another database, it may have migrated that database"],
    );
    other.query("postgres", "SELECT FROM elsewhere").unwrap();
    // It also reads the private server.
    let shell = format!("\"$@\" >/dev/null && {address} {SCRIPT}='DROP TABLE elsewhere' \"$@\" >/dev/null");
    let said = capture_shell(&folder, &shell, &[(SCRIPT, "SELECT 1")]);
    assert!(said.starts_with("exit 2\n"), "{said}");
    assert_has(
        &said,
        &[
            "connected to 127.0.0.1:",
            "and ran no migration, so nothing was captured",
            "in another database that its settings",
        ],
    );
    other.query("postgres", "SELECT FROM elsewhere").unwrap_err();
}

#[test]
fn variables_that_lead_elsewhere_do_not_reach_the_command() {
    let Some(folder) = folder(&FILES) else { return };
    let script = "[ -z \"$PGSERVICE$PGSSLNEGOTIATION\" ] && [ \"$PGSSLMODE\" = disable ] && exit 7";
    let env = [("PGSERVICE", "production"), ("PGSSLNEGOTIATION", "direct"), ("PGSSLMODE", "require")];
    let said = transcript(&folder.output(&["capture", "--", "sh", "-c", script], b"", &env));
    assert!(said.starts_with("exit 7\n"), "{said}");
}

#[test]
fn an_extension_that_the_server_lacks_is_named() {
    let Some(folder) = folder(&FILES) else { return };
    let said = capture(&folder, &[], &[TABLE, "CREATE EXTENSION no_such_extension"], &[]);
    assert!(said.starts_with("exit 101\n"), "{said}");
    assert_has(&said, &["the private server lacks an extension", "no_such_extension", "--pg-bin"]);
}

#[test]
fn a_program_that_outlives_the_command_is_reported() {
    let Some(folder) = folder(&FILES) else { return };
    let script = [
        // The command ends after the program in the background has connected.
        "DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep') LOOP \
         PERFORM pg_stat_clear_snapshot(); END LOOP; END $$",
        TABLE,
        "CREATE TABLE users (id int, email text)",
        &row("1_users.js"),
        "CREATE INDEX users_email ON users (email)",
        &row("2_email.js"),
    ]
    .join("\n");
    let shell = format!("{SCRIPT}='SELECT pg_sleep(600)' \"$@\" >/dev/null 2>&1 & \"$@\" >/dev/null");
    let said = capture_shell(&folder, &shell, &[(SCRIPT, &script)]);
    assert!(said.starts_with("exit 1\n"), "{said}");
    assert_has(
        &said,
        &[
            "1 connection was still open when the command ended",
            "statements that a program in the background sends later are not captured",
            "captured 2 migrations of knex",
            "1 not run or not answered",
            FINDING,
        ],
    );
}

#[test]
fn migrations_of_two_programs_at_once_are_kept_apart() {
    let Some(folder) = folder(&[FILES[0], FILES[1], ("migrations/3_orders.js", "orders\n")]) else { return };
    let first = [TABLE, "CREATE TABLE users (id int, email text)", &row("1_users.js")];
    // The second program has sent its statements when the first one commits, and commits after it.
    let one = [
        "SET statement_timeout = '60s'",
        "BEGIN",
        "CREATE INDEX users_email ON users (email)",
        "DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory') LOOP END LOOP; END $$",
        &row("2_email.js"),
        "COMMIT",
    ];
    let other = [
        "SET statement_timeout = '60s'",
        "BEGIN",
        "CREATE TABLE orders (id int)",
        "SELECT pg_advisory_lock(1)",
        "DO $$ BEGIN WHILE (SELECT count(*) FROM knex_migrations) < 2 LOOP END LOOP; END $$",
        &row("3_orders.js"),
        "COMMIT",
    ];
    let shell =
        format!("\"$@\" >/dev/null && {{ {SCRIPT}=\"$ONE\" \"$@\" & {SCRIPT}=\"$OTHER\" \"$@\" & wait; }} >/dev/null");
    let scripts = [first.join("\n"), one.join("\n"), other.join("\n")];
    let env = [(SCRIPT, &*scripts[0]), ("ONE", &*scripts[1]), ("OTHER", &*scripts[2])];
    let said = capture_shell(&folder, &shell, &env);
    assert!(said.starts_with("exit 1\n"), "{said}");
    assert_has(&said, &["captured 3 migrations of knex", FINDING]);
    assert!(!said.contains("3_orders.js:"), "{said}");
}
