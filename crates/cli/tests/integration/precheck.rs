//! `pgvet precheck` on a real server.

use crate::support::Folder;
use pgvet_trace::server::testing::{beside_open_transaction, server};

const HISTORY: &str = "CREATE TABLE users (id bigint PRIMARY KEY, email text, age int, note text);
CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint);
";

const PENDING: &str = "ALTER TABLE users ADD COLUMN slot int;
UPDATE orders SET user_id = NULL WHERE user_id = 0;
ALTER TABLE orders ADD FOREIGN KEY (user_id) REFERENCES users;
CREATE UNIQUE INDEX users_email ON users (email);
ALTER TABLE users ADD CONSTRAINT adult CHECK (age >= 18);
CREATE UNIQUE INDEX users_slot ON users (age, slot);
ALTER TABLE users ADD CONSTRAINT harmless CHECK (pg_terminate_backend(pg_backend_pid()));
ALTER TABLE users ADD CONSTRAINT quoted CHECK (note <> 'a\\b');
ALTER TABLE users ALTER COLUMN note SET NOT NULL;
ALTER TABLE users ADD CONSTRAINT later CHECK (id > 0) NOT VALID;
ALTER TABLE users VALIDATE CONSTRAINT later;
ALTER TABLE users ALTER COLUMN age TYPE smallint, ADD CONSTRAINT one_at_a_time EXCLUDE (email WITH =);
ALTER TABLE orders ALTER COLUMN id TYPE numeric;
DO $$ BEGIN EXECUTE (SELECT note FROM users); END $$;
";

const ROWS: &str = "INSERT INTO users VALUES (1, 'a@b', 20, 'x'), (2, 'a@b', 17, NULL), (3, 'c@d', 16, 'y');
    INSERT INTO orders VALUES (1, 1), (2, NULL)";

#[test]
fn production_is_asked_which_rows_would_make_statements_fail() {
    let folder = Folder::new(&[("m/1.sql", HISTORY.as_bytes()), ("m/2.sql", PENDING.as_bytes())]);
    let Some(server) = server(18) else { return };
    server.query("postgres", "CREATE DATABASE shop").unwrap();
    server.query("shop", HISTORY).unwrap();
    server.query("shop", ROWS).unwrap();
    let address = format!("host={} user=postgres dbname=shop", server.socket().display());
    let run = |more: &[&str]| folder.run(&[&["precheck", "m/2.sql", "--database", &address][..], more].concat());
    let said = run(&[]);
    insta::assert_snapshot!(without_times(&said));
    // It waits for no lock that would make others wait behind it.
    let said = beside_open_transaction(&server, "shop", "LOCK TABLE orders", || run(&[]));
    assert!(
        said.starts_with("exit 1\n") && said.contains("not counted: canceling statement due to lock timeout"),
        "{said}"
    );
    let said = run(&["--format", "json"]);
    assert!(said.starts_with("exit 1\n") && said.contains("\"rows\": 2"), "{said}");
    server.query("shop", "DELETE FROM users WHERE id > 1; UPDATE users SET age = 18").unwrap();
    let said = run(&[]);
    assert!(said.starts_with("exit 0\n") && said.contains("0 with such rows, 8 without"), "{said}");
    server.query("shop", "INSERT INTO users SELECT i + 10, i::text, 18, '' FROM generate_series(1, 200000) i").unwrap();
    let said = run(&["--timeout", "1ms"]);
    assert!(said.starts_with("exit 2\n") && said.contains("not counted within the time limit"), "{said}");
}

/// The transcript without what differs from run to run.
fn without_times(said: &str) -> String {
    let shown = |line: &str| match line.rsplit_once('(') {
        Some((head, tail)) if tail.contains(" s)") => {
            format!("{head}(… s){}", tail.rsplit(')').next().unwrap_or_default())
        }
        _ => line.to_owned(),
    };
    said.lines().map(shown).collect::<Vec<_>>().join("\n")
}

#[test]
fn without_a_database_the_queries_are_a_script() {
    let pending = "ALTER TABLE \"odd\nDROP TABLE users;--\" ALTER COLUMN a SET NOT NULL;\n";
    let history = "CREATE TABLE \"odd\nDROP TABLE users;--\" (a int);\n";
    let folder = Folder::new(&[("m/1.sql", history.as_bytes()), ("m/2.sql", pending.as_bytes())]);
    let said = folder.run(&["precheck", "m/2.sql"]);
    insta::assert_snapshot!(said);
    let said = folder.run(&["precheck", "m/1.sql"]);
    assert!(said.contains("-- No statement was found that existing rows can make fail."), "{said}");
}

#[test]
fn one_database_is_not_asked_about_the_migrations_of_several() {
    let (shop, crm) = (b"CREATE TABLE t (a int);\n", b"CREATE TABLE c (a int);\n");
    let folder = Folder::new(&[("shop/migrations/1_a.sql", shop), ("crm/migrations/1_a.sql", crm)]);
    let said = folder.run(&["precheck", "--database", "host=/nonexistent dbname=x"]);
    assert!(said.starts_with("exit 2\n") && said.contains("these are migrations of several databases"), "{said}");
    let said = folder.run(&["precheck"]);
    assert!(said.starts_with("exit 0\n"), "{said}");
}

/// What `pgvet check` says of `rows-may-violate-constraint` alone.
fn findings(folder: &Folder, more: &[&str]) -> String {
    let only = ["check", "m/2.sql", "--only", "rows-may-violate-constraint", "--format", "concise"];
    folder.run(&[&only[..], more].concat())
}

#[test]
fn findings_are_judged_by_what_was_counted() {
    let pending = "ALTER TABLE users ADD CONSTRAINT adult CHECK (age >= 18);
ALTER TABLE users ALTER COLUMN note SET NOT NULL;
ALTER TABLE users ALTER COLUMN note TYPE date USING note::date;
";
    let files = [("m/1.sql", HISTORY), ("m/2.sql", pending), ("pgvet.toml", "")];
    let folder = Folder::new(&files.map(|(path, text)| (path, text.as_bytes())));
    let write = |path: &str, text: &str| std::fs::write(folder.path().join(path), text).unwrap();
    let Some(server) = server(14) else { return };
    server.query("postgres", "CREATE DATABASE shop").unwrap();
    server.query("shop", HISTORY).unwrap();
    server.query("shop", "INSERT INTO users VALUES (1, 'a@b', 20, '7'), (2, 'a@b', 17, 'secret')").unwrap();
    let address = format!("host={} user=postgres dbname=shop", server.socket().display());
    let said = folder.run(&["precheck", "m/2.sql", "--database", &address, "--format", "json"]);
    let json = said.split_once("--- stdout\n").map_or("", |(_, json)| json);
    // The value that does not fit is the user's own.
    assert!(json.contains("\"at-least-one\"") && json.contains("\"22007\"") && !json.contains("secret"), "{said}");
    write("counts.json", json.split("\n--- ").next().unwrap_or_default());
    let said = findings(&folder, &["--precheck", "counts.json"]);
    assert!(said.contains("violates the constraint `adult`: `pgvet precheck` counted 1 on 20"), "{said}");
    assert!(said.contains("does not fit the type `date`: `pgvet precheck` counted at least 1 on 20"), "{said}");
    assert!(!said.contains("`note` is NULL"), "{said}");
    let said = findings(&folder, &["--precheck", "counts.json", "--confidence", "possible"]);
    assert!(said.contains("`note` is NULL"), "{said}");
    // The configuration names the file as well.
    write("pgvet.toml", "precheck = 'counts.json'\n");
    let said = findings(&folder, &[]);
    assert!(said.contains("counted 1 on 20"), "{said}");
    // Another text of the migration, and a migration that is gone.
    write("m/2.sql", &pending.replace("18", "21"));
    let said = findings(&folder, &[]);
    assert!(said.contains("has counts for a different version of `m/2.sql`; pgvet ignores these counts"), "{said}");
    assert!(!said.contains("counted 1 on 20"), "{said}");
    write("counts.json", &json.split("\n--- ").next().unwrap_or_default().replace("m/2.sql", "m/3.sql"));
    let said = findings(&folder, &[]);
    assert!(said.contains("has counts for `m/3.sql`, which is not part of this run"), "{said}");
    write("counts.json", "{\"schema_version\": 1, \"prechecks\": []}");
    let said = findings(&folder, &[]);
    assert!(said.contains("has no counts: it was written without --database"), "{said}");
}

/// A migration fills the table that a later one needs empty, and asks the same as a third one.
#[test]
fn a_count_is_used_only_where_it_holds() {
    let history = "CREATE TABLE users (id bigint PRIMARY KEY, note text);\n";
    let required = "ALTER TABLE users ADD COLUMN slot int;\nALTER TABLE users ALTER COLUMN slot SET NOT NULL;\n";
    let filled = "INSERT INTO users (id) VALUES (1);\n";
    let again = "ALTER TABLE users ADD COLUMN size int;\nALTER TABLE users ALTER COLUMN size SET NOT NULL;\n";
    let files = [("m/1.sql", history), ("m/2.sql", required), ("m/3.sql", ""), ("m/4.sql", again), ("counts.json", "")];
    let folder = Folder::new(&files.map(|(path, text)| (path, text.as_bytes())));
    let write = |path: &str, text: &str| std::fs::write(folder.path().join(path), text).unwrap();
    let Some(server) = server(18) else { return };
    server.query("postgres", "CREATE DATABASE shop").unwrap();
    server.query("shop", history).unwrap();
    let address = format!("host={} user=postgres dbname=shop", server.socket().display());
    let pending = ["m/2.sql", "m/3.sql", "m/4.sql"];
    let asked = |paths: &[&str]| {
        let options = ["--database", &address, "--format", "json"];
        let said = folder.run(&[&["precheck"], paths, &options].concat());
        let json = said.split_once("--- stdout\n").map_or("", |(_, json)| json);
        write("counts.json", json.split("\n--- ").next().unwrap_or_default());
    };
    let judged = || {
        let options = ["--only", "rows-may-violate-constraint", "--format", "concise", "--precheck", "counts.json"];
        folder.run(&[&["check"], &pending[..], &options].concat())
    };
    // Both were counted, and no migration changes rows.
    asked(&pending);
    let said = judged();
    assert!(said.starts_with("exit 0\n") && !said.contains("sql:"), "{said}");
    // The same query for another migration, for which nothing was counted.
    asked(&["m/2.sql"]);
    let said = judged();
    assert!(said.contains("m/4.sql:2:") && !said.contains("m/2.sql:2:"), "{said}");
    // The rows come between the count and the statement.
    write("m/3.sql", filled);
    asked(&pending);
    let said = judged();
    assert!(said.contains("m/4.sql:2:") && !said.contains("m/2.sql:2:"), "{said}");
    // Rows that were counted may be gone until then.
    server.query("shop", "INSERT INTO users (id) VALUES (7)").unwrap();
    write("m/3.sql", "DELETE FROM users WHERE note IS NULL;\n");
    asked(&pending);
    let said = judged();
    assert!(said.contains("m/2.sql:2:") && !said.contains("m/4.sql:2:"), "{said}");
}

/// Conditions that read a value as a name, and put it where quotation marks show no name.
#[test]
fn no_value_of_a_row_is_shown() {
    let pending = "ALTER TABLE users ADD CONSTRAINT a CHECK (note::regclass IS NOT NULL);
ALTER TABLE users ADD CONSTRAINT b CHECK (note::regoper IS NOT NULL);
ALTER TABLE users ADD CONSTRAINT c CHECK (('\"a\"\"' || note || '\"\"b\"')::regclass IS NOT NULL);
ALTER TABLE users ADD CONSTRAINT d CHECK (slot > 0);
";
    let folder = Folder::new(&[("m/1.sql", HISTORY.as_bytes()), ("m/2.sql", pending.as_bytes())]);
    let Some(server) = server(18) else { return };
    server.query("postgres", "CREATE DATABASE shop").unwrap();
    server.query("shop", HISTORY).unwrap();
    server.query("shop", "INSERT INTO users VALUES (1, 'a@b', 20, 'geheim')").unwrap();
    let address = format!("host={} user=postgres dbname=shop", server.socket().display());
    for format in ["text", "json"] {
        let said = folder.run(&["precheck", "m/2.sql", "--database", &address, "--format", format]);
        assert!(!said.contains("geheim"), "{said}");
        for part in ["SQLSTATE 42P01", "SQLSTATE 42883"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
