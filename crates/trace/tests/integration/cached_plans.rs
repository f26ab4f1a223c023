//! Prepared statements whose columns a migration changes, as `cached-plan-result-changes` reports them, on real servers.

use pgvet_linter::check::check;
use pgvet_linter::settings::Settings;
use pgvet_model::application::{Application, KnownStatement, KnownTransaction, QueryLibrary};
use pgvet_model::migration::Migration;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{ParsedFile, parse_file};
use pgvet_trace::server::testing::server;

struct Case {
    query: &'static str,
    migration: &'static str,
    fails: bool,
}

const SCHEMA: &str = "CREATE TABLE users (id bigint PRIMARY KEY, name varchar(10), age int);
    CREATE VIEW names AS SELECT id, name FROM users";
const ADD: &str = "ALTER TABLE users ADD COLUMN city text";
const WIDEN: &str = "ALTER TABLE users ALTER COLUMN age TYPE bigint";

const CASES: &[Case] = &[
    Case { query: "SELECT * FROM users", migration: ADD, fails: true },
    Case { query: "SELECT users.* FROM users", migration: ADD, fails: true },
    Case { query: "SELECT id, name FROM users", migration: ADD, fails: false },
    Case { query: "SELECT count(*) FROM users", migration: ADD, fails: false },
    Case { query: "INSERT INTO users VALUES (1) RETURNING *", migration: ADD, fails: true },
    Case { query: "UPDATE users SET age = 1", migration: ADD, fails: false },
    Case { query: "SELECT * FROM (SELECT * FROM users) u", migration: ADD, fails: true },
    Case { query: "SELECT * FROM names", migration: ADD, fails: false },
    Case { query: "SELECT * FROM users", migration: "ALTER TABLE users DROP COLUMN age", fails: true },
    Case { query: "SELECT age FROM users", migration: WIDEN, fails: true },
    Case { query: "SELECT id FROM users WHERE age > 5", migration: WIDEN, fails: false },
    Case { query: "DELETE FROM users RETURNING age", migration: WIDEN, fails: true },
    Case {
        query: "SELECT name FROM users",
        migration: "DROP VIEW names; ALTER TABLE users ALTER COLUMN name TYPE varchar(20)",
        fails: true,
    },
    Case { query: "SELECT * FROM users", migration: "ALTER TABLE users RENAME COLUMN age TO years", fails: true },
    Case { query: "SELECT * FROM users", migration: "ALTER TABLE users ALTER COLUMN age SET NOT NULL", fails: false },
];

fn parsed(path: &str, text: &str) -> ParsedFile {
    parse_file(SourceFile::new(path.to_owned(), text.to_owned()))
}

fn is_reported(case: &Case) -> bool {
    let (schema, changed, query) = (parsed("1.sql", SCHEMA), parsed("2.sql", case.migration), parsed("q", case.query));
    let ast = query.statements[0].parsed.clone().unwrap();
    let statement = KnownStatement { place: "q.sql:1".into(), sql: case.query.into(), ast };
    let known = KnownTransaction::new(vec![statement], Some(QueryLibrary::Sqlx));
    let application = Application::new(vec![known]);
    let only = vec!["cached-plan-result-changes".to_owned()];
    let settings = Settings { only, application: application.into(), ..Settings::default() };
    let migration = |file, report| Migration { report, database: 1, ..Migration::new(file) };
    !check(&[migration(&schema, false), migration(&changed, true)], &settings).is_empty()
}

#[test]
fn prepared_statements_fail_as_the_rule_says() {
    for major in [14, 18] {
        let Some(server) = server(major) else { continue };
        for case in CASES {
            server.query("postgres", "DROP DATABASE IF EXISTS shop").unwrap();
            server.query("postgres", "CREATE DATABASE shop").unwrap();
            server.query("shop", SCHEMA).unwrap();
            let sql = format!("PREPARE p AS {}; EXECUTE p; TRUNCATE users; {}; EXECUTE p", case.query, case.migration);
            let outcome = server.query("shop", &sql);
            let failed = outcome
                .as_ref()
                .is_err_and(|error| error.message.contains("cached plan must not change result type (SQLSTATE 0A000)"));
            assert!(failed || outcome.is_ok(), "PostgreSQL {major}, {sql}: {outcome:?}");
            assert_eq!(failed, case.fails, "PostgreSQL {major}, {sql}");
        }
    }
}

#[test]
fn the_rule_reports_what_fails() {
    for case in CASES {
        assert_eq!(is_reported(case), case.fails, "{}: {}", case.query, case.migration);
    }
}
