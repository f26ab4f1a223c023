//! Findings about subtransactions, compared with real servers: which of them take a transaction ID, when the cache
//! of a session overflows, and when a row gets a `MultiXact`.

use pgvet_model::migration::Migration;
use pgvet_model::predict::effects;
use pgvet_model::production::Functions;
use pgvet_model::routine::Bound;
use pgvet_model::routine::subtransactions::CACHED;
use pgvet_model::version::DEFAULT_RANGE;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{PARSE_STACK_BYTES, parse_file};
use pgvet_trace::server::Server;
use pgvet_trace::server::testing::server;

const TABLES: &str =
    "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t SELECT g, 0 FROM generate_series(1, 10) AS g;
    CREATE TABLE u AS SELECT id, n FROM t;
    CREATE TABLE used (id int PRIMARY KEY); INSERT INTO used VALUES (1);
    CREATE TABLE users (id int REFERENCES used); INSERT INTO users VALUES (1);
    CREATE FUNCTION one() RETURNS void LANGUAGE plpgsql AS $$
        BEGIN UPDATE t SET n = n + 1 WHERE id = 1; EXCEPTION WHEN check_violation THEN NULL; END $$;
    CREATE FUNCTION kept(a int) RETURNS int LANGUAGE plpgsql AS $$
        BEGIN UPDATE t SET n = n + 1 WHERE id = a; RETURN a; EXCEPTION WHEN check_violation THEN RETURN 0; END $$;
    CREATE FUNCTION first_kept() RETURNS int LANGUAGE sql AS 'SELECT kept(id) FROM t';
    CREATE FUNCTION all_kept() RETURNS SETOF int LANGUAGE sql AS 'SELECT kept(id) FROM t';";

/// A loop around a block with EXCEPTION.
fn caught(rounds: u64, statement: &str) -> String {
    format!(
        "DO $$ BEGIN FOR i IN 1..{rounds} LOOP BEGIN {statement}; EXCEPTION WHEN check_violation THEN NULL; END; END LOOP; END $$"
    )
}

/// The subtransactions that the model counts for a statement.
fn predicted(sql: &str) -> Bound {
    let parse = |text: &str| parse_file(SourceFile::new(String::new(), text.to_owned()));
    let files = [parse(TABLES), parse(sql)];
    let migration = |file, report| Migration { report, ..Migration::new(file) };
    let found =
        effects(&[migration(&files[0], false), migration(&files[1], true)], DEFAULT_RANGE.to, &Functions::default());
    found[1][0].subtransactions
}

/// The one value of a query.
fn value(server: &Server, sql: &str) -> String {
    let rows = server.query("postgres", sql).unwrap();
    rows.last().and_then(|row| row[0].clone()).unwrap()
}

fn next_xid(server: &Server) -> u64 {
    value(server, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text").parse().unwrap()
}

/// How many transaction IDs a statement takes.
fn xids(server: &Server, sql: &str) -> u64 {
    let before = next_xid(server);
    server.query("postgres", sql).unwrap();
    next_xid(server) - before
}

/// The subtransactions that a session shows to others in its transaction, and whether there were more than it can show.
fn cached(server: &Server, sql: &str) -> (u64, bool) {
    let shown = "SELECT s.subxact_count, s.subxact_overflowed FROM pg_stat_get_backend_idset() AS b,
        LATERAL pg_stat_get_backend_subxact(b) AS s WHERE pg_stat_get_backend_pid(b) = pg_backend_pid()";
    let rows = server.query("postgres", &format!("BEGIN; {sql}; {shown}; ROLLBACK")).unwrap();
    let row = rows.last().unwrap();
    (row[0].as_ref().unwrap().parse().unwrap(), row[1].as_deref() == Some("t"))
}

fn next_multixact(server: &Server) -> u64 {
    let sql = "CHECKPOINT; SELECT next_multixact_id::text FROM pg_control_checkpoint()";
    value(server, sql).parse().unwrap()
}

/// How many `MultiXact`s a script makes.
fn multixacts(server: &Server, sql: &str) -> u64 {
    let before = next_multixact(server);
    server.query("postgres", sql).unwrap();
    next_multixact(server) - before
}

fn check(major: u8) {
    let Some(server) = server(major) else { return };
    server.query("postgres", TABLES).unwrap();
    check_evaluations(&server);
    for rounds in [1, 10, 64, 65, 1000] {
        let write = caught(rounds, "UPDATE t SET n = n + 1 WHERE id = 1");
        assert_eq!(predicted(&write), Bound::AtMost(rounds));
        // One more for the transaction itself.
        assert_eq!(xids(&server, &write), rounds + 1, "{major}: {write}");
        let call = format!("DO $$ BEGIN FOR i IN 1..{rounds} LOOP PERFORM one(); END LOOP; END $$");
        assert_eq!(predicted(&call), Bound::AtMost(rounds));
        assert_eq!(xids(&server, &call), rounds + 1, "{major}: {call}");
        let read = caught(rounds, "PERFORM count(*) FROM t");
        assert_eq!((predicted(&read), xids(&server, &read)), (Bound::ZERO, 0), "{major}: {read}");
        if major >= 16 {
            assert_eq!(cached(&server, &write), (rounds.min(CACHED), rounds > CACHED), "{major}: {write}");
        }
    }
    if major >= 16 {
        // What fails takes a transaction ID, and no place in the cache.
        let refused = "DO $$ BEGIN FOR i IN 1..100 LOOP
            BEGIN DELETE FROM used WHERE id = 1; EXCEPTION WHEN foreign_key_violation THEN NULL; END; END LOOP; END $$";
        assert_eq!(cached(&server, refused), (0, false), "{major}");
        assert_eq!(xids(&server, refused), 101, "{major}");
    }
    let nested = "DO $$ BEGIN BEGIN BEGIN INSERT INTO t VALUES (100, 0); EXCEPTION WHEN check_violation THEN NULL; END;
        EXCEPTION WHEN check_violation THEN NULL; END; END $$";
    assert_eq!((predicted(nested), xids(&server, nested)), (Bound::AtMost(2), 3));
    let savepoints = "BEGIN; INSERT INTO t VALUES (101, 0); SAVEPOINT s1; INSERT INTO t VALUES (102, 0); SAVEPOINT s2;
        SAVEPOINT s3; INSERT INTO t VALUES (103, 0); COMMIT";
    assert_eq!(xids(&server, savepoints), 4, "{major}");
    check_multixacts(&server);
}

/// How often a query evaluates a call: each takes one transaction ID, and the transaction itself another.
fn check_evaluations(server: &Server) {
    let once = Bound::AtMost(1);
    for (sql, bound, calls) in [
        ("SELECT * FROM one()", once, 1),
        ("SELECT * FROM t JOIN one() ON true", once, 1),
        ("SELECT * FROM one() CROSS JOIN t", once, 1),
        ("SELECT (SELECT kept(1)) FROM t", once, 1),
        ("SELECT n FROM t WHERE n <> (SELECT kept(1))", once, 1),
        ("SELECT kept(id) FROM t WHERE id = 3", once, 1),
        ("SELECT kept(max(id)) FROM t", once, 1),
        ("SELECT first_kept()", once, 1),
        ("DO $$ DECLARE a int; BEGIN SELECT kept(id) INTO a FROM t; END $$", once, 1),
        ("WITH new AS (INSERT INTO t VALUES (50, 0) RETURNING id) SELECT kept(id) FROM new", once, 1),
        ("DELETE FROM t WHERE id = 50 RETURNING kept(1)", once, 1),
        ("SELECT kept(id) FROM t LIMIT 2", Bound::AtMost(2), 2),
        ("SELECT kept(v.id) FROM (VALUES (1), (2), (3)) AS v (id)", Bound::AtMost(3), 3),
        ("SELECT kept(unnest(ARRAY[1, 2, 3]))", Bound::AtMost(3), 3),
        ("SELECT kept(id) FROM t", Bound::Unbounded, 10),
        ("SELECT id FROM t WHERE kept(id) > 0 LIMIT 20", Bound::Unbounded, 10),
        ("SELECT (SELECT kept(t.id)) FROM t", Bound::Unbounded, 10),
        ("SELECT * FROM t, kept(t.id)", Bound::Unbounded, 10),
        ("SELECT max(kept(id)) FROM t", Bound::Unbounded, 10),
        ("SELECT count(*) FROM all_kept()", Bound::Unbounded, 10),
        ("UPDATE u SET n = kept(id)", Bound::Unbounded, 10),
    ] {
        assert_eq!((predicted(sql), xids(server, sql)), (bound, calls + 1), "{sql}");
    }
}

/// `savepoint-after-row-lock`.
fn check_multixacts(server: &Server) {
    let lock = "SELECT FROM t WHERE id <= 10 FOR UPDATE";
    let update = "UPDATE t SET n = n + 1 WHERE id <= 10";
    // One for all rows that have the same lockers.
    assert_eq!(multixacts(server, &format!("BEGIN; {lock}; SAVEPOINT s; {update}; COMMIT")), 1);
    assert_eq!(multixacts(server, &format!("BEGIN; SAVEPOINT s; {lock}; {update}; COMMIT")), 0);
    let block = "DO $$ BEGIN PERFORM FROM t WHERE id = 1 FOR UPDATE; BEGIN UPDATE t SET n = 1 WHERE id = 1;
        EXCEPTION WHEN check_violation THEN NULL; END; END $$";
    assert_eq!(multixacts(server, block), 1);
    let rows = "DO $$ DECLARE r record; BEGIN FOR r IN SELECT id FROM t WHERE id <= 10 FOR UPDATE LOOP
        BEGIN UPDATE t SET n = 2 WHERE id = r.id; EXCEPTION WHEN check_violation THEN NULL; END; END LOOP; END $$";
    assert_eq!(multixacts(server, rows), 10);
}

#[test]
fn real_servers_count_subtransactions_as_predicted() {
    let all = || [15, 16, 18].into_iter().for_each(check);
    let thread = std::thread::Builder::new().stack_size(PARSE_STACK_BYTES).spawn(all).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
