//! `pgvet schema`, `pgvet diff` and `pgvet drift`: of migrations, dumps, revisions and live databases.

use crate::support::Folder;
use crate::support::repository::{init, write};
use pgvet_trace::server::Server;
use pgvet_trace::server::testing::server;

const FIRST: &str = "CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE users (
    id bigserial PRIMARY KEY,
    email varchar(80) NOT NULL,
    status text NOT NULL DEFAULT 'new' CHECK (status IN ('new', 'old')),
    mood mood DEFAULT 'ok',
    wait interval DEFAULT '1 hour',
    made timestamptz DEFAULT now()
);
CREATE INDEX users_email ON users (lower(email)) WHERE status <> 'old';
CREATE VIEW active AS SELECT id, email FROM users WHERE status = 'new';
";

const SECOND: &str = "ALTER TABLE users ADD COLUMN name text, ALTER COLUMN status DROP DEFAULT;
DROP INDEX users_email;
CREATE TABLE orders (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id bigint NOT NULL REFERENCES users ON DELETE CASCADE
);
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON orders USING (user_id = current_setting('app.user')::bigint);
";

/// A repository whose last commit has the first migration, and whose folder has both.
fn repository() -> Folder {
    let folder = Folder::new(&[("migrations/1_users.sql", FIRST.as_bytes()), (".gitignore", b".pgvet-cache\n")]);
    init(&folder);
    write(&folder, "migrations/2_orders.sql", SECOND);
    folder
}

/// Rails keeps a dump of the schema in `db/structure.sql`.
#[test]
fn a_dump_is_judged_against_that_of_the_base_branch() {
    let old = "CREATE TABLE public.orders (\n    id bigint NOT NULL,\n    note text\n);\n";
    let folder = Folder::new(&[("db/structure.sql", old.as_bytes())]);
    init(&folder);
    write(&folder, "db/structure.sql", old.replace("note text", "note text,\n    total integer NOT NULL"));
    let sql = folder.output(&["diff", "HEAD:db/structure.sql", "db/structure.sql", "--format", "sql"], b"", &[]);
    write(&folder, "base.sql", old);
    let found = folder.output(&["check", "--format", "concise", "--schema", "base.sql", "-"], &sql.stdout, &[]);
    let found = String::from_utf8(found.stdout).unwrap();
    assert!(found.contains("[required-column-without-default]") && found.contains("`orders`"), "{found}");
}

/// Rails fills its table in the dump, and some projects remove its definition.
#[test]
fn tables_of_migration_tools_are_not_compared() {
    let users = "CREATE TABLE public.users (\n    id bigint NOT NULL\n);\n";
    let rows = "INSERT INTO \"schema_migrations\" (version) VALUES ('1');\n";
    let own = "CREATE TABLE public.schema_migrations (version varchar NOT NULL);\n\
               CREATE TABLE public.ar_internal_metadata (key varchar NOT NULL);\n";
    let other = "CREATE TABLE public.schema_migrations (id bigint);\n";
    let texts = [
        ("whole.sql", format!("{users}{own}{rows}")),
        ("filled.sql", format!("{users}{rows}")),
        ("none.sql", users.to_owned()),
        ("other.sql", format!("{users}{other}")),
    ];
    let files: Vec<(&str, &[u8])> = texts.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    let folder = Folder::new(&files);
    for (before, after) in [("whole.sql", "none.sql"), ("none.sql", "whole.sql"), ("whole.sql", "filled.sql")] {
        let text = folder.run(&["diff", before, after]);
        assert!(text.starts_with("exit 0") && text.contains("a migration tool records there"), "{text}");
        let sql = folder.run(&["diff", before, after, "--format", "sql"]);
        assert!(!sql.contains("TABLE public.") && !sql.contains("TABLE IF EXISTS"), "{sql}");
    }
    let other = folder.run(&["diff", "none.sql", "other.sql"]);
    assert!(other.starts_with("exit 1"), "a table of that name with other columns: {other}");
}

#[test]
fn a_branch_is_compared_with_its_last_commit() {
    let folder = repository();
    insta::assert_snapshot!(folder.run(&["diff"]));
    insta::assert_snapshot!(folder.run(&["diff", "HEAD:migrations", "migrations", "--format", "markdown"]));
    assert!(folder.run(&["diff", "--at", "1"]).starts_with("exit 0"), "up to the first migration nothing changed");
    let same = folder.run(&["diff", ".", "--before-at", "2"]);
    assert!(same.starts_with("exit 0"), "{same}");
    let json = folder.output(&["diff", "--format", "json"], b"", &[]);
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let counts = ["added", "removed", "changed"].map(|key| document[key].as_u64().unwrap());
    assert_eq!(counts, [2, 1, 1], "{document}");
    assert_eq!(document["changes"][0]["kind"], "table");
    assert_eq!(document["not_compared"], serde_json::json!([]));
}

#[test]
fn sql_gives_the_schema_that_it_was_written_from() {
    let folder = repository();
    let sql = folder.output(&["schema", "--format", "sql"], b"", &[]).stdout;
    write(&folder, "dumped/schema.sql", &sql);
    let equal = folder.run(&["diff", "dumped/schema.sql", "migrations"]);
    assert!(
        equal.starts_with("exit 0") && equal.contains("No differences found"),
        "{equal}\n{}",
        String::from_utf8_lossy(&sql)
    );
    let changed = String::from_utf8_lossy(&sql).replace("'ok'", "'fine'");
    write(&folder, "dumped/schema.sql", changed);
    let differs = folder.run(&["diff", "dumped/schema.sql", "migrations"]);
    assert!(differs.starts_with("exit 1") && differs.contains("labels: sad, fine -> sad, ok"), "{differs}");
    let diagram = folder.run(&["schema", "--format", "mermaid"]);
    assert!(diagram.contains("\"public.orders\" }o--|| \"public.users\" : \"orders_user_id_fkey\""), "{diagram}");
    let none = folder.run(&["schema", "--in-schema", "shop"]);
    assert!(none.contains("-- 0 relations"), "{none}");
}

#[test]
fn a_dump_has_the_expressions_of_the_migrations_in_the_words_of_postgresql() {
    let folder = Folder::new(&[(
        "migrations/1_users.sql",
        b"CREATE TABLE users (
            status varchar(9) NOT NULL DEFAULT 'new' CHECK (status IN ('new', 'old')),
            kind text CHECK (kind = ANY (ARRAY['a', 'b'])),
            wait interval DEFAULT '1 hour');",
    )]);
    let dump = |labels: &str| {
        format!(
            "--\n-- PostgreSQL database dump\n--\n\nSELECT pg_catalog.set_config('search_path', '', false);
             CREATE TABLE public.users (
                status character varying(9) DEFAULT 'new'::character varying NOT NULL,
                kind text,
                wait interval DEFAULT '01:00:00'::interval,
                CONSTRAINT users_kind_check CHECK ((kind = ANY (ARRAY['a'::text, 'b'::text]))),
                CONSTRAINT users_status_check CHECK (((status)::text = ANY ((ARRAY[{labels}])::text[]))));"
        )
    };
    write(&folder, "dump.sql", dump("'new'::character varying, 'old'::character varying"));
    let equal = folder.run(&["diff", "dump.sql", "migrations"]);
    assert!(equal.starts_with("exit 0") && equal.contains("`'1 hour'` may mean the same"), "{equal}");
    write(&folder, "dump.sql", dump("'new'::character varying, 'gone'::character varying"));
    let differs = folder.run(&["diff", "migrations", "dump.sql"]);
    assert!(differs.starts_with("exit 1") && differs.contains("0 removed, 1 changed"), "{differs}");
}

#[test]
fn what_cannot_be_read_is_said() {
    let folder = repository();
    let refused = |args: &[&str], words: &str| {
        let said = folder.run(args);
        assert!(said.starts_with("exit 2\n") && said.contains(words), "{said}");
    };
    refused(&["diff", "nowhere:"], "has no revision `nowhere`");
    refused(&["diff", "HEAD:nothing"], "`HEAD` has no `nothing`");
    refused(&["diff", "nothing"], "help: name a folder, FILE.sql, REV:, REV:PATH, or a database");
    assert_eq!(folder.run(&["diff", "nothing"]).matches("error: ").count(), 1);
    refused(&["diff", "--at", "9"], "no migration matches `9`");
    let said = folder.run(&["diff", ".", "postgres://ann:geheim@127.0.0.1:1/shop"]);
    assert!(said.starts_with("exit 2\n") && !said.contains("geheim"), "{said}");
    refused(
        &["drift", "--database", "postgres://ann@127.0.0.1:1/shop"],
        "help: check that a server accepts connections at 127.0.0.1:1",
    );
    write(&folder, "known.json", "{}");
    refused(
        &["drift", "--database", "postgres://ann@127.0.0.1:1/shop", "--baseline", "known.json"],
        "cannot read the known drift in `known.json`",
    );
    // A folder with the name of a revision does not take its place.
    write(&folder, "HEAD:migrations/1_users.sql", FIRST);
    write(&folder, "HEAD:migrations/2_orders.sql", SECOND);
    assert!(folder.run(&["diff", "HEAD:migrations", "migrations"]).starts_with("exit 1"));
    assert!(folder.run(&["diff", "./HEAD:migrations", "migrations"]).starts_with("exit 0"));
    std::fs::remove_dir_all(folder.path().join("HEAD:migrations")).unwrap();
    write(&folder, "migrations/3_broken.sql", "CREATE TABEL t (id int);\nCREATE TABLE u (id int);\n");
    refused(&["diff"], "migrations/3_broken.sql:1: syntax error at or near \"TABEL\"");
    assert!(folder.run(&["diff"]).contains("+ table public.u"), "everything else is compared");
    assert_eq!(folder.run(&["diff"]).matches("3_broken.sql:1:").count(), 1, "said once");
    refused(&["schema"], "-- incomplete: migrations/3_broken.sql:1: syntax error at or near \"TABEL\"");
    refused(&["diff", "--in-schema", "public,shop"], "neither side has a schema `shop`");
}

/// A database with the schema of the migrations, and how to reach it.
fn database(server: &Server, folder: &Folder, name: &str) -> String {
    let sql = folder.output(&["schema", "--format", "sql"], b"", &[]).stdout;
    server.query("postgres", &format!("CREATE DATABASE {name}")).unwrap();
    server.query(name, &String::from_utf8(sql).unwrap()).unwrap();
    format!("host={} user=postgres dbname={name}", server.socket().display())
}

#[test]
fn a_live_database_is_compared_and_judged() {
    for major in [14, 18] {
        let Some(server) = server(major) else { continue };
        let folder = repository();
        let live = database(&server, &folder, "shop");
        let equal = folder.run(&["diff", "migrations", &live]);
        assert!(equal.starts_with("exit 0"), "PostgreSQL {major}: {equal}");
        let drift = |args: &[&str]| folder.run(&[&["drift", "migrations", "--database", &live], args].concat());
        assert!(drift(&[]).starts_with("exit 0"), "{}", drift(&[]));

        for sql in [
            "ALTER TABLE users ALTER COLUMN mood SET DEFAULT 'sad', ADD CONSTRAINT short CHECK (email <> '') NOT VALID",
            "INSERT INTO users (email, status) VALUES ('a', 'new'), ('a', 'new')",
            "CREATE ROLE reader",
            "GRANT SELECT ON users TO reader",
            "ALTER POLICY own ON orders USING (true)",
            "ALTER TABLE orders DROP CONSTRAINT orders_user_id_fkey",
            "CREATE TABLE leftover (id int)",
            "CREATE INDEX by_mood ON users (mood)",
        ] {
            server.query("shop", sql).unwrap();
        }
        let failed = server.query("shop", "CREATE UNIQUE INDEX CONCURRENTLY users_unique ON users (email)");
        assert!(failed.is_err(), "it finds duplicates and leaves an invalid index");
        insta::assert_snapshot!("drift", drift(&[]));
        let json = folder.output(&["drift", "migrations", "--database", &live, "--format", "json"], b"", &[]);
        let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        assert!(document["drift"].as_array().unwrap().iter().any(|one| one["sort"] == "invalid-index"), "{document}");

        let written = drift(&["--write-baseline", "known.json"]);
        assert!(written.starts_with("exit 0"), "{written}");
        let known = drift(&["--baseline", "known.json"]);
        assert!(known.starts_with("exit 0") && known.contains("10 differences known"), "{known}");
        server.query("shop", "DROP INDEX by_mood; DROP VIEW active").unwrap();
        let new = drift(&["--baseline", "known.json"]);
        assert!(new.starts_with("exit 1") && new.contains("error: view public.active is missing"), "{new}");
        assert!(new.contains("1 difference from the baseline no longer found"), "{new}");
    }
}

/// Lets production drift from the first migration, and stores what it has.
fn drifted(server: &Server, folder: &Folder) {
    let live = database(server, folder, "shop");
    for sql in [
        "CREATE TABLE leftover (id int PRIMARY KEY, name text)",
        "ALTER TABLE users DROP CONSTRAINT users_status_check, ADD CONSTRAINT filled CHECK (email IS NOT NULL) NOT VALID",
        "DROP VIEW active",
        "INSERT INTO users (email, status) VALUES ('a', 'new'), ('a', 'new')",
    ] {
        server.query("shop", sql).unwrap();
    }
    let failed = server.query("shop", "CREATE UNIQUE INDEX CONCURRENTLY users_unique ON users (email)");
    assert!(failed.is_err(), "it finds duplicates and leaves an invalid index");
    let json = folder.output(&["drift", "migrations", "--database", &live, "--format", "json"], b"", &[]);
    write(folder, "drift.json", &json.stdout);
}

#[test]
fn migrations_are_judged_by_what_production_has() {
    for major in [14, 18] {
        let Some(server) = server(major) else { continue };
        let folder = Folder::new(&[("migrations/1_users.sql", FIRST.as_bytes())]);
        init(&folder);
        drifted(&server, &folder);
        let version = major.to_string();
        let check = |sql: &str, args: &[&str]| {
            write(&folder, "migrations/2_next.sql", format!("SET lock_timeout = '1s';\n{sql}\n"));
            let fixed = ["check", "--since", "HEAD", "--pg-version", &version, "--format", "concise"];
            folder.run(&[&fixed[..], args].concat())
        };
        let against = |sql: &str| check(sql, &["--against", "drift.json"]);
        for (sql, said) in [
            ("CREATE TABLE leftover (id int);", "relation \"leftover\" already exists"),
            (
                "ALTER TABLE users DROP CONSTRAINT users_status_check;",
                "\"users_status_check\" of relation \"users\" does not",
            ),
            ("DROP VIEW active;", "\"active\" does not exist"),
            ("CLUSTER users USING users_unique;", "because it is invalid"),
        ] {
            let (alone, judged) = (check(sql, &[]), against(sql));
            assert!(!alone.contains(said) && judged.contains(said), "PostgreSQL {major}: {alone}{judged}");
        }
        let noted = against("SELECT 1;");
        assert!(noted.contains("pgvet applies 5 differences"), "{noted}");
        assert!(!noted.contains("ignores"), "{noted}");
        write(&folder, "pgvet.toml", "against = 'drift.json'");
        let configured = check("DROP VIEW active;", &[]);
        assert!(configured.contains("\"active\" does not exist"), "{configured}");

        write(&folder, "migrations/1_users.sql", format!("{FIRST}CREATE TABLE late (id int);"));
        assert!(check("SELECT 1;", &[]).contains(
            "is outdated: `migrations/1_users.sql` or an earlier migration has changed since it was written"
        ));
        for (text, said) in [
            ("{", "is not a report of `pgvet drift --format json`"),
            (r#"{"schema_version": 9}"#, "has version 9, but this pgvet reads version 1"),
            (r#"{"schema_version": 1}"#, "does not have the whole schema"),
        ] {
            write(&folder, "drift.json", text);
            let refused = check("SELECT 1;", &[]);
            assert!(refused.starts_with("exit 2\n") && refused.contains(said), "{refused}");
        }
    }
}

/// Objects that need others, or words that only some have.
const RARE: &str = "CREATE SCHEMA app;
CREATE DOMAIN code AS text;
CREATE FUNCTION is_code(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT length($1) > 0';
ALTER DOMAIN code SET DEFAULT 'a';
ALTER DOMAIN code ADD CONSTRAINT filled CHECK (is_code(VALUE));
CREATE TABLE t (a int, c code);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE FUNCTION app.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION app.f();
CREATE TRIGGER soon BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();
CREATE TABLE retyped (
    a numeric(4, 2) DEFAULT '0.5',
    b date DEFAULT '2020-01-31',
    c text[] DEFAULT '{x}',
    d varchar(5) DEFAULT 'x',
    e timestamptz DEFAULT CURRENT_TIMESTAMP(0)
);
ALTER TABLE retyped
    ALTER a TYPE integer,
    ALTER b TYPE timestamp,
    ALTER c TYPE varchar(3)[],
    ALTER d TYPE text,
    ALTER e TYPE timestamptz(0);
";

/// What only PostgreSQL 18 has.
const PERIODS: &str = "CREATE TABLE p (a int4range, b daterange, PRIMARY KEY (a, b WITHOUT OVERLAPS));
CREATE TABLE q (a int4range, b daterange, CONSTRAINT k FOREIGN KEY (a, PERIOD b) REFERENCES p (a, PERIOD b));
";

#[test]
fn a_server_accepts_what_is_written_and_has_the_same_then() {
    for (major, sql) in [(14, RARE.to_owned()), (18, format!("{RARE}{PERIODS}"))] {
        let Some(server) = server(major) else { continue };
        let folder = Folder::new(&[("m/1.sql", sql.as_bytes())]);
        let written = database(&server, &folder, "written");
        let run = written.replace("dbname=written", "dbname=run");
        server.query("postgres", "CREATE DATABASE run").unwrap();
        server.query("run", &sql).unwrap();
        for sides in [["m", run.as_str()], ["m", &written], [&run, &written]] {
            let equal = folder.run(&["diff", sides[0], sides[1]]);
            assert!(equal.starts_with("exit 0") && !equal.contains("Not compared"), "PostgreSQL {major}: {equal}");
        }
        server.query("run", "DROP TRIGGER late ON t").unwrap();
        let again = "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION public.f()";
        server.query("run", again).unwrap();
        let differs = folder.run(&["diff", "m", &run]);
        for words in ["deferrable: yes -> no", "initially deferred: yes -> no", "function: app.f -> public.f"] {
            assert!(differs.contains(words), "PostgreSQL {major}: {differs}");
        }
    }
}

#[test]
fn reading_a_database_needs_no_privilege_but_connect() {
    let Some(server) = server(18) else { return };
    let folder = repository();
    let live = database(&server, &folder, "shop");
    server.query("shop", "CREATE ROLE watcher LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC").unwrap();
    let watched = live.replace("user=postgres", "user=watcher");
    let said = folder.run(&["diff", "migrations", &watched]);
    assert!(said.starts_with("exit 0"), "{said}");
    // It waits for a lock as reads do, but not for long.
    let locked = pgvet_trace::server::testing::beside_open_transaction(
        &server,
        "shop",
        "LOCK TABLE users IN ACCESS EXCLUSIVE MODE",
        || folder.run(&["diff", "migrations", &watched]),
    );
    assert!(
        locked.starts_with("exit 2") && locked.contains("another session, such as a migration, holds ACCESS EXCLUSIVE"),
        "{locked}"
    );
}
