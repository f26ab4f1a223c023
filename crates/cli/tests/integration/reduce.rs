//! `pgvet reduce` from outside.

use crate::support::Folder;
use pgvet_trace::server::testing::binaries;
use std::fs;

const TABLES: &[u8] = b"-- the tables\n\
    CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL);\n\
    CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint REFERENCES customers, total numeric(10, 2), note text);\n\
    CREATE INDEX orders_total ON orders (total);\n";
const CHANGE: &[u8] = b"SET lock_timeout = '2s';\n\
    ALTER TABLE orders ADD COLUMN status text, DROP COLUMN note;\n\
    CREATE INDEX orders_customer ON orders (customer_id) WHERE total > 10;\n\
    INSERT INTO orders (id, total) VALUES (1, 2), (2, 3);\n\
    INSERT INTO orders (id, total) SELECT 1, length(note) FROM (VALUES ('a')) v (note) WHERE note <> '' ORDER BY 1;\n";

fn project() -> Folder {
    Folder::new(&[("m/001_tables.sql", TABLES), ("m/002_change.sql", CHANGE)])
}

/// A run of the program.
struct Run {
    status: i32,
    stdout: String,
    stderr: String,
}

fn run(folder: &Folder, args: &[&str]) -> Run {
    let output = folder.output(args, b"", &[]);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn a_finding_is_left_with_what_it_needs() {
    let run = run(&project(), &["reduce", "m", "--finding", "drop-column"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let expected = "-- m/001_tables.sql (in one transaction)\nCREATE TABLE orders (note int);\n\
        -- m/002_change.sql (in one transaction)\nALTER TABLE orders DROP note;\n";
    assert_eq!(run.stdout, expected);
    assert!(run.stderr.contains("reduced 2 files, 8 statements,"), "{}", run.stderr);
    assert!(run.stderr.contains("to 2 files, 2 statements, 12 tokens"), "{}", run.stderr);
}

#[test]
fn the_result_shows_the_finding_again() {
    let folder = project();
    let run = run(&folder, &["reduce", "m", "--finding", "index-without-concurrently", "--output", "least.sql", "-q"]);
    assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
    let least = fs::read_to_string(folder.path().join("least.sql")).unwrap();
    let (first, second) = least.split_once("-- m/002").unwrap();
    let again = Folder::new(&[("m/001_a.sql", first.as_bytes()), ("m/002_b.sql", format!("-- {second}").as_bytes())]);
    let check = self::run(&again, &["check", "m", "--format", "concise"]);
    assert!(check.stdout.contains("[index-without-concurrently]"), "{least}\n{}", check.stdout);
}

#[test]
fn a_lock_is_left_with_what_it_needs() {
    let run = run(&project(), &["reduce", "m", "--lock", "SHARE on public.orders"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stdout.ends_with("CREATE INDEX ON orders (total);\n"), "{}", run.stdout);
    let wrong = self::run(&project(), &["reduce", "m", "--lock", "STRONG on orders"]);
    assert_eq!(wrong.status, 2);
    assert!(wrong.stderr.contains("`STRONG` is not a lock mode"), "{}", wrong.stderr);
}

#[test]
fn what_is_not_shown_at_the_start_is_an_error() {
    let run = run(&project(), &["reduce", "m", "--finding", "rename-table"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.starts_with("error: `rename-table` has no finding here"), "{}", run.stderr);
    let run = self::run(&project(), &["reduce", "m", "--lock", "EXCLUSIVE on nothing"]);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("no statement takes EXCLUSIVE on nothing"), "{}", run.stderr);
}

#[test]
fn one_thing_is_named() {
    let none = project().run(&["reduce", "m"]);
    let two = project().run(&["reduce", "m", "--finding", "drop-column", "--error", "42703"]);
    let many = project().run(&["reduce", "m", "--finding", "locking"]);
    assert!(none.starts_with("exit 2\n") && two.starts_with("exit 2\n"), "{none}\n{two}");
    assert!(many.starts_with("exit 2\n") && many.contains("name one rule"), "{many}");
}

#[test]
fn the_smallest_so_far_is_written_at_the_time_limit() {
    let run = run(&project(), &["reduce", "m", "--finding", "drop-column", "--time-limit", "0s"]);
    assert_eq!(run.status, 1, "{}", run.stderr);
    assert!(run.stdout.contains("CREATE INDEX orders_customer"), "{}", run.stdout);
    assert!(run.stderr.contains("the time limit was reached: this is the smallest SQL so far"), "{}", run.stderr);
}

#[test]
fn servers_keep_their_error() {
    const QUERY: &[u8] = b"select pg_database.reltuples / 1000 from pg_database, pg_class \
        where 0 < pg_database.reltuples / 1000 order by 1 desc limit 10";
    for major in [14, 18] {
        let Some(found) = binaries(major) else { continue };
        let binaries = found.folder.to_str().unwrap();
        let folder = Folder::new(&[("m/001_tables.sql", TABLES), ("m/002_change.sql", CHANGE), ("q.sql", QUERY)]);
        let run = |args: &[&str]| run(&folder, &[&["reduce", "--pg-bin", binaries], args].concat());
        let query = run(&["q.sql", "--error", "42703"]);
        assert_eq!((query.status, query.stdout.as_str()), (0, "SELECT pg_database.reltuples FROM pg_database\n"));
        let duplicate = run(&["m", "--error", "duplicate key"]);
        assert_eq!(duplicate.status, 0, "{}", duplicate.stderr);
        let statements: Vec<&str> = duplicate.stdout.lines().filter(|line| !line.starts_with("--")).collect();
        assert!(statements.len() <= 3 && statements[0].starts_with("CREATE TABLE orders (id "), "{statements:?}");
        let other = run(&["m", "--error", "42P01"]);
        assert_eq!((other.status, other.stdout.as_str()), (2, ""));
        assert!(other.stderr.contains("duplicate key"), "it says the error: {}", other.stderr);
        let roles = Folder::new(&[("q.sql", b"CREATE ROLE app;\nSELECT missing;")]);
        let roles = self::run(&roles, &["reduce", "--pg-bin", binaries, "q.sql", "--error", "42703"]);
        assert_eq!((roles.status, roles.stdout.as_str()), (0, "SELECT missing;\n"), "{}", roles.stderr);
        let same = run(&["m/001_tables.sql", "--difference"]);
        assert_eq!((same.status, same.stdout.as_str()), (2, ""));
        assert!(same.stderr.contains("the server does what pgvet predicts"), "{}", same.stderr);
        let sql = b"CREATE SUBSCRIPTION s CONNECTION 'host=/nonexistent' PUBLICATION p; SELECT missing;";
        let publisher =
            self::run(&Folder::new(&[("q.sql", sql)]), &["reduce", "--pg-bin", binaries, "q.sql", "--error", "42703"]);
        assert_eq!((publisher.status, publisher.stdout.as_str()), (0, "SELECT missing;\n"), "{}", publisher.stderr);
        assert!(publisher.stderr.contains("s was not run, because it would connect"), "{}", publisher.stderr);
    }
}

#[test]
fn a_try_ends_at_the_time_limit() {
    let Some(found) = binaries(18) else { return };
    let sql =
        b"DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$;";
    let folder = Folder::new(&[("q.sql", sql)]);
    let begun = std::time::Instant::now();
    let pg_bin = found.folder.to_str().unwrap();
    let limits = ["--statement-timeout", "5min", "--time-limit", "2s"];
    let run = run(&folder, &[&["reduce", "q.sql", "--error", "42P01", "--pg-bin", pg_bin], &limits[..]].concat());
    assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{}", run.stderr);
    assert!(run.stderr.contains("its time limit"), "{}", run.stderr);
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[test]
fn servers_keep_the_output_of_a_query() {
    const TABLES: &[u8] = b"CREATE TABLE customers (id int PRIMARY KEY, name text);\n\
        CREATE TABLE orders (customer_id int REFERENCES customers, total int);\n\
        INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bo');\n\
        INSERT INTO orders VALUES (1, 10), (1, 20), (2, 40);\n";
    const QUERY: &[u8] =
        b"SELECT c.name, sum(o.total) AS total FROM customers c JOIN orders o ON o.customer_id = c.id \
        WHERE o.total > 0 GROUP BY c.name ORDER BY 2 DESC;\n";
    let Some(found) = binaries(18) else { return };
    let binaries = found.folder.to_str().unwrap();
    let folder = Folder::new(&[
        ("1_t.sql", TABLES),
        ("2_q.sql", QUERY),
        ("3_last.sql", b"SELECT missing;"),
        ("4_u.sql", b"CREATE TABLE u ();"),
    ]);
    let run = |args: &[&str]| run(&folder, &[&["reduce", "--pg-bin", binaries], args].concat());
    let result = run(&["1_t.sql", "2_q.sql", "--output-differs"]);
    assert_eq!(result.status, 0, "{}", result.stderr);
    let rest = ["'Ada'", "40", "ORDER BY 2 DESC"].iter().all(|part| result.stdout.contains(part));
    assert!(rest && !result.stdout.contains("REFERENCES"), "{}", result.stdout);
    assert!(!result.stdout.contains("WHERE"), "{}", result.stdout);
    let node = run(&["1_t.sql", "2_q.sql", "--output-differs=plan:Seq Scan on customers"]);
    assert_eq!(node.status, 0, "{}", node.stderr);
    let statements: Vec<&str> = node.stdout.lines().filter(|line| !line.starts_with("--")).collect();
    assert_eq!(statements, ["CREATE TABLE customers ();", "SELECT FROM customers;"]);
    for (args, expected) in [
        (
            &["1_t.sql", "2_q.sql", "--output-differs=plan:Merge Append"][..],
            "has no node `Merge Append`; it has Sort, ",
        ),
        (&["1_t.sql", "--output-differs"], "the last statement returns no rows"),
        (&["4_u.sql", "--output-differs=plan:Seq Scan on u"], "the last statement is not a query"),
        (
            &["1_t.sql", "3_last.sql", "--output-differs"],
            "the last query has no output: column \"missing\" does not exist",
        ),
        (&["1_t.sql", "2_q.sql", "--output-differs=rows"], "`rows` is neither `result` nor a node of a plan"),
    ] {
        let wrong = run(args);
        assert_eq!((wrong.status, wrong.stdout.as_str()), (2, ""), "{args:?}: {}", wrong.stderr);
        assert!(wrong.stderr.contains(expected), "{args:?}: {}", wrong.stderr);
    }
    let random = Folder::new(&[("q.sql", b"SELECT random();")]);
    let flaky = self::run(&random, &["reduce", "--pg-bin", binaries, "q.sql", "--output-differs"]);
    assert!(flaky.status == 2 && flaky.stderr.contains("only 1 of 3 runs of the original"), "{}", flaky.stderr);
}
