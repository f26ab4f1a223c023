//! The tool, direction and transaction of files by their places and texts.

use super::*;
use std::fs;

fn one(path: &str, text: &str) -> (Tool, Direction, TransactionMode) {
    let layout = detect(Path::new(path), text, &Folders::default(), &Config::default());
    let [section] = layout.sections[..] else { panic!("{layout:?}") };
    (layout.tool, section.direction, section.transaction)
}

#[test]
fn names_tell_the_tool() {
    use Direction::{Down, Up};
    use TransactionMode::{Autocommit, SingleString, Transaction};
    for (path, expected) in [
        ("nowhere/1_a.up.sql", (Tool::GolangMigrate, Up, SingleString)),
        ("nowhere/1_a.down.sql", (Tool::GolangMigrate, Down, SingleString)),
        ("nowhere/001-a.up.sql", (Tool::Plain, Up, Transaction)),
        ("nowhere/001-a.down.sql", (Tool::Plain, Down, Transaction)),
        ("nowhere/1_a.postgres.up.sql", (Tool::Pop, Up, Transaction)),
        ("nowhere/1_a.postgres.autocommit.up.sql", (Tool::Pop, Up, SingleString)),
        ("nowhere/1_a/up.sql", (Tool::Diesel, Up, Transaction)),
        ("nowhere/1_a/down.sql", (Tool::Diesel, Down, Transaction)),
        ("nowhere/0001.do.a.sql", (Tool::Postgrator, Up, SingleString)),
        ("nowhere/0001.undo.a.sql", (Tool::Postgrator, Down, SingleString)),
        ("nowhere/1_a/migration.sql", (Tool::Prisma, Up, SingleString)),
        ("nowhere/V1__a.sql", (Tool::Flyway, Up, Transaction)),
        ("nowhere/U1__a.sql", (Tool::Flyway, Down, Transaction)),
        ("supabase/migrations/1_a.sql", (Tool::Supabase, Up, SingleString)),
        ("nowhere/1_a.sql", (Tool::Plain, Up, Transaction)),
        ("nowhere/a.sql", (Tool::Plain, Up, Autocommit)),
        ("sql/pgmq--1.4.3.sql", (Tool::Plain, Up, Transaction)),
        ("sql/pgmq--1.4.3--1.4.4.sql", (Tool::Plain, Up, Transaction)),
        ("sql/users--and--orders.sql", (Tool::Plain, Up, Autocommit)),
    ] {
        assert_eq!(one(path, "SELECT 1;"), expected, "{path}");
    }
}

#[test]
fn tools_have_the_names_that_configuration_reads() {
    for (tool, name) in Tool::NAMES {
        assert_eq!(serde_json::to_value(tool).unwrap(), name);
        assert_eq!(tool.as_str(), name);
    }
}

#[test]
fn configuration_goes_before_what_is_seen() {
    let mut config = Config::default();
    config.migrations.tool = Some(Tool::Dbmate);
    config.migrations.transaction = Some(TransactionMode::SingleString);
    let detect = |text: &str| detect(Path::new("m/1_a.up.sql"), text, &Folders::default(), &config);
    let layout = detect("SELECT 1;");
    assert_eq!((layout.tool, layout.sections[0].transaction), (Tool::Dbmate, TransactionMode::SingleString));
    assert_eq!(detect("-- +goose Up\nSELECT 1;\n-- +goose Down\n").sections.len(), 1);
    config.migrations.transaction = Some(TransactionMode::Autocommit);
    let text = "-- migrate:up transaction:false\nSELECT 1;";
    let opted_out = super::detect(Path::new("m/1.sql"), text, &Folders::default(), &config);
    assert_eq!(opted_out.sections[0].transaction, TransactionMode::SingleString);
}

#[test]
fn marks_alone_do_not_prove_the_tool() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join(".git")).unwrap();
    let path = root.path().join("internal/db/1_a.sql");
    let unproven = |tool: Option<Tool>, module: &str| {
        fs::write(root.path().join("go.mod"), module).unwrap();
        let mut config = Config::default();
        config.migrations.tool = tool;
        let text = "-- +migrate Up\nCREATE FUNCTION f() RETURNS int AS $$\nSELECT 1;\n$$ LANGUAGE sql;\n";
        detect(&path, text, &Folders::default(), &config).refusals[0].unproven
    };
    assert_eq!(unproven(None, "module a\n"), Some("sql-migrate"));
    assert_eq!(
        unproven(None, "require (\n\tgithub.com/rubenv/sql-migrate v1.8.1 // indirect\n)\n"),
        Some("sql-migrate")
    );
    assert_eq!(unproven(None, "require (\n\tgithub.com/rubenv/sql-migrate v1.8.1\n)\n"), None);
    assert_eq!(unproven(Some(Tool::SqlMigrate), "module a\n"), None);
    fs::write(root.path().join("dbconfig.yml"), "").unwrap();
    assert_eq!(unproven(None, "module a\n"), None);
}

#[test]
fn flyway_leaves_the_transaction_out_where_postgresql_refuses_it() {
    let text = "SET lock_timeout = '1s';\ncreate unique index concurrently i on t (a);";
    assert_eq!(one("V1__a.sql", text).2, TransactionMode::Autocommit);
    assert_eq!(one("V1__a.sql", "-- CREATE INDEX CONCURRENTLY\nSELECT 1").2, TransactionMode::Transaction);
}

#[test]
fn files_beside_a_migration_tell_how_it_is_run() {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    for (path, text) in [
        ("diesel/1_a/metadata.toml", "run_in_transaction = false\n"),
        ("flyway/V1__a.sql.conf", "executeInTransaction=false\n"),
        ("atlas/atlas.sum", "h1:x\n"),
        (
            "checksums/atlas.sum",
            "h1:x\n1_a.down.sql h1:x\n1_a.up.sql h1:x\n2_rollback_names.sql h1:x\n3_b.sql h1:x\n3_b_down.sql h1:x\n",
        ),
        ("checksums/1_a.up.sql", ""),
        ("checksums/1_a.down.sql", ""),
        ("checksums/2_rollback_names.sql", ""),
        ("checksums/3_b.sql", ""),
        ("checksums/3_b_down.sql", ""),
        ("drizzle/meta/_journal.json", r#"{"entries":[{"idx":0,"tag":"0000_b"}]}"#),
        ("rust/Cargo.toml", "[dependencies]\nsqlx = \"0.8\"\n"),
        ("old_rust/Cargo.toml", "[dependencies]\nsqlx = \"0.7\"\n"),
        ("supabase/migrations/meta/_journal.json", r#"{"entries":[{"idx":0,"tag":"0000_b"}]}"#),
        ("graphile/committed/000001.sql", ""),
        ("graphile/current.sql", ""),
        ("sqitch/sqitch.plan", "%project=x\napp/a 2024-01-01T00:00:00Z\n"),
        ("diesel_too/1_a/up.sql", ""),
        ("diesel_too/2_b/up.sql", ""),
        ("diesel_too/2_b/down.sql", ""),
        ("own/1_a/up.sql", ""),
    ] {
        fs::create_dir_all(at(path).parent().unwrap()).unwrap();
        fs::write(at(path), text).unwrap();
    }
    use TransactionMode::{Autocommit, SingleString, Transaction};
    for (path, text, tool, transaction) in [
        ("diesel/1_a/up.sql", "", Tool::Diesel, SingleString),
        ("flyway/V1__a.sql", "", Tool::Flyway, Autocommit),
        ("atlas/1.sql", "", Tool::Atlas, Transaction),
        ("atlas/1.sql", "-- atlas:txmode none\n\nSELECT 1;", Tool::Atlas, Autocommit),
        ("drizzle/0000_b.sql", "", Tool::Drizzle, Transaction),
        ("rust/migrations/1_a.sql", "", Tool::Sqlx, Transaction),
        ("rust/migrations/1_a.sql", "-- no-transaction\nSELECT 1", Tool::Sqlx, SingleString),
        ("old_rust/migrations/1_a.sql", "-- no-transaction\nSELECT 1", Tool::Sqlx, Transaction),
        ("supabase/migrations/0000_b.sql", "", Tool::Supabase, SingleString),
        ("graphile/committed/000001.sql", "", Tool::GraphileMigrate, Transaction),
        ("graphile/current.sql", "", Tool::GraphileMigrate, Transaction),
        ("graphile/afterReset.sql", "", Tool::GraphileMigrate, SingleString),
        ("sqitch/deploy/app/a.sql", "", Tool::Sqitch, Autocommit),
        ("diesel_too/1_a/up.sql", "", Tool::Diesel, Transaction),
        ("1_a.sql", "LOCK TABLE t IN SHARE MODE;", Tool::Plain, Transaction),
        ("1_a.sql", "BEGIN;\nLOCK TABLE t IN SHARE MODE;\nCOMMIT;", Tool::Plain, Autocommit),
        ("lock.sql", "LOCK TABLE t IN SHARE MODE;", Tool::Plain, Autocommit),
        // A program of its own, which knows no rollback migrations and probably opens a transaction.
        ("own/1_a/up.sql", "", Tool::Plain, Transaction),
    ] {
        let layout = detect(&at(path), text, &Folders::default(), &Config::default());
        assert_eq!((layout.tool, layout.sections[0].transaction), (tool, transaction), "{path}");
    }
    for (path, direction, unlisted) in [
        ("sqitch/deploy/app/a.sql", Direction::Up, false),
        ("sqitch/deploy/app/unplanned.sql", Direction::Down, true),
        ("sqitch/revert/app/a.sql", Direction::Down, false),
        ("checksums/1_a.up.sql", Direction::Up, false),
        ("checksums/1_a.down.sql", Direction::Down, false),
        ("checksums/2_rollback_names.sql", Direction::Up, false),
        ("checksums/3_b.sql", Direction::Up, false),
        ("checksums/3_b_down.sql", Direction::Down, false),
        ("drizzle/0000_b.sql", Direction::Up, false),
        ("drizzle/0001_not_in_the_journal.sql", Direction::Down, true),
    ] {
        let layout = detect(&at(path), "", &Folders::default(), &Config::default());
        assert_eq!((layout.sections[0].direction, layout.unlisted), (direction, unlisted), "{path}");
    }
}

#[test]
fn files_tell_against_an_assumed_transaction() {
    use KnownTransaction::{Assumed, Doubtful, Known, Recognized, Selective, Unlikely};
    use TransactionMode::{Autocommit, Transaction};
    const INDEX: &str = "CREATE INDEX CONCURRENTLY i ON t (a);";
    let both = format!("ALTER TABLE t ADD COLUMN a int; {INDEX}");
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
        fs::write(root.path().join(path), text).unwrap();
    };
    let guessed = |path: &str, text: &str| {
        write(path, text);
        let layout = detect(&root.path().join(path), text, &Folders::default(), &Config::default());
        (layout.sections[0].transaction, layout.known_transaction)
    };
    assert_eq!(guessed("a/1_a.sql", "SELECT 1;"), (Transaction, Assumed));
    assert_eq!(guessed("a/2_b.sql", &both), (Transaction, Assumed));
    assert_eq!(guessed("a/3_c.sql", &both), (Transaction, Doubtful));
    assert_eq!(guessed("b/1_a.sql", &format!("SET lock_timeout = 0; {INDEX}")), (Autocommit, Unlikely));
    assert_eq!(guessed("b/2_b.sql", &both), (Transaction, Assumed));
    assert_eq!(guessed("b/3_c.sql", "SELECT 1;"), (Transaction, Doubtful));
    assert_eq!(guessed("c/1_a.sql", INDEX), (Autocommit, Unlikely));
    assert_eq!(guessed("c/2_b.sql", "SELECT 1;"), (Transaction, Assumed));
    assert_eq!(guessed("b/4_d.sql", &format!("BEGIN; {INDEX} COMMIT;")), (Autocommit, Known));
    fs::create_dir(root.path().join(".git")).unwrap();
    write("migrate.go", "//go:embed code/*.sql\nfiles.ReadFile(name); tx, err := pool.Begin(ctx)");
    assert_eq!(guessed("code/1_a.sql", INDEX), (Transaction, Recognized));
    write("migrate.go", "//go:embed code/*.sql\nfiles.ReadFile(name); pool.Begin(ctx) // not for CONCURRENTLY");
    assert_eq!(guessed("code/2_b.sql", INDEX), (Autocommit, Unlikely));
    assert_eq!(guessed("code/3_c.sql", &both), (Transaction, Selective));
    let replaced = "CREATE INDEX CONCURRENTLY i ON /* SCHEMA */.t (a);";
    assert_eq!(guessed("d/20240101000000_a/migration.sql", replaced).1, KnownTransaction::Replaced);
    assert_eq!(guessed("d/20240101000000_a/migration.sql", INDEX).1, Known);
}
