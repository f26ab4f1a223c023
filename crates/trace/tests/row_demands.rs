//! What statements demand of existing rows, on real servers: the query that the model writes counts 0 exactly where the
//! statement succeeds, what has no query is a demand all the same, and where the model sees none the rows that are tried
//! make nothing fail.

#![expect(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use pgvet_model::effect::RowDemand;
use pgvet_model::migration::Migration;
use pgvet_model::predict;
use pgvet_model::production::Functions;
use pgvet_model::version::PgVersion;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;
use pgvet_trace::server::Server;
use pgvet_trace::server::testing::server;

const SCHEMA: &str = "CREATE TABLE customers (id bigint PRIMARY KEY, region int, code text, UNIQUE (region, code));
    CREATE TABLE orders (id bigint PRIMARY KEY, total int, customer_id bigint, region int, code text,
        status text CONSTRAINT known CHECK (status IN ('new', 'paid')), level int CONSTRAINT low CHECK (level < 10));
    CREATE UNIQUE INDEX low_code ON orders (code) WHERE total = -5;
    CREATE TABLE events (id bigint, at date) PARTITION BY RANGE (at);
    CREATE TABLE events_2025 PARTITION OF events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
    CREATE TABLE \"Odd Names\" (\"Some Id\" int);
    CREATE TABLE apart (id bigint, at date);
    CREATE DOMAIN small AS int; CREATE TABLE kinds (kind small);
    INSERT INTO customers VALUES (1, 1, 'a')";

/// A statement, rows with which it succeeds, and a row with which it fails.
const DEMANDS: &[(&str, &str, &str)] = &[
    (
        "ALTER TABLE orders ALTER COLUMN total SET NOT NULL",
        "INSERT INTO orders (id, total) VALUES (1, 1)",
        "INSERT INTO orders (id) VALUES (2)",
    ),
    (
        "ALTER TABLE orders ADD CONSTRAINT positive CHECK (total > 0 OR code = 'free')",
        "INSERT INTO orders (id, total, code) VALUES (1, 1, 'a'), (2, NULL, NULL), (3, -1, 'free')",
        "INSERT INTO orders (id, total, code) VALUES (4, -1, 'a')",
    ),
    (
        "ALTER TABLE orders ADD FOREIGN KEY (customer_id) REFERENCES customers",
        "INSERT INTO orders (id, customer_id) VALUES (1, 1), (2, NULL)",
        "INSERT INTO orders (id, customer_id) VALUES (3, 7)",
    ),
    (
        "ALTER TABLE orders ADD FOREIGN KEY (region, code) REFERENCES customers (region, code)",
        "INSERT INTO orders (id, region, code) VALUES (1, 1, 'a'), (2, NULL, 'z'), (3, 9, NULL)",
        "INSERT INTO orders (id, region, code) VALUES (4, 1, 'z')",
    ),
    (
        "ALTER TABLE orders ADD FOREIGN KEY (region, code) REFERENCES customers (region, code) MATCH FULL",
        "INSERT INTO orders (id, region, code) VALUES (1, 1, 'a'), (2, NULL, NULL)",
        "INSERT INTO orders (id, region, code) VALUES (3, 1, NULL)",
    ),
    (
        "CREATE UNIQUE INDEX by_code ON orders (code, region) WHERE total > 10",
        "INSERT INTO orders (id, code, region, total) VALUES (1, 'a', 1, 11), (2, 'a', 1, 5), (3, 'a', 2, 11), (4, NULL, 1, 11), (5, NULL, 1, 11)",
        "INSERT INTO orders (id, code, region, total) VALUES (6, 'a', 1, 12)",
    ),
    (
        "CREATE UNIQUE INDEX by_lower ON orders (lower(code))",
        "INSERT INTO orders (id, code) VALUES (1, 'a'), (2, NULL), (3, NULL)",
        "INSERT INTO orders (id, code) VALUES (4, 'A')",
    ),
    (
        "ALTER TABLE orders ADD CONSTRAINT one_total UNIQUE (total)",
        "INSERT INTO orders (id, total) VALUES (1, 1), (2, NULL), (3, NULL)",
        "INSERT INTO orders (id, total) VALUES (4, 1)",
    ),
    (
        "ALTER TABLE events ALTER COLUMN id SET NOT NULL",
        "INSERT INTO events VALUES (1, '2025-02-01')",
        "INSERT INTO events VALUES (NULL, '2025-02-01')",
    ),
    (
        "ALTER TABLE \"Odd Names\" ADD PRIMARY KEY (\"Some Id\")",
        "INSERT INTO \"Odd Names\" VALUES (1)",
        "INSERT INTO \"Odd Names\" VALUES (1)",
    ),
    (
        "ALTER TABLE orders DROP CONSTRAINT known, ADD CONSTRAINT known CHECK (status IN ('new', 'sent'))",
        "INSERT INTO orders (id, status) VALUES (1, 'new'), (2, NULL)",
        "INSERT INTO orders (id, status) VALUES (3, 'paid')",
    ),
    ("ALTER TABLE orders ADD COLUMN owner text NOT NULL", "", "INSERT INTO orders (id) VALUES (1)"),
    (
        "ALTER TABLE orders ADD COLUMN slot int DEFAULT 0, ADD CONSTRAINT one_slot UNIQUE (slot)",
        "INSERT INTO orders (id) VALUES (1)",
        "INSERT INTO orders (id) VALUES (2)",
    ),
];

/// Statements for whose demands there is no query, and a row with which each fails.
const UNCOUNTED: &[(&str, &str)] = &[
    ("ALTER TABLE orders ALTER COLUMN total TYPE smallint", "INSERT INTO orders (id, total) VALUES (1, 100000)"),
    ("ALTER TABLE orders ALTER COLUMN code TYPE int USING code::int", "INSERT INTO orders (id, code) VALUES (1, 'a')"),
    (
        "ALTER TABLE orders ADD CONSTRAINT one_of_each EXCLUDE USING btree (total WITH =)",
        "INSERT INTO orders (id, total) VALUES (1, 7), (2, 7)",
    ),
    (
        "ALTER TABLE events ATTACH PARTITION apart FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
        "INSERT INTO apart VALUES (1, '2030-01-01')",
    ),
    ("ALTER DOMAIN small ADD CONSTRAINT below CHECK (VALUE < 9)", "INSERT INTO kinds VALUES (10)"),
];

/// Statements that demand nothing, and a row of every sort that the schema allows.
const NONE: &[(&str, &str)] = &[
    (
        "ALTER TABLE orders DROP CONSTRAINT known, ADD CONSTRAINT known CHECK (status IN ('new', 'paid', 'sent'))",
        "INSERT INTO orders (id, status) VALUES (1, 'new'), (2, 'paid'), (3, NULL)",
    ),
    (
        "ALTER TABLE orders ADD CONSTRAINT lower_than CHECK (level < 11)",
        "INSERT INTO orders (id, level) VALUES (1, 9), (2, NULL)",
    ),
    ("CREATE UNIQUE INDEX by_id ON orders (id, code)", "INSERT INTO orders (id) VALUES (1), (2)"),
    ("ALTER TABLE orders ADD COLUMN parent bigint REFERENCES orders", "INSERT INTO orders (id) VALUES (1), (2)"),
    ("ALTER TABLE orders ADD COLUMN token text UNIQUE", "INSERT INTO orders (id) VALUES (1), (2)"),
    ("ALTER TABLE orders ADD COLUMN euros int NOT NULL DEFAULT 0", "INSERT INTO orders (id) VALUES (1), (2)"),
    (
        "ALTER TABLE orders ADD COLUMN place text, ADD CONSTRAINT offsite CHECK (status = 'sent' OR place IS NULL)",
        "INSERT INTO orders (id, status) VALUES (1, 'new'), (2, NULL)",
    ),
    (
        "CREATE UNIQUE INDEX low_codes ON orders (code, total) WHERE total = -5",
        "INSERT INTO orders (id) VALUES (1), (2)",
    ),
    ("ALTER TABLE orders ALTER COLUMN total TYPE bigint", "INSERT INTO orders (id, total) VALUES (1, 2147483647)"),
    ("ALTER TABLE orders ADD CONSTRAINT later CHECK (total > 0) NOT VALID", "INSERT INTO orders VALUES (1, -1)"),
];

fn demands(statement: &str, major: u8) -> Vec<RowDemand> {
    let file = |path: &str, text: &str| parse_file(SourceFile::new(path.to_owned(), text.to_owned()));
    let (schema, changed) = (file("1.sql", SCHEMA), file("2.sql", statement));
    let migration = |file, report| Migration { report, database: 1, ..Migration::new(file) };
    let migrations = [migration(&schema, false), migration(&changed, true)];
    let mut effects = predict::effects(&migrations, PgVersion(major), &Functions::default());
    effects.pop().unwrap().pop().unwrap().effects.demands
}

/// What the queries count together with these rows in a transaction that is rolled back.
fn counted(server: &Server, rows: &str, queries: &[String]) -> u64 {
    let count = |query: &String| {
        let counted = server.query("shop", &format!("BEGIN; {rows}; {query}; ROLLBACK")).unwrap();
        let count = counted.last().and_then(|row| row.last().cloned().flatten()).unwrap();
        count.parse::<u64>().unwrap()
    };
    queries.iter().map(count).sum()
}

fn succeeds(server: &Server, rows: &str, statement: &str) -> bool {
    match server.query("shop", &format!("BEGIN; {rows}; {statement}; ROLLBACK")) {
        Ok(_) => true,
        Err(error) => {
            // Class 22: data exception; class 23: integrity constraint violation.
            let is_of_data = ["SQLSTATE 22", "SQLSTATE 23"].iter().any(|class| error.message.contains(class));
            assert!(is_of_data, "{statement}: {}", error.message);
            false
        }
    }
}

#[test]
fn queries_count_the_rows_that_make_a_statement_fail() {
    for major in [14, 18] {
        let Some(server) = server(major) else { continue };
        server.query("postgres", "CREATE DATABASE shop").unwrap();
        server.query("shop", SCHEMA).unwrap();
        for (statement, good, bad) in DEMANDS {
            let query = |demand: &RowDemand| demand.query(|table| format!("\"{}\"", table.name)).unwrap();
            let queries: Vec<String> = demands(statement, major).iter().map(query).collect();
            assert!(!queries.is_empty(), "{statement}");
            assert_eq!(counted(&server, good, &queries), 0, "{major}: {statement}");
            assert!(succeeds(&server, good, statement), "{major}: {statement}");
            let rows = format!("{good}; {bad}");
            assert_eq!(counted(&server, &rows, &queries), 1, "{major}: {statement}");
            assert!(!succeeds(&server, &rows, statement), "{major}: {statement}");
        }
        for (statement, row) in UNCOUNTED {
            let demands = demands(statement, major);
            assert!(demands.iter().any(|demand| demand.query(ToString::to_string).is_err()), "{statement}");
            assert!(!succeeds(&server, row, statement), "{major}: {statement}");
        }
        for (statement, rows) in NONE {
            assert_eq!(demands(statement, major), [], "{statement}");
            assert!(succeeds(&server, rows, statement), "{major}: {statement}");
        }
    }
}
