use super::*;
use crate::recording::{Outcome, Session};

/// A statement that succeeds, in a transaction by its number or 0 for none.
fn sent(transaction: u32, sql: &str) -> Recorded {
    let transaction = (transaction > 0).then_some(transaction);
    let completed = parse(sql).len() as u64;
    Recorded { session: 1, transaction, sql: sql.to_owned(), outcome: Outcome::Done, completed, ..Recorded::default() }
}

/// The same with the text of its parameters.
fn prepared(transaction: u32, sql: &str, values: &[&str]) -> Recorded {
    let parameter = |value: &&str| Parameter { oid: 0, length: Some(value.len()), value: Some((*value).to_owned()) };
    Recorded { parameters: values.iter().map(parameter).collect(), ..sent(transaction, sql) }
}

/// The same, but its last statement fails.
fn failed(transaction: u32, sql: &str) -> Recorded {
    let sent = sent(transaction, sql);
    let refused = Refused { code: "42703".to_owned(), message: "no such column".to_owned(), when_prepared: false };
    Recorded { completed: sent.completed - 1, outcome: Outcome::Failed(refused), ..sent }
}

fn cut_all(statements: Vec<Recorded>) -> Capture {
    let sessions = vec![Session { number: 1, parameters: Vec::new() }];
    cut(&Recording { sessions, statements, function_calls: 0 }, &Tables::with(None))
}

/// Each migration on a line: its name, `!` if it did not run to its end, its transaction and its statements.
fn shown(capture: &Capture) -> Vec<String> {
    let line = |migration: &Migration| {
        let mark = if migration.is_complete { "" } else { "!" };
        let work: Vec<&str> = migration.work.iter().map(|work| work.sql.as_str()).collect();
        format!("{}{mark} {:?}: {}", migration.name, migration.transaction, work.join("; "))
    };
    assert!(capture.after.is_empty(), "{:?}", capture.after);
    capture.migrations.iter().map(line).collect()
}

/// Prisma notes the start by name, and the end by the identifier of the row.
fn prisma(name: &str, script: Recorded, end: &str) -> Vec<Recorded> {
    let insert = "INSERT INTO \"public\".\"_prisma_migrations\" (\"id\",\"checksum\",\"started_at\",\"migration_name\") \
                  VALUES ($1,$2,$3,$4)";
    let update = format!("UPDATE \"public\".\"_prisma_migrations\" SET \"{end}\" = $1 WHERE \"id\" = $2");
    vec![prepared(0, insert, &["1", "ab", "2024-01-01", name]), script, prepared(0, &update, &["x", "1"])]
}

#[test]
fn statements_after_a_row_of_prisma_belong_to_it() {
    let capture = cut_all(
        [
            prisma("1_a", sent(0, "CREATE TABLE a (id int); CREATE TABLE b (id int);"), "finished_at"),
            prisma("2_b", sent(0, "CREATE TABLE c (id int);"), "finished_at"),
        ]
        .concat(),
    );
    assert_eq!(
        shown(&capture),
        ["1_a One: CREATE TABLE a (id int); CREATE TABLE b (id int)", "2_b Mixed: CREATE TABLE c (id int)"]
    );
    assert_eq!((capture.tool.as_deref(), capture.counts.bookkeeping), (Some("prisma"), 4));
}

#[test]
fn a_migration_that_fails_after_its_row_did_not_finish() {
    let capture = cut_all(
        [
            prisma("1_a", sent(0, "CREATE TABLE a (id int);"), "finished_at"),
            prisma("2_b", failed(0, "CREATE TABLE b (id int); ALTER TABLE a DROP COLUMN no;"), "logs"),
        ]
        .concat(),
    );
    assert_eq!(
        shown(&capture),
        ["1_a Mixed: CREATE TABLE a (id int)", "2_b! One: CREATE TABLE b (id int); ALTER TABLE a DROP COLUMN no"]
    );
    assert_eq!((capture.counts.attempts, capture.counts.tolerated), (0, 0));
    assert_eq!(capture.complete().migrations.len(), 1);
}

fn bun(name: &str) -> Recorded {
    let row = format!("(DEFAULT, '{name}', 1, '2024-01-01 00:00:00+00:00') RETURNING \"id\"");
    sent(0, &format!("INSERT INTO \"bun_migrations\" (\"id\", \"name\", \"group_id\", \"migrated_at\") VALUES {row}"))
}

#[test]
fn statements_after_a_row_of_bun_belong_to_it() {
    let mut statements = vec![
        sent(0, "INSERT INTO \"bun_migration_locks\" (\"id\", \"table_name\") VALUES (DEFAULT, 'bun_migrations')"),
        bun("20240101"),
        sent(0, "CREATE TABLE a (id int)"),
        bun("20240102"),
        sent(1, "BEGIN"),
        sent(1, "CREATE TABLE b (id int)"),
        sent(1, "COMMIT"),
    ];
    let expected = ["20240101 Mixed: CREATE TABLE a (id int)", "20240102 One: CREATE TABLE b (id int)"];
    assert_eq!(shown(&cut_all(statements.clone())), expected);
    statements.extend([bun("20240103"), failed(0, "ALTER TABLE a DROP COLUMN no")]);
    let capture = cut_all(statements);
    assert_eq!(shown(&capture)[2], "20240103! Mixed: ALTER TABLE a DROP COLUMN no");
}

fn atlas(transaction: u32, version: &str) -> Recorded {
    let sql = "INSERT INTO \"atlas_schema_revisions\".\"atlas_schema_revisions\" (\"version\", \"description\", \"applied\") \
               VALUES ($1, $2, $3) ON CONFLICT (\"version\") DO UPDATE SET \"applied\" = \"excluded\".\"applied\"";
    prepared(transaction, sql, &[version, "note", "0"])
}

#[test]
fn atlas_writes_its_row_before_between_and_after() {
    let mut statements = vec![
        atlas(0, ".atlas_cloud_identifier"),
        sent(1, "BEGIN"),
        atlas(1, "20240101"),
        sent(1, "CREATE TABLE a (id int)"),
        atlas(1, "20240101"),
        sent(1, "CREATE TABLE b (id int)"),
        atlas(1, "20240101"),
        sent(1, "COMMIT"),
    ];
    assert_eq!(shown(&cut_all(statements.clone())), ["20240101 One: CREATE TABLE a (id int); CREATE TABLE b (id int)"]);
    statements.extend([atlas(0, "20240102"), failed(0, "ALTER TABLE a DROP COLUMN no"), atlas(0, "20240102")]);
    assert_eq!(shown(&cut_all(statements))[1], "20240102! Mixed: ALTER TABLE a DROP COLUMN no");
}

fn golang_migrate(transaction: u32, version: &str, dirty: &str) -> Vec<Recorded> {
    let insert = "INSERT INTO \"public\".\"schema_migrations\" (version, dirty) VALUES ($1, $2)";
    vec![
        sent(transaction, "BEGIN"),
        sent(transaction, "TRUNCATE \"public\".\"schema_migrations\""),
        prepared(transaction, insert, &[version, dirty]),
        sent(transaction, "COMMIT"),
    ]
}

#[test]
fn a_migration_of_golang_migrate_lies_between_its_rows() {
    let capture = cut_all(
        [
            golang_migrate(1, "1", "true"),
            vec![sent(0, "CREATE TABLE a (id int); CREATE TABLE b (id int);")],
            golang_migrate(2, "1", "false"),
            golang_migrate(3, "2", "true"),
            vec![failed(0, "CREATE TABLE c (id int); ALTER TABLE a DROP COLUMN no;")],
        ]
        .concat(),
    );
    assert_eq!(capture.tool.as_deref(), Some("golang-migrate"));
    assert_eq!(
        shown(&capture),
        [
            "1 One: CREATE TABLE a (id int); CREATE TABLE b (id int)",
            "2! One: CREATE TABLE c (id int); ALTER TABLE a DROP COLUMN no"
        ]
    );
}

#[test]
fn committing_a_failed_transaction_rolls_it_back() {
    let row = "INSERT INTO knex_migrations (name, batch) VALUES ('1_a.js', 1)";
    let attempt = |savepoint: bool| {
        let mut statements = vec![sent(1, "BEGIN"), sent(1, "CREATE TABLE a (id int)")];
        statements.extend(savepoint.then(|| sent(1, "SAVEPOINT s")));
        statements.push(failed(1, "ALTER TABLE a DROP COLUMN no"));
        statements.extend(savepoint.then(|| sent(1, "ROLLBACK TO SAVEPOINT s")));
        statements.extend([sent(1, "COMMIT"), sent(0, "CREATE TABLE b (id int)"), sent(0, row)]);
        cut_all(statements)
    };
    let capture = attempt(false);
    assert_eq!(shown(&capture), ["1_a.js Mixed: CREATE TABLE b (id int)"]);
    assert_eq!(capture.counts.attempts, 2);
    let capture = attempt(true);
    assert_eq!(capture.migrations[0].work.len(), 3);
    assert_eq!((capture.counts.attempts, capture.counts.tolerated), (0, 1));
}

#[test]
fn a_rollback_undoes_settings() {
    let row = sent(0, "INSERT INTO knex_migrations (name, batch) VALUES ('1_a.js', 1)");
    let timeout = "SET lock_timeout = '5s'";
    let settings = |statements: Vec<Recorded>| {
        let work = vec![sent(0, "CREATE TABLE a (id int)"), row.clone()];
        let capture = cut_all([statements, work].concat());
        let last = capture.migrations[0].work.last().unwrap().settings.after(&SessionSettings::default());
        last.join("; ")
    };
    assert_eq!(settings(vec![sent(1, "BEGIN"), sent(1, timeout), sent(1, "COMMIT")]), timeout);
    assert_eq!(settings(vec![sent(1, "BEGIN"), sent(1, timeout), sent(1, "ROLLBACK")]), "");
    let failed = failed(1, "ALTER TABLE b DROP COLUMN no");
    assert_eq!(settings(vec![sent(1, "BEGIN"), sent(1, timeout), failed, sent(1, "COMMIT")]), "");
    let savepoint = ["BEGIN", "SAVEPOINT s", timeout, "ROLLBACK TO SAVEPOINT s", "COMMIT"];
    assert_eq!(settings(savepoint.map(|sql| sent(1, sql)).to_vec()), "");
}

#[test]
fn statements_that_are_judged_apart_are_not_folded() {
    let row = sent(0, "INSERT INTO knex_migrations (name, batch) VALUES ('1_a.js', 1)");
    let times = |statements: Vec<Recorded>| {
        let capture = cut_all([statements, vec![row.clone()]].concat());
        capture.migrations[0].work.iter().map(|work| work.times).collect::<Vec<_>>()
    };
    let [one, two] = ["UPDATE a SET b = 1", "UPDATE a SET b = 2"].map(|sql| sent(1, sql));
    let (begin, commit) = (sent(1, "BEGIN"), sent(1, "COMMIT"));
    let between = |between: Vec<Recorded>| {
        times([vec![begin.clone(), one.clone()], between, vec![two.clone(), commit.clone()]].concat())
    };
    assert_eq!(between(vec![sent(1, "SELECT c FROM a")]), [2, 1]);
    assert_eq!(between(vec![sent(1, "ALTER TABLE a ADD COLUMN c int")]), [1, 1, 1]);
    assert_eq!(between(vec![sent(1, "SET lock_timeout = '5s'")]), [1, 1]);
    // The first one had no effect.
    let undone = ["SAVEPOINT s", "UPDATE a SET b = 3", "ROLLBACK TO SAVEPOINT s"].map(|sql| sent(1, sql));
    assert_eq!(times([vec![begin.clone()], undone.to_vec(), vec![two.clone(), commit.clone()]].concat()), [1, 1]);
}

#[test]
fn a_migration_that_flyway_notes_as_failed_did_not_run_to_its_end() {
    let row = |script: &str, success: &str| {
        let insert = "INSERT INTO flyway_schema_history (installed_rank, script, success) VALUES ($1, $2, $3)";
        prepared(0, insert, &["1", script, success])
    };
    let capture = cut_all(vec![
        sent(0, "CREATE TABLE a (id int)"),
        row("V1__a.sql", "TRUE"),
        failed(0, "CREATE INDEX CONCURRENTLY ON a (no)"),
        row("V2__b.sql", "FALSE"),
    ]);
    assert_eq!(
        shown(&capture),
        ["V1__a.sql Mixed: CREATE TABLE a (id int)", "! Mixed: CREATE INDEX CONCURRENTLY ON a (no)"]
    );
}

#[test]
fn set_config_is_a_setting_of_the_session() {
    let capture = cut_all(vec![
        prepared(0, "SELECT set_config('search_path', $1, false)", &["\"app\",\"$user\", public"]),
        sent(0, "SELECT set_config('TimeZone', 'UTC', false)"),
        sent(0, "CREATE SCHEMA IF NOT EXISTS \"drizzle\""),
        sent(0, "CREATE TABLE a (id int)"),
        sent(0, "INSERT INTO \"drizzle\".\"__drizzle_migrations\" (hash, created_at) VALUES ('ab', 1)"),
    ]);
    assert_eq!(shown(&capture), ["ab Mixed: CREATE TABLE a (id int)"]);
    let settings = capture.migrations[0].work[0].settings.after(&SessionSettings::default());
    assert_eq!(settings, ["SET search_path = app, \"$user\", public"]);
}

#[test]
fn a_row_leaves_open_transactions_of_other_sessions_to_theirs() {
    let other = |transaction, sql| Recorded { session: 2, ..sent(transaction, sql) };
    let row = |name: &str| format!("INSERT INTO knex_migrations (name, batch) VALUES ('{name}', 1)");
    let statements = vec![
        sent(1, "BEGIN"),
        sent(1, "CREATE TABLE a (id int)"),
        other(1, "BEGIN"),
        other(1, "CREATE TABLE b (id int)"),
        sent(1, &row("a.js")),
        sent(1, "COMMIT"),
        other(1, &row("b.js")),
        other(1, "COMMIT"),
    ];
    let sessions = [1, 2].map(|number| Session { number, parameters: Vec::new() }).to_vec();
    let recording = Recording { sessions, statements, function_calls: 0 };
    let capture = cut(&recording, &Tables::with(None));
    assert_eq!(shown(&capture), ["a.js One: CREATE TABLE a (id int)", "b.js One: CREATE TABLE b (id int)"]);
    // A row in a transaction without work, as of a tool with a connection of its own for its table, records all of it.
    let mut statements = recording.statements;
    statements.remove(1);
    let capture = cut(&Recording { statements, ..recording }, &Tables::with(None));
    assert_eq!(shown(&capture), ["a.js Shared: CREATE TABLE b (id int)", "b.js Mixed: "]);
}

#[test]
fn a_pipeline_that_fails_had_no_effect() {
    let capture = cut_all(vec![
        sent(1, "CREATE TABLE a (id int)"),
        failed(1, "SELECT no FROM a"),
        sent(0, "CREATE TABLE b (id int)"),
        sent(0, "INSERT INTO knex_migrations (name, batch) VALUES ('1.js', 1)"),
    ]);
    assert_eq!(shown(&capture), ["1.js Mixed: CREATE TABLE b (id int)"]);
    assert_eq!(capture.counts.attempts, 2);
}

#[test]
fn a_row_that_was_rolled_back_records_nothing() {
    let row = "INSERT INTO knex_migrations (name, batch) VALUES ('1.js', 1)";
    let attempt = || vec![sent(1, "BEGIN"), sent(1, "CREATE TABLE a (id int)"), sent(1, row)];
    let capture = cut_all([attempt(), vec![failed(1, "COMMIT")]].concat());
    assert_eq!(shown(&capture), ["1.js! One: CREATE TABLE a (id int)"]);
    assert!(capture.complete().migrations.is_empty());
    let again = vec![sent(2, "BEGIN"), sent(2, "CREATE TABLE a (id int)"), sent(2, row), sent(2, "COMMIT")];
    let capture = cut_all([attempt(), vec![sent(1, "ROLLBACK")], again].concat());
    assert_eq!(shown(&capture), ["1.js One: CREATE TABLE a (id int)"]);
    assert_eq!(capture.counts.attempts, 1);
}

/// The work of a migration of these statements, before its row.
fn work(statements: Vec<Recorded>) -> Vec<String> {
    let row = sent(0, "INSERT INTO knex_migrations (name, batch) VALUES ('1_a.js', 1)");
    let capture = cut_all([statements, vec![row]].concat());
    let work = capture.migrations[0].work.iter().filter(|work| !work.is_undone);
    work.map(|work| work.sql.clone()).collect()
}

#[test]
fn transactions_of_one_text_are_kept_apart() {
    let rolled_back = "BEGIN; DROP TABLE a; COMMIT; BEGIN; CREATE TABLE b (id int); ROLLBACK";
    assert_eq!(work(vec![sent(1, rolled_back)]), ["DROP TABLE a"]);
    assert_eq!(work(vec![sent(1, "BEGIN; CREATE TABLE b (id int); ROLLBACK; DROP TABLE a")]), ["DROP TABLE a"]);
    let open = sent(1, "BEGIN; DROP TABLE a; COMMIT; BEGIN; DROP TABLE b");
    assert_eq!(work(vec![open.clone(), sent(2, "COMMIT")]), ["DROP TABLE a", "DROP TABLE b"]);
    assert_eq!(work(vec![open, sent(2, "ROLLBACK")]), ["DROP TABLE a"]);
    let other = sent(3, "COMMIT; BEGIN; DROP TABLE b");
    assert_eq!(
        work(vec![sent(3, "BEGIN"), sent(3, "DROP TABLE a"), other, sent(4, "END")]),
        ["DROP TABLE a", "DROP TABLE b"]
    );
}

#[test]
fn a_prepared_transaction_may_be_committed() {
    let statements = ["BEGIN", "DROP TABLE a", "PREPARE TRANSACTION 'x'"].map(|sql| sent(1, sql)).to_vec();
    assert_eq!(work([statements, vec![sent(0, "COMMIT PREPARED 'x'")]].concat()), ["DROP TABLE a"]);
}

#[test]
fn a_savepoint_that_is_refused_undoes_nothing() {
    let statements = vec![failed(0, "SAVEPOINT s"), sent(0, "DROP TABLE a"), failed(0, "ROLLBACK TO SAVEPOINT s")];
    assert_eq!(work(statements), ["DROP TABLE a"]);
}

#[test]
fn changes_of_other_tables_beside_those_of_the_tool_are_work() {
    let hidden = "WITH gone AS (DELETE FROM orders) DELETE FROM knex_migrations_lock";
    assert_eq!(work(vec![sent(0, hidden), sent(0, "DELETE FROM knex_migrations_lock")]), [hidden]);
}
