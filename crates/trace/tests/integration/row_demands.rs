//! What statements demand of existing rows, on real servers: the query that the model writes counts 0 exactly where the
//! statement succeeds, or fails as the statement does, and where the model sees no demand the rows that are tried make
//! nothing fail.

use pgvet_model::effect::{Access, Counterexample, RowDemand};
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
        status text CONSTRAINT known CHECK (status IN ('new', 'paid')), level int CONSTRAINT low CHECK (level < 10),
        plain int, amount numeric, ratio double precision, kind char(6), tags text[], during int4range, area int4range);
    CREATE INDEX orders_total ON orders (total); CREATE INDEX orders_region ON orders (region);
    CREATE UNIQUE INDEX low_code ON orders (code) WHERE total = -5;
    CREATE TABLE events (id bigint, at date) PARTITION BY RANGE (at);
    CREATE TABLE events_2025 PARTITION OF events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
    CREATE TABLE \"Odd Names\" (\"Some Id\" int);
    CREATE TABLE apart (id bigint, at date);
    CREATE INDEX apart_at ON apart (at);
    CREATE DOMAIN small AS int;
    ALTER DOMAIN small ADD CONSTRAINT low CHECK (VALUE < 100) NOT VALID;
    CREATE DOMAIN smaller AS small; CREATE TABLE kinds (kind small, other smaller);
    CREATE TYPE state AS ENUM ('new', 'sent');
    CREATE TABLE spans (a int, b text, c int) PARTITION BY RANGE (a, b);
    CREATE TABLE span (a int, b text, c int);
    CREATE TABLE regions (region text, at date) PARTITION BY LIST (region);
    CREATE TABLE regions_eu PARTITION OF regions FOR VALUES IN ('eu') PARTITION BY RANGE (at);
    CREATE TABLE regions_rest PARTITION OF regions DEFAULT;
    CREATE TABLE region (region text, at date);
    CREATE TABLE hashes (id int) PARTITION BY HASH (id);
    CREATE TABLE hash (id int);
    CREATE TABLE parents (id int, code text);
    CREATE TABLE children () INHERITS (parents);
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
    (
        "ALTER TABLE orders ALTER COLUMN region SET NOT NULL, ALTER COLUMN code SET NOT NULL",
        "INSERT INTO orders (id, region, code) VALUES (1, 1, 'a')",
        "INSERT INTO orders (id, region) VALUES (2, 1)",
    ),
    (
        "ALTER TABLE parents ADD PRIMARY KEY (id, code)",
        "INSERT INTO parents VALUES (1, 'a')",
        "INSERT INTO parents VALUES (1, NULL)",
    ),
    (
        "CREATE UNIQUE INDEX one_id ON parents (id)",
        "INSERT INTO parents VALUES (1, 'a'); INSERT INTO children VALUES (1, 'a')",
        "INSERT INTO parents VALUES (1, 'b')",
    ),
    (
        "ALTER TABLE ONLY parents ADD CONSTRAINT positive CHECK (id > 0) NO INHERIT",
        "INSERT INTO parents VALUES (1, 'a'); INSERT INTO children VALUES (-1, 'a')",
        "INSERT INTO parents VALUES (-1, 'b')",
    ),
    (
        "ALTER TABLE orders ADD CONSTRAINT fraction CHECK (100 / total > 1)",
        "INSERT INTO orders (id, total) VALUES (1, 7)",
        "INSERT INTO orders (id, total) VALUES (2, 0)",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN total TYPE smallint",
        "INSERT INTO orders (id, total) VALUES (1, 32767), (2, -32768), (3, NULL)",
        "INSERT INTO orders (id, total) VALUES (4, 32768)",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN plain TYPE char(2)",
        "INSERT INTO orders (id, plain) VALUES (1, 99), (2, -9), (3, NULL)",
        "INSERT INTO orders (id, plain) VALUES (4, 100)",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN total TYPE numeric(3,1)",
        "INSERT INTO orders (id, total) VALUES (1, 99), (2, -99), (3, NULL)",
        "INSERT INTO orders (id, total) VALUES (4, 100)",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN code TYPE varchar(3)",
        "INSERT INTO orders (id, code) VALUES (1, 'abc'), (2, 'ab   '), (3, NULL), (4, 'äöü')",
        "INSERT INTO orders (id, code) VALUES (5, 'abcd')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN code TYPE char(3)",
        "INSERT INTO orders (id, code) VALUES (1, 'abc'), (2, 'ab   '), (3, NULL)",
        "INSERT INTO orders (id, code) VALUES (5, '  ab')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN kind TYPE varchar(3)",
        "INSERT INTO orders (id, kind) VALUES (1, 'abc'), (2, 'ab'), (3, NULL)",
        "INSERT INTO orders (id, kind) VALUES (5, 'abcd')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN code TYPE int USING code::int",
        "INSERT INTO orders (id, code) VALUES (1, ' 12 '), (2, '-0000000000000000000000005'), (3, NULL), (4, '+2147483647')",
        "INSERT INTO orders (id, code) VALUES (5, '2147483648')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN code TYPE smallint USING code::smallint",
        "INSERT INTO orders (id, code) VALUES (1, '7')",
        "INSERT INTO orders (id, code) VALUES (5, '7a')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN code TYPE int USING NULLIF(trim(code), '')::int",
        "INSERT INTO orders (id, code) VALUES (1, ' 12 '), (2, '  '), (3, NULL)",
        "INSERT INTO orders (id, code) VALUES (5, '1.5')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN code TYPE int USING CASE WHEN code = 'none' THEN NULL ELSE code::int END",
        "INSERT INTO orders (id, code) VALUES (1, '12'), (2, 'none'), (3, NULL)",
        "INSERT INTO orders (id, code) VALUES (5, 'many')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN code TYPE numeric(4,1) USING code::numeric",
        "INSERT INTO orders (id, code) VALUES (1, '999.94'), (2, '1e2'), (3, NULL), (4, 'NaN')",
        "INSERT INTO orders (id, code) VALUES (5, '999.95')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN code TYPE uuid USING code::uuid",
        "INSERT INTO orders (id, code) VALUES (1, 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'), (2, NULL),
            (3, '{a0eebc999c0b4ef8bb6d6bb9bd380a11}'), (4, 'a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11')",
        "INSERT INTO orders (id, code) VALUES (5, 'a0eebc999c0b4ef8bb6d6bb9bd380a1')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN code TYPE boolean USING code::boolean",
        "INSERT INTO orders (id, code) VALUES (1, 'T'), (2, ' yes '), (3, 'of'), (4, NULL), (5, '0')",
        "INSERT INTO orders (id, code) VALUES (6, 'o')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN code TYPE date USING code::date",
        "INSERT INTO orders (id, code) VALUES (1, '2025-01-31'), (2, NULL)",
        "INSERT INTO orders (id, code) VALUES (3, '2025-02-30')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN code TYPE jsonb USING code::jsonb",
        "INSERT INTO orders (id, code) VALUES (1, '{}'), (2, NULL)",
        "INSERT INTO orders (id, code) VALUES (3, '{')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN code TYPE date USING to_date(code, 'YYYY-MM-DD')",
        "INSERT INTO orders (id, code) VALUES (1, '2025-01-31'), (2, NULL)",
        "INSERT INTO orders (id, code) VALUES (3, 'soon')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN code TYPE state USING code::state",
        "INSERT INTO orders (id, code) VALUES (1, 'new'), (2, NULL)",
        "INSERT INTO orders (id, code) VALUES (3, 'New')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN kind TYPE state USING kind::state",
        "INSERT INTO orders (id, kind) VALUES (1, NULL)",
        "INSERT INTO orders (id, kind) VALUES (2, 'new')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN tags TYPE int[] USING tags::int[]",
        "INSERT INTO orders (id, tags) VALUES (1, '{1,NULL}'), (2, NULL)",
        "INSERT INTO orders (id, tags) VALUES (3, '{1,a}')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN amount TYPE numeric(5,2)",
        "INSERT INTO orders (id, amount) VALUES (1, 999.994), (2, 'NaN'), (3, NULL), (4, -999.99)",
        "INSERT INTO orders (id, amount) VALUES (5, 999.995)",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN amount TYPE numeric(5,2)",
        "INSERT INTO orders (id, amount) VALUES (1, 1)",
        "INSERT INTO orders (id, amount) VALUES (5, '-Infinity')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN amount TYPE int",
        "INSERT INTO orders (id, amount) VALUES (1, 2147483647.4), (2, -2147483648.4), (3, NULL)",
        "INSERT INTO orders (id, amount) VALUES (5, 2147483647.5)",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN amount TYPE bigint",
        "INSERT INTO orders (id, amount) VALUES (1, 9223372036854775807)",
        "INSERT INTO orders (id, amount) VALUES (5, 'NaN')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN amount TYPE real",
        "INSERT INTO orders (id, amount) VALUES (1, 1e30)",
        "INSERT INTO orders (id, amount) VALUES (5, 1e300)",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN ratio TYPE int",
        "INSERT INTO orders (id, ratio) VALUES (1, 2147483647.4), (2, -2147483648.5), (3, NULL)",
        "INSERT INTO orders (id, ratio) VALUES (5, 2147483647.5)",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN ratio TYPE bigint",
        "INSERT INTO orders (id, ratio) VALUES (1, 9223372036854774784), (2, -9223372036854775808)",
        "INSERT INTO orders (id, ratio) VALUES (5, 9223372036854775808)",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN ratio TYPE smallint",
        "INSERT INTO orders (id, ratio) VALUES (1, 32767.4)",
        "INSERT INTO orders (id, ratio) VALUES (5, 'NaN')",
    ),
    (
        "ALTER TABLE orders ALTER COLUMN ratio TYPE numeric(3,1)",
        "INSERT INTO orders (id, ratio) VALUES (1, 99.94), (2, 'NaN')",
        "INSERT INTO orders (id, ratio) VALUES (5, 99.96)",
    ),
    (
        "ALTER TABLE orders ADD CONSTRAINT one_of_each EXCLUDE USING btree (total WITH =, lower(code) WITH =) WHERE (level > 3)",
        "INSERT INTO orders (id, total, code, level) VALUES (1, 7, 'a', 4), (2, 7, 'b', 4), (3, 7, 'A', 3), (4, NULL, 'a', 4), (5, NULL, 'a', 4)",
        "INSERT INTO orders (id, total, code, level) VALUES (6, 7, 'A', 5)",
    ),
    (
        "ALTER TABLE orders ADD CONSTRAINT one_at_a_time EXCLUDE USING gist (during WITH &&)",
        "INSERT INTO orders (id, during) VALUES (1, '[1,3)'), (2, '[3,5)'), (3, NULL), (4, 'empty'), (5, 'empty')",
        "INSERT INTO orders (id, during) VALUES (6, '[4,6)')",
    ),
    (
        "ALTER TABLE events ATTACH PARTITION apart FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
        "INSERT INTO apart VALUES (1, '2026-01-01'), (NULL, '2026-12-31')",
        "INSERT INTO apart VALUES (1, '2027-01-01')",
    ),
    (
        "ALTER TABLE events ATTACH PARTITION apart FOR VALUES FROM ('2026-01-01') TO (MAXVALUE)",
        "INSERT INTO apart VALUES (1, '2030-01-01')",
        "INSERT INTO apart VALUES (1, NULL)",
    ),
    (
        "ALTER TABLE events ATTACH PARTITION apart DEFAULT",
        "INSERT INTO apart VALUES (1, '2026-01-01'), (2, NULL)",
        "INSERT INTO apart VALUES (1, '2025-07-01')",
    ),
    (
        "ALTER TABLE spans ATTACH PARTITION span FOR VALUES FROM (1, 'b') TO (3, 'f')",
        "INSERT INTO span VALUES (1, 'b'), (2, 'a'), (3, 'e')",
        "INSERT INTO span VALUES (3, 'f')",
    ),
    (
        "ALTER TABLE spans ATTACH PARTITION span FOR VALUES FROM (1, MINVALUE) TO (3, MAXVALUE)",
        "INSERT INTO span VALUES (1, 'a'), (3, 'z')",
        "INSERT INTO span VALUES (2, NULL)",
    ),
    (
        "ALTER TABLE spans ATTACH PARTITION span FOR VALUES FROM (1, MAXVALUE) TO (3, MINVALUE)",
        "INSERT INTO span VALUES (2, 'a')",
        "INSERT INTO span VALUES (3, 'a')",
    ),
    (
        "ALTER TABLE regions ATTACH PARTITION region FOR VALUES IN ('us', NULL)",
        "INSERT INTO region VALUES ('us', NULL), (NULL, NULL)",
        "INSERT INTO region VALUES ('eu', NULL)",
    ),
    (
        "ALTER TABLE regions_eu ATTACH PARTITION region FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
        "INSERT INTO region VALUES ('eu', '2026-02-01')",
        "INSERT INTO region VALUES ('us', '2026-02-01')",
    ),
    (
        "CREATE TABLE regions_us PARTITION OF regions FOR VALUES IN ('us')",
        "INSERT INTO regions VALUES ('asia', '2026-02-01'), (NULL, NULL)",
        "INSERT INTO regions VALUES ('us', '2026-02-01')",
    ),
    (
        "ALTER TABLE hashes ATTACH PARTITION hash FOR VALUES WITH (MODULUS 4, REMAINDER 0)",
        "INSERT INTO hash SELECT i FROM generate_series(1, 100) i WHERE satisfies_hash_partition('hashes'::regclass, 4, 0, i)",
        "INSERT INTO hash SELECT min(i) FROM generate_series(1, 100) i WHERE NOT satisfies_hash_partition('hashes'::regclass, 4, 0, i)",
    ),
    (
        "ALTER DOMAIN small ADD CONSTRAINT below CHECK (VALUE < 9)",
        "INSERT INTO kinds VALUES (8, NULL), (NULL, 8)",
        "INSERT INTO kinds VALUES (8, 9)",
    ),
    ("ALTER DOMAIN small SET NOT NULL", "INSERT INTO kinds VALUES (8, 1)", "INSERT INTO kinds VALUES (8, NULL)"),
];

/// The same since PostgreSQL 18.
const DEMANDS_SINCE_18: &[(&str, &str, &str)] = &[
    (
        "ALTER TABLE orders ADD CONSTRAINT one_period UNIQUE (area, during WITHOUT OVERLAPS)",
        "INSERT INTO orders (id, area, during) VALUES (1, '[1,9)', '[1,3)'), (2, '[1,9)', '[3,5)'), (3, '[1,8)', '[1,3)'), \
         (4, NULL, '[1,3)'), (5, '[1,9)', NULL)",
        "INSERT INTO orders (id, area, during) VALUES (6, '[1,9)', '[4,6)')",
    ),
    (
        "ALTER TABLE orders ADD CONSTRAINT one_period UNIQUE (area, during WITHOUT OVERLAPS)",
        "INSERT INTO orders (id, area, during) VALUES (1, '[1,9)', '[1,3)')",
        "INSERT INTO orders (id, area, during) VALUES (6, '[1,9)', 'empty')",
    ),
    (
        "ALTER TABLE orders DROP CONSTRAINT orders_pkey, ADD PRIMARY KEY (area, during WITHOUT OVERLAPS)",
        "INSERT INTO orders (id, area, during) VALUES (1, '[1,9)', '[1,3)')",
        "INSERT INTO orders (id, area, during) VALUES (6, '[1,9)', '[2,6)')",
    ),
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
    (
        "ALTER TABLE orders ALTER COLUMN code TYPE varchar(3) USING code::varchar(3)",
        "INSERT INTO orders (id, code) VALUES (1, 'abcdef')",
    ),
    ("ALTER TABLE orders ALTER COLUMN plain TYPE text", "INSERT INTO orders (id, plain) VALUES (1, 7)"),
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

/// What the queries count together with these rows in a transaction that is rolled back. One that fails because of the
/// rows has found one.
fn counted(server: &Server, rows: &str, queries: &[String]) -> Result<u64, String> {
    let count = |query: &String| match server.query("shop", &format!("BEGIN; {rows}; {query}; ROLLBACK")) {
        Ok(counted) => {
            let count = counted.last().and_then(|row| row.last().cloned().flatten()).unwrap_or_default();
            count.parse::<u64>().map_err(|error| format!("{query}: {error}"))
        }
        Err(error) if error.message.contains("SQLSTATE 22") => Ok(1),
        Err(error) => Err(format!("{query}: {}", error.message)),
    };
    queries.iter().map(count).sum()
}

/// The SQLSTATE with which a statement fails after these rows; `None` if it succeeds.
fn failure(server: &Server, rows: &str, statement: &str) -> Option<String> {
    let error = server.query("shop", &format!("BEGIN; {rows}; {statement}; ROLLBACK")).err()?;
    let sqlstate = error.message.split_once("(SQLSTATE ").and_then(|(_, tail)| tail.split_once(')'));
    let sqlstate = sqlstate.map(|(sqlstate, _)| sqlstate.to_owned()).unwrap_or(error.message);
    Some(sqlstate)
}

/// The rows of a counterexample, with values for the other columns that the table needs.
fn rows_of(demand: &RowDemand, example: &Counterexample) -> String {
    let row = |number: u8| {
        let mut values = example.values.clone();
        let needed = match demand.relation.name.as_str() {
            "orders" => Some(("id", format!("{}", 900 + u32::from(number)))),
            "events" => Some(("at", "'2025-02-01'".to_owned())),
            "parents" => Some(("code", format!("'{number}'"))),
            _ => None,
        };
        let needed = needed.filter(|(column, _)| values.iter().all(|(name, _)| name != column));
        values.extend(needed.map(|(column, value)| (column.into(), value)));
        let (columns, values): (Vec<String>, Vec<String>) =
            values.into_iter().map(|(column, value)| (format!("\"{column}\""), value)).unzip();
        let table = &demand.relation.name;
        format!("INSERT INTO \"{table}\" ({}) VALUES ({})", columns.join(", "), values.join(", "))
    };
    (0..example.rows).map(row).collect::<Vec<String>>().join("; ")
}

/// What is wrong with the queries of one statement on one server.
fn wrong_queries(server: &Server, demands: &[RowDemand], (statement, good, bad): &(&str, &str, &str)) -> Vec<String> {
    let query = |demand: &RowDemand| demand.query(|table| format!("\"{}\"", table.name));
    let queries: Vec<String> = match demands.iter().map(query).collect() {
        Ok(queries) => queries,
        Err(part) => return vec![format!("there is no query for {part}")],
    };
    let mut wrong = Vec::new();
    let rows = format!("{good}; {bad}");
    let failed = failure(server, &rows, statement).unwrap_or_default();
    // Class 22: data exception; class 23: integrity constraint violation; 0A000: NaN as an integer.
    let checks = [
        (!queries.is_empty(), "nothing is demanded".to_owned()),
        (counted(server, good, &queries) == Ok(0), format!("good rows: {:?}", counted(server, good, &queries))),
        (failure(server, good, statement).is_none(), format!("good rows: {:?}", failure(server, good, statement))),
        (counted(server, &rows, &queries) == Ok(1), format!("a bad row: {:?}", counted(server, &rows, &queries))),
        (
            failed.starts_with("22") || failed.starts_with("23") || failed == "0A000",
            format!("with a bad row: `{failed}`"),
        ),
    ];
    wrong.extend(checks.into_iter().filter(|(is_right, _)| !is_right).map(|(_, what)| what));
    for (demand, example) in demands.iter().filter_map(|demand| Some((demand, demand.counterexample.as_ref()?))) {
        let rows = rows_of(demand, example);
        let (before, after) = (failure(server, &rows, "SELECT 1"), failure(server, &rows, statement));
        if before.is_some() || after.as_deref() != Some(example.sqlstate) {
            wrong.push(format!("{example} ({}): {before:?}, then {after:?}: {rows}", example.sqlstate));
        }
    }
    wrong
        .into_iter()
        .map(|what| format!("{}: {statement}: {what}\n    {}", server.major(), queries.join("\n    ")))
        .collect()
}

#[test]
fn queries_count_the_rows_that_make_a_statement_fail() {
    let (mut wrong, mut examples) = (Vec::new(), 0);
    for major in [14, 18] {
        let Some(server) = server(major) else { return };
        server.query("postgres", "CREATE DATABASE shop").unwrap();
        server.query("shop", SCHEMA).unwrap();
        for case in DEMANDS.iter().chain(DEMANDS_SINCE_18.iter().filter(|_| major >= 18)) {
            let demands = demands(case.0, major);
            examples += demands.iter().filter(|demand| demand.counterexample.is_some()).count();
            wrong.extend(wrong_queries(&server, &demands, case));
        }
        for (statement, rows) in NONE {
            let (demands, failure) = (demands(statement, major), failure(&server, rows, statement));
            if !demands.is_empty() || failure.is_some() {
                wrong.push(format!("{major}: {statement}: {failure:?}, {demands:#?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(examples > 70, "only {examples} demands have a row as an example");
}

/// An index that the planner can use for the query, if it must not read the table.
#[test]
fn queries_use_the_index_that_is_named() {
    let Some(server) = server(18) else { return };
    server.query("postgres", "CREATE DATABASE shop").unwrap();
    server.query("shop", SCHEMA).unwrap();
    let mut named = 0;
    for (statement, ..) in DEMANDS {
        for demand in demands(statement, 18) {
            let Access::Index { index } = &demand.access else { continue };
            let query = demand.query(|table| format!("\"{}\"", table.name)).unwrap();
            let plan = server.query("shop", &format!("SET enable_seqscan = off; EXPLAIN {query}")).unwrap();
            let plan: Vec<String> = plan.into_iter().flatten().flatten().collect();
            assert!(plan.iter().any(|line| line.contains(index.as_str())), "{statement}: {query}: {plan:#?}");
            named += 1;
        }
    }
    assert!(named > 3, "only {named} queries can use an index");
}
