//! How the files of each migration tool are run, told from small repositories in `fixtures/frameworks`.

use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::settings::Settings;
use pgvet_linter::severity::Severity;
use pgvet_model::migration::{Direction, TransactionMode};
use pgvet_workspace::config::ConfigSource;
use pgvet_workspace::{Project, ProjectFile, Request, Tool};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    match name {
        // A capture lies beside the program that it comes from.
        "captured" => fixtures.join("capture/alembic/captured"),
        _ => fixtures.join("frameworks").join(name),
    }
}

fn load(paths: Vec<PathBuf>) -> Project {
    let request = Request { paths, config: ConfigSource::None, ..Request::default() };
    Project::load(&request, &|_, _| {}).unwrap()
}

/// The files that are run, in order: the folder of the database, then path, tool, direction, transaction, number of
/// statements.
fn describe(name: &str) -> String {
    let root = folder(name);
    let project = load(vec![root.clone()]);
    assert_eq!(project.problems, [], "{name}");
    let mut text = String::new();
    let mut database = 0;
    for file in &project.files {
        if file.database != database {
            database = file.database;
            let shown = &project.databases[database as usize - 1].root;
            writeln!(text, "[{}]", shown.strip_prefix(&root).unwrap().display()).unwrap();
        }
        describe_file(&root, file, &mut text);
    }
    text
}

fn describe_file(root: &Path, file: &ProjectFile, text: &mut String) {
    let path = file.path.strip_prefix(root).unwrap().display().to_string();
    for section in &file.layout.sections {
        let belongs = |range| section.range.is_none_or(|section| section.contains(range));
        let statements: Vec<_> = file.parsed.statements.iter().filter(|one| belongs(one.range)).collect();
        assert!(statements.iter().all(|one| one.parsed.is_ok()), "{path} has statements that cannot be read");
        let placeholders: Vec<&str> =
            statements.iter().flat_map(|one| &one.placeholders).map(|one| one.text.as_str()).collect();
        let direction = match section.direction {
            Direction::Up => "up",
            Direction::Down => "not run",
        };
        let transaction = match section.transaction {
            TransactionMode::Transaction => "transaction",
            TransactionMode::SingleString => "one string",
            TransactionMode::Autocommit => "autocommit",
        };
        let tool = file.layout.tool.as_str();
        write!(text, "{path}: {tool}, {direction}, {transaction}, {}", statements.len()).unwrap();
        if !placeholders.is_empty() {
            write!(text, ", with {}", placeholders.join(" ")).unwrap();
        }
        text.push('\n');
    }
    if file.layout.sections.is_empty() {
        writeln!(text, "{path}: {}, nothing for PostgreSQL", file.layout.tool.as_str()).unwrap();
    }
}

fn found(path: &str, rules: &[&str]) -> Vec<Diagnostic> {
    let only: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
    let project = load(vec![folder(path)]);
    project.check(&|_| Settings { only: only.clone(), ..Settings::default() }, &|_, _| ()).found
}

/// Every tool that is known, by its name.
fn tools() -> impl Iterator<Item = &'static str> {
    Tool::all().filter(|tool| *tool != Tool::Plain).map(Tool::as_str)
}

#[test]
fn files_are_run_as_their_tool_runs_them() {
    for name in tools().chain(["psql"]) {
        insta::assert_snapshot!(name, describe(name));
    }
}

#[test]
fn every_tool_has_a_repository_here() {
    let entries = std::fs::read_dir(folder("")).unwrap();
    let mut folders: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !matches!(name.as_str(), "stdin" | "psql" | "README.md"))
        .collect();
    folders.sort();
    let mut tools: Vec<&str> = tools().filter(|tool| *tool != "captured").collect();
    tools.sort_unstable();
    assert_eq!(
        folders, tools,
        "add a small project of the tool to fixtures/frameworks, and what is expected of it here"
    );
}

/// PostgreSQL does not refuse migrations that tools run as their users expect.
#[test]
fn none_of_the_histories_fails() {
    for tool in tools() {
        let failures = found(tool, &["statement-will-fail", "concurrently-in-transaction", "syntax-error"]);
        let messages: Vec<&str> = failures.iter().map(|found| found.message.as_str()).collect();
        assert!(messages.is_empty(), "{tool}: {messages:?}");
    }
}

#[test]
fn a_file_by_itself_has_the_history_of_its_tool() {
    for path in [
        "flyway/src/main/resources/db/migration/V1.10__index_orders.sql",
        "liquibase/src/main/resources/db/changelog/sql/aa_index.sql",
        "sqitch/deploy/orders/create.sql",
        "goose/internal/db/migrations/20240103120000_index.sql",
        "golang-migrate/migrations/000002_orders.up.sql",
        "diesel/migrations/2024-01-02-120000_index/up.sql",
        "prisma/prisma/migrations/20240201000000_index/migration.sql",
        "drizzle/drizzle/0001_amused_thor.sql",
        "graphile-migrate/migrations/current.sql",
        // Nothing but the numbers says that they are one after the other.
        "psql/sql/10_index.sql",
    ] {
        let project = load(vec![folder(path)]);
        assert_eq!(project.reported_files(), 1, "{path}");
        assert!(project.history_files() > 0, "{path} is judged without history");
        assert_eq!(project.files.last().unwrap().path, folder(path), "{path} is not the last");
    }
}

#[test]
fn what_frameworks_print_is_judged_with_its_transactions() {
    let rules = |path: &str| {
        let rules = ["index-without-concurrently", "concurrently-in-transaction", "work-after-strong-lock"];
        found(path, &rules).iter().map(|found| found.rule).collect::<Vec<_>>()
    };
    assert_eq!(rules("stdin/django.sql"), ["index-without-concurrently"]);
    assert_eq!(rules("stdin/alembic.sql"), [""; 0]);
    assert_eq!(rules("stdin/structure.sql"), [""; 0]);
}

#[test]
fn what_goose_sends_as_one_string_is_one_transaction() {
    let root = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(root.path().join(name), text).unwrap();
    let block = |sql: &str| format!("-- +goose StatementBegin\n{sql}\n-- +goose StatementEnd\n");
    let up = "-- +goose NO TRANSACTION\n-- +goose Up\n";
    let build = "CREATE INDEX CONCURRENTLY orders_total ON orders (total);";
    let fill = "DO $$ BEGIN LOOP DELETE FROM orders WHERE id IN (SELECT id FROM orders LIMIT 9); \
                EXIT WHEN NOT FOUND; END LOOP; END $$;";
    let change = "ALTER TABLE orders ADD COLUMN note text;";
    write("00001_orders.sql", "-- +goose Up\nCREATE TABLE orders (id bigint PRIMARY KEY, total bigint);\n");
    write("00002_together.sql", &format!("{up}{}", block(&format!("{change}\n{build}"))));
    write("00003_apart.sql", &format!("{up}{}{}", block(change), block(build)));
    write("00004_fill_together.sql", &format!("{up}{}", block(&format!("{change}\n{fill}"))));
    write("00005_fill_apart.sql", &format!("{up}{}{fill}", block(change)));
    let project = load(vec![root.path().to_owned()]);
    let only = ["concurrently-in-transaction", "bulk-change-in-loop"].map(str::to_owned).to_vec();
    let found = project.check(&|_| Settings { only: only.clone(), ..Settings::default() }, &|_, _| ()).found;
    let told: Vec<(u32, &str, Severity)> = found.iter().map(|found| (found.file, found.rule, found.severity)).collect();
    let (build, fill) = ("concurrently-in-transaction", "bulk-change-in-loop");
    assert_eq!(told, [(1, build, Severity::Error), (3, fill, Severity::Error), (4, fill, Severity::Warning)]);
}

#[test]
fn tables_that_fizz_makes_are_known() {
    let many = |fixture: &str| {
        let found = found(fixture, &["unbounded-update-or-delete", "drop-column"]);
        found.iter().map(|found| found.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        many("pop/migrations/20240104000000_note.up.sql"),
        [""; 0],
        "the column is the primary key that fizz made"
    );
}

/// The files of a small project whose statements lack a timeout.
fn without_timeout(files: &[(&str, &str)]) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let project = load(vec![root.path().to_owned()]);
    let only = vec!["missing-lock-timeout".to_owned()];
    let found = project.check(&|_| Settings { only: only.clone(), ..Settings::default() }, &|_, _| ()).found;
    let files = project.files_of_migrations();
    let path =
        |one: &Diagnostic| files[one.file as usize].path.strip_prefix(root.path()).unwrap().display().to_string();
    found.iter().map(path).collect()
}

const TABLE: &str = "CREATE TABLE orders (id int);";
const ALTER: &str = "ALTER TABLE orders ADD COLUMN note text;";

#[test]
fn what_each_run_sets_first_is_in_effect_in_all_files() {
    let set = "SET lock_timeout = '2s';";
    let yuniql = |pre: &str, version: &str| {
        without_timeout(&[
            ("_init/a.sql", "SELECT 1;"),
            ("_pre/a.sql", pre),
            ("v0.00/a.sql", version),
            ("v1.00/a.sql", TABLE),
            ("v1.01/a.sql", ALTER),
            ("v1.02/a.sql", "SELECT 1;"),
        ])
    };
    assert_eq!(yuniql(set, "SELECT 1;"), [""; 0]);
    assert_eq!(yuniql("SELECT 1;", set), ["v1.01/a.sql"], "an earlier run has executed it");
    assert_eq!(yuniql(set, "RESET lock_timeout;"), ["v1.01/a.sql"]);
    let grate = |first: &str| {
        without_timeout(&[(first, set), ("up/1_a.sql", TABLE), ("up/2_b.sql", ALTER), ("sprocs/p.sql", "SELECT 1;")])
    };
    assert_eq!(grate("beforeMigration/a.sql"), [""; 0]);
    assert_eq!(grate("runBeforeUp/a.sql"), ["up/2_b.sql"], "it runs only when it changes");
}

#[test]
fn each_part_of_migratus_has_a_session_of_its_own_outside_a_transaction() {
    let migratus = |text: &str| {
        without_timeout(&[
            ("project.clj", "[migratus \"1.6.5\"]"),
            ("resources/migrations/1-a.up.sql", TABLE),
            ("resources/migrations/2-b.up.sql", text),
        ])
    };
    let parts = format!("SET lock_timeout = '2s';\n--;;\n{ALTER}\n");
    assert_eq!(migratus(&parts), [""; 0]);
    assert_eq!(migratus(&format!("-- :disable-transaction\n{parts}")), ["resources/migrations/2-b.up.sql"]);
}
