//! The traces of INSERTs that a unique index refuses, compared with the linter's findings about them.

use pgvet_linter::check::check;
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::settings::Settings;
use pgvet_model::migration::Migration;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;
use pgvet_trace::server::Server;
use pgvet_trace::server::testing::server;

const FAILURES: u32 = 20_000;

const SCHEMA: &str = "
    CREATE TABLE t (id bigint PRIMARY KEY, a int, email text, b int, tenant int, code text, c int)
        WITH (autovacuum_enabled = false);
    CREATE INDEX t_a ON t (a);
    CREATE UNIQUE INDEX t_email ON t (lower(email)) WHERE b IS NOT NULL;
    CREATE INDEX t_b ON t (b);
    CREATE UNIQUE INDEX t_tenant_code ON t (tenant, code);
    CREATE INDEX t_c ON t (c);
";

/// An INSERT that one index refuses, as the body of a loop over `i`.
struct Case {
    refused_by: &'static str,
    /// `id`, `email`, `tenant` and `code`; what is not to be judged comes from a generator.
    row: &'static str,
}

const CASES: [Case; 3] = [
    Case { refused_by: "t_pkey", row: "1, gen_random_uuid(), i, gen_random_uuid()" },
    Case { refused_by: "t_email", row: "nextval('ids'), 'A@example.org', i, gen_random_uuid()" },
    Case { refused_by: "t_tenant_code", row: "nextval('ids'), gen_random_uuid(), 1, 'first'" },
];

fn attempt(case: &Case, on_conflict: &str) -> String {
    format!("INSERT INTO t (a, b, c, id, email, tenant, code) VALUES (i, i, i, {}){on_conflict};", case.row)
}

fn block(statement: &str) -> String {
    format!(
        "DO $$ BEGIN FOR i IN 1..{FAILURES} LOOP
            BEGIN {statement} EXCEPTION WHEN unique_violation THEN END;
        END LOOP; END $$"
    )
}

/// The table and its indexes in the order of their oids, with their sizes in pages.
fn pages(server: &Server) -> Vec<(String, u64)> {
    let sql = "SELECT relname, pg_relation_size(oid) / 8192 FROM pg_class
        WHERE oid = 't'::regclass OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 't'::regclass)
        ORDER BY oid";
    let rows = server.query("postgres", sql).unwrap();
    rows.iter().map(|row| (row[0].clone().unwrap(), row[1].as_ref().unwrap().parse().unwrap())).collect()
}

/// The files and counters that grow while a statement runs.
fn grown(server: &Server, sql: &str) -> Vec<String> {
    let before = pages(server);
    server.query("postgres", sql).unwrap();
    let after = pages(server);
    let grew = before.iter().zip(&after).filter(|(before, after)| after.1 > before.1);
    grew.map(|(_, after)| after.0.clone()).collect()
}

/// The finding about a DO block.
fn finding(block: &str) -> Diagnostic {
    let file = |path: &str, text: &str| parse_file(SourceFile::new(path.to_owned(), text.to_owned()));
    let (schema, loaded) = (file("1.sql", SCHEMA), file("2.sql", block));
    let migration = |file, report| Migration { report, database: 1, ..Migration::new(file) };
    let found = check(&[migration(&schema, false), migration(&loaded, true)], &Settings::default());
    found.into_iter().find(|found| found.rule == "exception-driven-upsert").expect("the handler is reported")
}

/// The names between backquotes in `a dead row in `t` and dead entries in ...`.
fn predicted(found: &Diagnostic) -> Vec<String> {
    let (_, left) = found.message.split_once(" leaves ").expect("the message says what is left");
    left.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The ON CONFLICT clause of the help.
fn on_conflict(found: &Diagnostic) -> String {
    let help = found.help.as_deref().unwrap_or_default();
    let clause = help.split("\n    INSERT ... ").nth(1).expect("the help names a target");
    format!(" {}", clause.trim_end_matches(';'))
}

#[test]
fn failed_inserts_grow_the_predicted_indexes_and_on_conflict_none() {
    for major in [15, 18] {
        let Some(server) = server(major) else { continue };
        for case in &CASES {
            let setup = format!(
                "DROP TABLE IF EXISTS t; DROP SEQUENCE IF EXISTS ids; CREATE SEQUENCE ids START 10; {SCHEMA}
                 INSERT INTO t VALUES (1, 0, 'a@example.org', 0, 1, 'first', 0)"
            );
            server.query("postgres", &setup).unwrap();
            let with_handler = block(&attempt(case, ""));
            let found = finding(&with_handler);
            assert!(found.labels.iter().any(|label| label.message.contains(case.refused_by)), "{found:?}");
            let prediction = predicted(&found);
            assert_eq!(grown(&server, &with_handler), prediction, "PostgreSQL {major}, {}", case.refused_by);
            let with_clause = block(&attempt(case, &on_conflict(&found)));
            assert_eq!(grown(&server, &with_clause), [""; 0], "PostgreSQL {major}, {with_clause}");
        }
    }
}

/// Without a target ON CONFLICT looks at the unique constraints in turn, and fails where it comes to a deferrable one.
#[test]
fn a_deferrable_constraint_refuses_on_conflict_without_target() {
    let Some(server) = server(18) else { return };
    let setup = "CREATE TABLE d (a int UNIQUE, b int UNIQUE DEFERRABLE); INSERT INTO d VALUES (1, 1)";
    server.query("postgres", setup).unwrap();
    let error = server.query("postgres", "INSERT INTO d VALUES (2, 2) ON CONFLICT DO NOTHING").unwrap_err();
    assert!(error.message.contains("SQLSTATE 55000"), "{}", error.message);
    server.query("postgres", "INSERT INTO d VALUES (1, 2) ON CONFLICT (a) DO NOTHING").unwrap();
}

/// PL/pgSQL does not know whether a target means the column or the variable; the name of the constraint is clear.
#[test]
fn a_target_that_is_also_a_variable_is_ambiguous() {
    let Some(server) = server(18) else { return };
    let run = |target: &str| {
        let sql = format!(
            "CREATE TABLE IF NOT EXISTS v (name text CONSTRAINT v_name UNIQUE);
             DO $$ DECLARE name text := 'a'; BEGIN INSERT INTO v VALUES (name) ON CONFLICT {target} DO NOTHING; END $$"
        );
        server.query("postgres", &sql)
    };
    assert!(run("(name)").unwrap_err().message.contains("SQLSTATE 42702"));
    run("ON CONSTRAINT v_name").unwrap();
}
