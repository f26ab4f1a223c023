//! Published measurements that a trace must reproduce, on real servers.

use pgvet_model::migration::Migration;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file};
use pgvet_trace::provider::{Scratch, ScratchOptions};
use pgvet_trace::server::testing::{MAJORS, binaries};
use pgvet_trace::{MigrationTrace, Settings, exceeded, run};
use pgvet_workspace::config::{HeldLimits, Limit};
use std::fmt::Write as _;

/// The majors that tests of one figure run on: the oldest way to measure it, and the newest.
const TWO: [u8; 2] = [15, 18];

fn parsed(text: &str) -> ParsedFile {
    parse_file(SourceFile::new("m.sql".to_owned(), text.to_owned()))
}

fn migration(file: &ParsedFile, report: bool, database: u32) -> Migration<'_> {
    Migration { report, database, ..Migration::new(file) }
}

/// Traces each text after the same setup, in databases of their own. `None` where that major is not installed.
fn traces(major: u8, setup: &str, texts: &[&str]) -> Option<Vec<MigrationTrace>> {
    binaries(major)?;
    let setup = parsed(setup);
    let files: Vec<ParsedFile> = texts.iter().map(|text| parsed(text)).collect();
    let both = |(at, file)| {
        let database = at as u32 + 1;
        [migration(&setup, false, database), migration(file, true, database)]
    };
    let migrations: Vec<Migration<'_>> = files.iter().enumerate().flat_map(both).collect();
    let mut provider = Scratch::new(ScratchOptions { major: Some(major), ..ScratchOptions::default() });
    let settings = Settings { keep_going: true, ..Settings::default() };
    let trace = run(&migrations, &mut provider, &settings, &mut |_| {});
    Some(trace.expect("the migrations run").migrations)
}

fn dead_rows(trace: &MigrationTrace, table: &str) -> i64 {
    trace.tables.iter().find(|growth| growth.relation.name == table).map_or(0, |growth| growth.dead_rows)
}

fn grew(trace: &MigrationTrace, relation: &str) -> bool {
    let growth = trace.tables.iter().find(|growth| growth.relation.name == relation);
    growth.is_some_and(|growth| growth.bytes_after > growth.bytes_before)
}

const USERS: &str = "CREATE TABLE users (id serial PRIMARY KEY, email text UNIQUE, name text); \
    INSERT INTO users (email, name) SELECT 'user' || g, 'name' FROM generate_series(1, 1000) g;";

#[test]
fn failing_inserts_waste_xids_rows_and_the_indexes_before_the_violated_one() {
    let failing = "INSERT INTO users (email) VALUES ('user1');\n".repeat(200);
    let many = "DO $$ BEGIN FOR i IN 1..20000 LOOP BEGIN INSERT INTO users (email) VALUES ('user1'); \
        EXCEPTION WHEN unique_violation THEN NULL; END; END LOOP; END $$";
    let skipping = "INSERT INTO users (email) SELECT 'user1' FROM generate_series(1, 20000) ON CONFLICT DO NOTHING";
    let absent = "INSERT INTO users (email) SELECT 'user1' FROM generate_series(1, 20000) g \
        WHERE NOT EXISTS (SELECT FROM users WHERE email = 'user1')";
    for major in TWO {
        let Some(traces) = traces(major, USERS, &[&failing, many, skipping, absent]) else { continue };
        let [failing, many, skipping, absent] = &traces[..] else { panic!("four texts, four traces") };
        // nextval() takes no XID of its own in a transaction that has one.
        assert_eq!((failing.xids, dead_rows(failing, "users")), (200, 200), "{major}");
        assert!(failing.statements.iter().all(|statement| statement.xids == Some(1)), "{major}");
        assert_eq!((many.xids, dead_rows(many, "users")), (20_001, 20_000), "{major}");
        assert!(grew(many, "users") && grew(many, "users_pkey") && !grew(many, "users_email_key"), "{major}");
        assert_eq!(dead_rows(skipping, "users"), 0, "{major}");
        assert!(skipping.xids <= 1 && !grew(skipping, "users_pkey"), "{major}: {}", skipping.xids);
        let statement = &absent.statements[0];
        assert_eq!((absent.xids, dead_rows(absent, "users"), statement.wal_bytes), (0, 0, 0), "{major}");
    }
}

#[test]
fn savepoints_that_write_and_those_above_them_take_xids() {
    let sql = "BEGIN; INSERT INTO t VALUES (1); SAVEPOINT s1; INSERT INTO t VALUES (2); SAVEPOINT s2; SAVEPOINT s3; \
        INSERT INTO t VALUES (3); COMMIT;";
    for major in MAJORS {
        let Some(traces) = traces(major, "CREATE TABLE t (a int);", &[sql]) else { continue };
        assert_eq!(traces[0].xids, 4, "{major}");
        assert_eq!(traces[0].subtransactions.max, 3, "{major}");
    }
}

#[test]
fn the_cache_of_subtransactions_overflows_after_64() {
    let savepoints = |count: usize| {
        let mut sql = "BEGIN;\n".to_owned();
        for at in 0..count {
            let _ = writeln!(sql, "SAVEPOINT s{at}; INSERT INTO t VALUES ({at});");
        }
        sql + "COMMIT;"
    };
    for major in MAJORS {
        let texts = [savepoints(64), savepoints(65)];
        let Some(traces) = traces(major, "CREATE TABLE t (a int);", &[&texts[0], &texts[1]]) else { continue };
        assert_eq!((traces[0].subtransactions.max, traces[0].subtransactions.overflowed), (64, Some(false)), "{major}");
        // Before 16 aborted subtransactions cannot be told from others.
        let expected = if major >= 16 { Some(true) } else { None };
        assert_eq!(traces[1].subtransactions.overflowed, expected, "{major}");
    }
}

#[test]
fn a_temporary_table_writes_62_27_and_9_rows_into_the_catalog() {
    let mut columns = vec!["id serial PRIMARY KEY".to_owned(), "name text NOT NULL".to_owned()];
    columns.push("address text NOT NULL".to_owned());
    columns.push("note text".to_owned());
    columns.push("remark text".to_owned());
    columns.extend((0..26).map(|at| format!("c{at} int DEFAULT {at}")));
    let table = format!("CREATE TEMP TABLE session ({});", columns.join(", "));
    let indexes = (0..4).map(|at| format!("CREATE INDEX ON session (c{at});")).collect::<Vec<_>>().concat();
    for major in MAJORS {
        let Some(traces) = traces(major, "", &[&(table.clone() + &indexes)]) else { continue };
        let inserted = |catalog: &str| traces[0].catalog_rows.get(catalog).map_or(0, |rows| rows.inserted);
        let counts = ["pg_attribute", "pg_attrdef", "pg_class"].map(inserted);
        assert_eq!(counts, [62, 27, 9], "{major}");
        let newer = if major >= 18 { (4, 45) } else { (1, 42) };
        assert_eq!((inserted("pg_constraint"), inserted("pg_depend")), newer, "{major}");
    }
}

#[test]
fn an_index_fails_the_limit_and_passes_it_when_built_concurrently() {
    let setup = "CREATE TABLE t AS SELECT g AS a, repeat('x', 50) AS b FROM generate_series(1, 300000) g;";
    let texts = ["CREATE INDEX i ON t (a)", "CREATE INDEX CONCURRENTLY i ON t (a)"];
    let mut limits = HeldLimits::default();
    limits.set(Limit::parse("share=20ms").unwrap());
    for major in TWO {
        let Some(traces) = traces(major, setup, &texts) else { continue };
        let over: Vec<usize> = traces.iter().map(|trace| exceeded(trace, &limits).len()).collect();
        assert_eq!(over, [1, 0], "{major}");
        let modes: Vec<_> = traces[1].statements[0].locks.iter().filter(|lock| lock.existed).collect();
        assert!(modes.iter().any(|lock| lock.mode.sql() == "SHARE UPDATE EXCLUSIVE"), "{major}: {modes:?}");
        assert!(modes.iter().all(|lock| lock.held.low <= lock.held.best && lock.held.best <= lock.held.high));
    }
}
