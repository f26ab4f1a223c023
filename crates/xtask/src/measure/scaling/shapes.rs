//! Migrations that have many of one thing.

/// A kind of migration that can have any number of one thing.
pub(super) struct Shape {
    pub(super) name: &'static str,
    /// How many are measured at most.
    pub(super) count: usize,
    /// Returns the names and texts of files with this number of the thing.
    pub(super) files: fn(usize) -> Vec<(String, String)>,
}

pub(super) const SHAPES: &[Shape] = &[
    shape("statements", 100_000, |count| one(each(count, |at| format!("SELECT {at};\n")))),
    shape("tables", 40_000, |count| one(each(count, table))),
    shape("tables in one transaction", 40_000, |count| one(block(each(count, table)))),
    shape("columns of CREATE TABLE", 1_600, |count| {
        one(format!("CREATE TABLE t ({});\n", listed(count, |at| format!("c{at} int"))))
    }),
    shape("ADD COLUMN", 20_000, |count| one(TABLE.to_owned() + &each(count, add_column))),
    shape("ADD COLUMN of an unseen table", 20_000, |count| one(each(count, add_column))),
    shape("ADD and DROP COLUMN", 10_000, |count| {
        one(TABLE.to_owned() + &each(count, |at| format!("{}ALTER TABLE t DROP COLUMN c{at};\n", add_column(at))))
    }),
    shape("named indexes of a table", 8_000, |count| {
        one(TABLE.to_owned() + &each(count, |at| format!("CREATE INDEX i{at} ON t (id);\n")))
    }),
    shape("unnamed indexes of a table", 8_000, |count| {
        one(TABLE.to_owned() + &"CREATE INDEX ON t (id);\n".repeat(count))
    }),
    shape("unnamed indexes of an unseen table", 8_000, |count| one("CREATE INDEX ON t (id);\n".repeat(count))),
    shape("checks of a table", 8_000, |count| one(TABLE.to_owned() + &each(count, check))),
    shape("unnamed checks of a table", 8_000, |count| {
        one(TABLE.to_owned() + &"ALTER TABLE t ADD CHECK (id > 0) NOT VALID;\n".repeat(count))
    }),
    shape("checks of a table in one transaction", 8_000, |count| one(block(TABLE.to_owned() + &each(count, check)))),
    shape("checks of an unseen table", 8_000, |count| one(each(count, check))),
    shape("foreign keys to a table", 8_000, |count| {
        one(TABLE.to_owned() + &each(count, |at| format!("CREATE TABLE r{at} (id bigint REFERENCES t);\n")))
    }),
    shape("partitions", 8_000, |count| {
        let partition = |at| format!("CREATE TABLE p{at} PARTITION OF p FOR VALUES IN ({at});\n");
        one("CREATE TABLE p (id bigint) PARTITION BY LIST (id);\n".to_owned() + &each(count, partition))
    }),
    shape("partitions by range", 8_000, |count| {
        let partition = |at| format!("CREATE TABLE p{at} PARTITION OF p FOR VALUES FROM ({at}) TO ({});\n", at + 1);
        one("CREATE TABLE p (id bigint) PARTITION BY RANGE (id);\n".to_owned() + &each(count, partition))
    }),
    shape("children", 8_000, |count| {
        one(TABLE.to_owned() + &each(count, |at| format!("CREATE TABLE c{at} () INHERITS (t);\n")))
    }),
    shape("triggers of a table", 8_000, |count| one(TABLE.to_owned() + TRIGGER_FUNCTION + &each(count, trigger))),
    shape("policies of a table", 8_000, |count| {
        one(TABLE.to_owned() + &each(count, |at| format!("CREATE POLICY p{at} ON t USING (id > {at});\n")))
    }),
    shape("locks in one transaction", 20_000, |count| {
        one(block(each(count, |at| format!("ALTER TABLE t{at} ADD COLUMN c int;\n"))))
    }),
    shape("tables in one LOCK", 20_000, |count| {
        one(block(format!("LOCK TABLE {};\n", listed(count, |at| format!("t{at}")))))
    }),
    shape("tables in one DROP", 20_000, |count| one(format!("DROP TABLE {};\n", listed(count, |at| format!("t{at}"))))),
    shape("DROP of many tables", 8_000, |count| {
        one(each(count, table) + &each(count, |at| format!("DROP TABLE t{at};\n")))
    }),
    shape("views of a table", 8_000, |count| {
        one(TABLE.to_owned() + &each(count, |at| format!("CREATE VIEW v{at} AS SELECT id FROM t;\n")))
    }),
    shape("views upon views", 8_000, |count| {
        one("CREATE TABLE v0 (id bigint);\n".to_owned()
            + &each(count, |at| format!("CREATE VIEW v{} AS SELECT id FROM v{at};\n", at + 1)))
    }),
    shape("tables in one FROM", 8_000, |count| {
        one(format!("SELECT 1 FROM {};\n", listed(count, |at| format!("t{at}"))))
    }),
    shape("CREATE OR REPLACE of a view", 8_000, |count| {
        one(TABLE.to_owned() + &"CREATE OR REPLACE VIEW v AS SELECT id FROM t;\n".repeat(count))
    }),
    shape("TRUNCATE of a table", 8_000, |count| one("TRUNCATE t;\n".repeat(count))),
    shape("UPDATE of a table", 8_000, |count| one(each(count, |at| format!("UPDATE t SET a = {at};\n")))),
    shape("UPDATE in one transaction", 8_000, |count| {
        one(block(each(count, |at| format!("UPDATE t SET a = {at};\n"))))
    }),
    shape("INSERT in one transaction", 20_000, |count| {
        one(block(TABLE.to_owned() + &each(count, |at| format!("INSERT INTO t VALUES ({at});\n"))))
    }),
    shape("rows of one INSERT", 50_000, |count| {
        one(format!("{TABLE}INSERT INTO t VALUES {};\n", listed(count, |at| format!("({at})"))))
    }),
    shape("functions", 10_000, |count| one(each(count, function))),
    shape("CREATE OR REPLACE of a function", 8_000, |count| one(each(count, |_| function(0)))),
    shape("replaced functions", 4_000, |count| {
        let replaced = |at| function(at).replace("BEGIN RETURN", "BEGIN RETURN 1 +");
        one(each(count, function) + "CREATE TABLE t (a int CHECK (f0() > 0));\n" + &each(count, replaced))
    }),
    shape("overloads of a function", 4_000, |count| {
        let overload = |at| {
            format!("CREATE DOMAIN d{at} AS int;\nCREATE FUNCTION f(d{at}) RETURNS int LANGUAGE sql AS 'SELECT 1';\n")
        };
        one(each(count, overload))
    }),
    shape("calls of a function", 10_000, |count| one(function(0) + &"SELECT f0();\n".repeat(count))),
    shape("DO blocks", 10_000, |count| one("DO $$ BEGIN PERFORM 1; END $$;\n".repeat(count))),
    shape("statements of a DO block", 4_000, |count| {
        let add = |at| format!("ALTER TABLE t{at} ADD COLUMN c int;\n");
        one(format!("DO $$ BEGIN\n{}END $$;\n", each(count, add)))
    }),
    shape("domains", 6_000, |count| one(each(count, |at| format!("CREATE DOMAIN d{at} AS int CHECK (value > 0);\n")))),
    shape("domains upon domains", 3_000, |count| {
        one("CREATE DOMAIN d0 AS int;\n".to_owned()
            + &each(count, |at| format!("CREATE DOMAIN d{} AS d{at};\n", at + 1)))
    }),
    shape("constraints of a domain", 3_000, |count| {
        let add = |at| format!("ALTER DOMAIN d ADD CONSTRAINT c{at} CHECK (value > {at});\n");
        one("CREATE DOMAIN d AS int;\n".to_owned() + &each(count, add))
    }),
    shape("labels of an enum", 8_000, |count| {
        one("CREATE TYPE e AS ENUM ();\n".to_owned() + &each(count, |at| format!("ALTER TYPE e ADD VALUE 'v{at}';\n")))
    }),
    shape("CTEs that read each other", 20_000, |count| {
        let next = |at| format!(", c{} AS (SELECT a FROM c{at})", at + 1);
        one(format!("WITH c0 AS (SELECT 1 AS a){} SELECT * FROM c{count};\n", each(count, next)))
    }),
    shape("CTEs", 20_000, |count| {
        one(format!("WITH {} SELECT 1;\n", listed(count, |at| format!("c{at} AS (SELECT 1 AS a)"))))
    }),
    shape("suppressions", 20_000, |count| {
        one(each(count, |at| format!("-- pgvet: ignore[drop-table] why\nDROP TABLE t{at};\n")))
    }),
    shape("goose blocks", 50_000, |count| {
        let block = "-- +goose StatementBegin\nSELECT 1;\n-- +goose StatementEnd\n";
        vec![("001_a.sql".to_owned(), "-- +goose Up\n".to_owned() + &block.repeat(count))]
    }),
    shape("goose blocks of two statements", 20_000, |count| {
        let block = "-- +goose StatementBegin\nSELECT 1;\nSELECT 2;\n-- +goose StatementEnd\n";
        vec![("001_a.sql".to_owned(), "-- +goose Up\n".to_owned() + &block.repeat(count))]
    }),
    shape("sections of a file", 8_000, |count| {
        one("-- +goose Up\nSELECT '$a';\n-- +goose Down\nSELECT 1;\n".repeat(count))
    }),
    shape("savepoints", 20_000, |count| one(block(each(count, |at| format!("SAVEPOINT s{at};\n"))))),
    shape("settings", 20_000, |count| one(each(count, |at| format!("SET app.s{at} = '1';\n")))),
    shape("prepared statements", 20_000, |count| one(each(count, |at| format!("PREPARE p{at} AS SELECT 1;\n")))),
    shape("GRANT on a table", 8_000, |count| {
        one(TABLE.to_owned() + &each(count, |at| format!("GRANT SELECT ON t TO r{at};\n")))
    }),
    shape("GRANT to one role", 8_000, |count| one(TABLE.to_owned() + &"GRANT SELECT ON t TO r;\n".repeat(count))),
    shape("comments on a table", 20_000, |count| one(TABLE.to_owned() + &"COMMENT ON TABLE t IS 'x';\n".repeat(count))),
    shape("RENAME of a table", 8_000, |count| {
        one("CREATE TABLE t0 (id int);\n".to_owned()
            + &each(count, |at| format!("ALTER TABLE t{at} RENAME TO t{};\n", at + 1)))
    }),
    shape("extended statistics of a table", 4_000, |count| {
        one(TABLE.to_owned() + &each(count, |at| format!("CREATE STATISTICS s{at} ON id, name FROM t;\n")))
    }),
    shape("tables of a publication", 8_000, |count| {
        let add = |at| format!("{}ALTER PUBLICATION p ADD TABLE t{at};\n", table(at));
        one("CREATE PUBLICATION p;\n".to_owned() + &each(count, add))
    }),
    shape("tables with serial", 8_000, |count| {
        one(each(count, |at| format!("CREATE TABLE t{at} (id serial PRIMARY KEY);\n")))
    }),
    shape("types that are created unless pg_type has them", 4_000, |count| {
        let create = |at| {
            format!(
                "DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_type WHERE typname = 'e{at}') THEN CREATE TYPE e{at} AS \
                 ENUM ('a'); END IF; END $$;\n"
            )
        };
        one(each(count, create))
    }),
    shape("INSERT into a table of an earlier file", 8_000, |count| {
        later(TABLE.to_owned(), each(count, |at| format!("INSERT INTO t (id, name) VALUES ({at}, 'x');\n")))
    }),
    shape("REVOKE on tables of an earlier file", 4_000, |count| {
        later(each(count, table), each(count, |at| format!("REVOKE SELECT ON t{at} FROM r;\n")))
    }),
    shape("tables of an earlier file again", 4_000, |count| later(each(count, table), each(count, table))),
    shape("columns of an earlier file again", 1_600, |count| {
        later(TABLE.to_owned() + &each(count, add_column), each(count, add_column))
    }),
    shape("refused statements about unseen columns", 4_000, |count| {
        later(TABLE.to_owned(), each(count, |at| format!("ALTER TABLE t DROP COLUMN c{at};\n")))
    }),
    shape("policies on tables of an earlier file", 4_000, |count| {
        let policy = |at| {
            let next = at + 1;
            format!("CREATE POLICY p ON t{at} USING (EXISTS (SELECT 1 FROM t{next} WHERE t{next}.id = t{at}.id));\n")
        };
        let protect = |at| format!("ALTER TABLE t{at} ENABLE ROW LEVEL SECURITY;\n");
        later(each(count + 1, table), each(count, protect) + &each(count, policy))
    }),
    shape("foreign keys of tables of an earlier file", 4_000, |count| {
        later(each(count, table), each(count, |at| format!("ALTER TABLE t{at} ADD FOREIGN KEY (id) REFERENCES t0;\n")))
    }),
    shape("functions that write tables of an earlier file", 4_000, |count| {
        later(each(count, table), each(count, writer))
    }),
    shape("transactions that lock two tables", 4_000, |count| {
        let lock = |at| format!("ALTER TABLE t{at} ADD COLUMN c int;\n");
        let files = (1..count).map(|at| (format!("{at:06}_a.sql"), block(lock(at) + &lock(at - 1))));
        [("000000_a.sql".to_owned(), each(count, table))].into_iter().chain(files).collect()
    }),
    shape("ALTER of tables of an earlier file", 4_000, |count| {
        later(each(count, table), each(count, |at| format!("ALTER TABLE t{at} ALTER COLUMN name TYPE varchar(9);\n")))
    }),
    shape("columns of a partitioned table", 400, |count| {
        let partition = |at| format!("CREATE TABLE p{at} PARTITION OF t FOR VALUES IN ({at});\n");
        one("CREATE TABLE t (id bigint) PARTITION BY LIST (id);\n".to_owned()
            + &each(100, partition)
            + &each(count, add_column))
    }),
    shape("DROP of functions of an earlier file", 4_000, |count| {
        later(each(count, function), each(count, |at| format!("DROP FUNCTION f{at}();\n")))
    }),
    shape("domains of columns that get a constraint", 3_000, |count| {
        let domain = |at| format!("CREATE DOMAIN d{at} AS int;\nCREATE TABLE t{at} (a d{at});\n");
        later(each(count, domain), each(count, |at| format!("ALTER DOMAIN d{at} ADD CHECK (value > 0);\n")))
    }),
    shape("files that roll back", 4_000, |count| {
        let text = |at| format!("BEGIN;\nALTER TABLE t{at} ADD COLUMN c int;\nROLLBACK;\n");
        (0..count).map(|at| (format!("{at:06}_a.sql"), text(at))).collect()
    }),
    shape("files with views of an earlier file", 4_000, |count| {
        let views = TABLE.to_owned() + &each(count, |at| format!("CREATE VIEW v{at} AS SELECT id FROM t;\n"));
        let files = (1..=count).map(|at| (format!("{at:06}_a.sql"), table(at)));
        [("000000_a.sql".to_owned(), views)].into_iter().chain(files).collect()
    }),
    shape("files", 10_000, |count| (0..count).map(|at| (format!("{at:06}_a.sql"), table(at))).collect()),
    shape("files about one table", 10_000, |count| {
        (0..count).map(|at| (format!("{at:06}_a.sql"), format!("UPDATE t SET a = {at};\n"))).collect()
    }),
];

const TABLE: &str = "CREATE TABLE t (id bigint PRIMARY KEY, name text);\n";

const TRIGGER_FUNCTION: &str =
    "CREATE FUNCTION tf() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$;\n";

const fn shape(name: &'static str, count: usize, files: fn(usize) -> Vec<(String, String)>) -> Shape {
    Shape { name, count, files }
}

/// A migration of one file.
fn one(text: String) -> Vec<(String, String)> {
    vec![("001_a.sql".to_owned(), text)]
}

/// A migration after another one.
fn later(history: String, text: String) -> Vec<(String, String)> {
    vec![("001_a.sql".to_owned(), history), ("002_b.sql".to_owned(), text)]
}

fn block(text: String) -> String {
    format!("BEGIN;\n{text}COMMIT;\n")
}

fn each(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect()
}

fn listed(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect::<Vec<_>>().join(", ")
}

fn table(at: usize) -> String {
    format!("CREATE TABLE t{at} (id bigint PRIMARY KEY, name text);\n")
}

fn add_column(at: usize) -> String {
    format!("ALTER TABLE t ADD COLUMN c{at} int;\n")
}

fn check(at: usize) -> String {
    format!("ALTER TABLE t ADD CONSTRAINT c{at} CHECK (id > {at}) NOT VALID;\n")
}

fn trigger(at: usize) -> String {
    format!("CREATE TRIGGER g{at} BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION tf();\n")
}

fn function(at: usize) -> String {
    format!("CREATE OR REPLACE FUNCTION f{at}() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN {at}; END $$;\n")
}

fn writer(at: usize) -> String {
    let body = format!("BEGIN INSERT INTO t{at} (id) VALUES (1); EXCEPTION WHEN unique_violation THEN NULL; END");
    format!("CREATE FUNCTION w{at}() RETURNS void LANGUAGE plpgsql AS $$ {body} $$;\n")
}
