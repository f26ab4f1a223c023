//! What rules of the category `compatibility` say about deployed code, on real servers: a statement that works before the
//! migration, and fails or finds other rows after it.

use pgvet_linter::check::check;
use pgvet_linter::confidence::Confidence;
use pgvet_linter::settings::Settings;
use pgvet_model::migration::Migration;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;
use pgvet_trace::server::Server;
use pgvet_trace::server::testing::server;

struct Case {
    /// The rule that reports the migration.
    rule: &'static str,
    schema: &'static str,
    migration: &'static str,
    /// What deployed code runs, in a transaction that is rolled back.
    deployed: &'static str,
    /// The last value that it reads before the migration, and after it; or the SQLSTATE.
    before: &'static str,
    after: &'static str,
}

const DOCUMENTS: &str = "CREATE TABLE documents (id bigint PRIMARY KEY, owner text);
    ALTER TABLE documents ENABLE ROW LEVEL SECURITY;
    CREATE POLICY all_of_them ON documents USING (id > 0);
    GRANT SELECT, INSERT ON documents TO app;
    INSERT INTO documents VALUES (1, 'a')";
const AS_APP: &str = "SET LOCAL ROLE app; SELECT count(*) FROM documents";
const EVENTS: &str = "CREATE TABLE events (id bigint PRIMARY KEY)";
const NOTHING: &str = "CREATE RULE read_only AS ON INSERT TO events DO INSTEAD NOTHING";
const ON_CONFLICT: &str = "INSERT INTO events VALUES (1) ON CONFLICT DO NOTHING; SELECT count(*) FROM events";
const ORDERS: &str = "CREATE TABLE orders (id bigint PRIMARY KEY, total int); INSERT INTO orders VALUES (1, 1)";
const NO_KEY: &str = "ALTER TABLE orders DROP CONSTRAINT orders_pkey";

const CASES: &[Case] = &[
    Case {
        rule: "column-rejects-values",
        schema: "CREATE TABLE orders (id bigint PRIMARY KEY, total int)",
        migration: "ALTER TABLE orders ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY",
        deployed: "INSERT INTO orders (id) VALUES (7) RETURNING id",
        before: "7",
        after: "428C9",
    },
    Case {
        rule: "constraint-rejects-writes",
        schema: "CREATE TABLE orders (id bigint PRIMARY KEY)",
        migration: "ALTER TABLE orders ADD COLUMN currency text;
            ALTER TABLE orders ADD CONSTRAINT has_currency CHECK (currency IS NOT NULL) NOT VALID",
        deployed: "INSERT INTO orders (id) VALUES (7) RETURNING id",
        before: "7",
        after: "23514",
    },
    Case {
        rule: "policy-hides-rows",
        schema: DOCUMENTS,
        migration: "DROP POLICY all_of_them ON documents",
        deployed: AS_APP,
        before: "1",
        after: "0",
    },
    Case {
        rule: "policy-hides-rows",
        schema: DOCUMENTS,
        migration: "CREATE POLICY of_owner ON documents AS RESTRICTIVE USING (owner = current_user)",
        deployed: AS_APP,
        before: "1",
        after: "0",
    },
    Case {
        rule: "privilege-revoked",
        schema: DOCUMENTS,
        migration: "REVOKE SELECT ON documents FROM app",
        deployed: AS_APP,
        before: "1",
        after: "42501",
    },
    Case {
        rule: "primary-key-dropped",
        schema: ORDERS,
        migration: NO_KEY,
        deployed: "INSERT INTO orders VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET total = 2 RETURNING total",
        before: "2",
        after: "42P10",
    },
    Case {
        rule: "primary-key-dropped",
        schema: "CREATE TABLE orders (id bigint PRIMARY KEY, total int); INSERT INTO orders VALUES (1, 1);
            CREATE PUBLICATION changes FOR TABLE orders",
        migration: NO_KEY,
        deployed: "UPDATE orders SET total = 3 RETURNING total",
        before: "3",
        after: "55000",
    },
    Case {
        rule: "rule-replaces-writes",
        schema: EVENTS,
        migration: NOTHING,
        deployed: "INSERT INTO events VALUES (1); SELECT count(*) FROM events",
        before: "1",
        after: "0",
    },
    Case {
        rule: "rule-replaces-writes",
        schema: EVENTS,
        migration: NOTHING,
        deployed: "INSERT INTO events VALUES (1) RETURNING id",
        before: "1",
        after: "0A000",
    },
    Case {
        rule: "rule-replaces-writes",
        schema: EVENTS,
        migration: "CREATE RULE log AS ON INSERT TO events DO ALSO NOTIFY changed",
        deployed: ON_CONFLICT,
        before: "1",
        after: "0A000",
    },
    Case {
        rule: "rule-replaces-writes",
        schema: EVENTS,
        migration: "CREATE RULE log AS ON UPDATE TO events DO ALSO NOTHING",
        deployed: ON_CONFLICT,
        before: "1",
        after: "0A000",
    },
    Case {
        rule: "view-not-updatable",
        schema: "CREATE TABLE users (id bigint PRIMARY KEY, email text);
            CREATE VIEW accounts AS SELECT id, email FROM users; GRANT INSERT ON accounts TO app",
        migration: "CREATE OR REPLACE VIEW accounts AS SELECT DISTINCT id, email FROM users",
        deployed: "INSERT INTO accounts (id) VALUES (7) RETURNING id",
        before: "7",
        after: "55000",
    },
    // The rows refer to nothing, and the constraint is still valid in the catalog.
    Case {
        rule: "foreign-keys-not-checked",
        schema: "CREATE TABLE users (id bigint PRIMARY KEY);
            CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint REFERENCES users)",
        migration: "SET session_replication_role = replica;
            INSERT INTO orders SELECT i, i FROM generate_series(1, 5000) i;
            RESET session_replication_role",
        deployed:
            "SELECT count(*) || ' ' || (SELECT convalidated FROM pg_constraint WHERE conname = 'orders_user_id_fkey')
            FROM orders LEFT JOIN users ON users.id = user_id WHERE users.id IS NULL",
        before: "0 true",
        after: "5000 true",
    },
];

/// The last value that the statement reads, or the SQLSTATE of its error.
fn outcome(server: &Server, deployed: &str) -> String {
    match server.query("shop", &format!("BEGIN; {deployed}; ROLLBACK")) {
        Ok(rows) => rows.last().and_then(|row| row.last().cloned().flatten()).unwrap_or_default(),
        Err(error) => error.message.split("SQLSTATE ").nth(1).map(|state| state[..5].to_owned()).unwrap(),
    }
}

fn rules(case: &Case) -> Vec<&'static str> {
    let file = |path: &str, text: &str| parse_file(SourceFile::new(path.to_owned(), text.to_owned()));
    let (schema, changed) = (file("1.sql", case.schema), file("2.sql", case.migration));
    let settings = Settings { confidence: Confidence::Possible, ..Settings::default() };
    let migration = |file, report| Migration { report, database: 1, ..Migration::new(file) };
    let found = check(&[migration(&schema, false), migration(&changed, true)], &settings);
    found.into_iter().map(|found| found.rule).collect()
}

#[test]
fn deployed_code_fails_as_the_rules_say() {
    for major in [14, 18] {
        let Some(server) = server(major) else { continue };
        server.query("postgres", "CREATE ROLE app").unwrap();
        for case in CASES {
            server.query("postgres", "DROP DATABASE IF EXISTS shop").unwrap();
            server.query("postgres", "CREATE DATABASE shop").unwrap();
            server.query("shop", case.schema).unwrap();
            assert_eq!(outcome(&server, case.deployed), case.before, "PostgreSQL {major}, before {}", case.migration);
            server.query("shop", case.migration).unwrap();
            assert_eq!(outcome(&server, case.deployed), case.after, "PostgreSQL {major}, after {}", case.migration);
            assert!(rules(case).contains(&case.rule), "{}: {:?}", case.migration, rules(case));
        }
    }
}
