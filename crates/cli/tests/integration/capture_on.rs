//! `pgvet capture` on clones of a database, and with a trace.

use crate::support::capturing::{self, DATABASE, FILES, FINDING, GUESS, TABLE, VALUE, assert_has, row};
use crate::support::runs::folder;
use crate::support::{Folder, Transcript};
use pgvet_trace::server::Server;
use pgvet_trace::server::testing::{server, wait_until};

/// Captures what the client sends to the database whose name production has.
fn capture(folder: &Folder, options: &[&str], script: &[&str], env: &[(&str, &str)]) -> Transcript {
    capturing::capture(folder, options, script, &[&[(DATABASE, "shop")], env].concat())
}

const SECOND: [&str; 3] = [
    "CREATE INDEX users_email ON users (email)",
    "prepared:INSERT INTO users (email) VALUES ($1)",
    "INSERT INTO knex_migrations (name, batch) VALUES ('2_email.js', 2)",
];

/// A database with the first migration, whose owner needs a password.
fn shop(major: u8) -> Option<(Server, String)> {
    let server = server(major)?;
    server.query("postgres", "CREATE ROLE ann LOGIN CREATEDB PASSWORD 'geheim'").unwrap();
    server.query("postgres", "CREATE DATABASE shop OWNER ann").unwrap();
    for sql in [
        "CREATE TABLE users (id int, email text)",
        TABLE,
        &row("1_users.js"),
        "ALTER TABLE users OWNER TO ann",
        "ALTER TABLE knex_migrations OWNER TO ann",
    ] {
        server.query("shop", sql).unwrap();
    }
    std::fs::write(server.data().join("pg_hba.conf"), "local all ann scram-sha-256\nlocal all all trust\n").unwrap();
    server.query("postgres", "SELECT pg_reload_conf()").unwrap();
    let address = format!("host={} user=ann dbname=shop", server.socket().display());
    Some((server, address))
}

#[test]
fn a_command_runs_on_a_copy_without_the_password_of_the_database() {
    for major in [14, 18] {
        let Some(folder) = folder(&FILES) else { return };
        let Some((server, address)) = shop(major) else { continue };
        let refused = ["--on", "template", "--database", &address];
        wait_until(|| capture(&folder, &refused, &SECOND, &[]).contains("password missing"));
        let said = capture(&folder, &refused, &SECOND, &[("PGPASSWORD", "geheim")]);
        assert!(said.starts_with("exit 2\n"), "{said}");
        assert_has(&said, &["`ann` can drop and change other databases", "--allow-server-changes"]);
        let options = [&refused[..], &["--allow-server-changes"]].concat();
        let env = [("PGPASSWORD", "geheim"), (GUESS, "1")];
        let said = capture(&folder, &options, &SECOND, &env);
        assert!(said.starts_with("exit 1\n"), "{major}: {said}");
        assert_has(&said, &[FINDING, "captured 1 migration of knex with 2 statements"]);
        let left = server.query("shop", "SELECT count(*) FROM knex_migrations").unwrap();
        assert_eq!(left, [[Some("1".to_owned())]], "{major}: the database is as before");
        let clones = "SELECT datname FROM pg_database WHERE datname LIKE 'pgvet%'";
        assert!(server.query("postgres", clones).unwrap().is_empty(), "{major}: no clone is left");
        // A user who can do more than change a database.
        let address = format!("host={} user=postgres dbname=shop", server.socket().display());
        let said = capture(&folder, &["--on", "template", "--database", &address], &SECOND, &[]);
        assert!(said.starts_with("exit 2\n"), "{said}");
        assert_has(&said, &["`postgres` can change more than one database", "--allow-server-changes"]);
        // The database itself, only if it is said to be a clone.
        let url = ["--on", "url", "--database", &address];
        assert_has(&capture(&folder, &url, &SECOND, &[]), &["add --this-is-a-clone"]);
        let url = [&url[..], &["--this-is-a-clone", "--allow-server-changes"]].concat();
        assert_has(&capture(&folder, &url, &SECOND, &[]), &[FINDING]);
        let left = server.query("shop", "SELECT count(*) FROM knex_migrations").unwrap();
        assert_eq!(left, [[Some("2".to_owned())]], "{major}: the clone has the migration");
        let traced = [&url[..], &["--trace"]].concat();
        assert_has(&capture(&folder, &traced, &SECOND, &[]), &["--on url does not have", "use --on template"]);
    }
}

#[test]
fn captured_statements_are_traced_with_their_values_and_nothing_keeps_these() {
    let Some(folder) = folder(&FILES) else { return };
    let first = [TABLE, "CREATE TABLE users (id serial, email text NOT NULL)", &row("1_users.js")];
    let script = [&first[..], &SECOND].concat();
    let options = ["--trace", "--save", "captured", "--record", "all.jsonl"];
    let said = capture(&folder, &options, &script, &[]);
    assert!(said.starts_with("exit 1\n"), "{said}");
    assert_has(
        &said,
        &[FINDING, "migrations/2_email.js  ", "SHARE", "INSERT INTO users (email) VALUES ('secret'::text)"],
    );
    for file in ["captured/2_email.sql", "all.jsonl"] {
        let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(text.contains("INSERT INTO users") && !text.contains(VALUE), "{file}: {text}");
    }
    let program = ["capture", "--trace", "--format", "json", "--", "true"];
    assert_has(&folder.run(&program), &["with --trace, the report of the trace also goes to standard output"]);
}
