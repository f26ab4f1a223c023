//! Files are replayed in the order in which real migration tools ran them: `fixtures/tools`.

use pgvet_linter::settings::Settings;
use pgvet_workspace::config::ConfigSource;
use pgvet_workspace::{Project, Request};
use std::path::Path;

/// Writes a folder of files as the tool has them, with what shows the tool.
fn write(root: &Path, tool: &str, files: &[&str]) {
    let text = match tool {
        "goose" => "-- +goose Up\nSELECT 1;\n",
        "sql-migrate" => "-- +migrate Up\nSELECT 1;\n",
        "dbmate" => "-- migrate:up\nSELECT 1;\n",
        _ => "SELECT 1;\n",
    };
    let (folder, sign) = match tool {
        "pop" => ("migrations", Some(("go.mod", "require github.com/gobuffalo/pop/v6 v6.1.1\n"))),
        "sqlx" => ("migrations", Some(("Cargo.toml", "[dependencies]\nsqlx = \"0.8\"\n"))),
        "refinery" => ("migrations", Some(("Cargo.toml", "[dependencies]\nrefinery = \"0.8\"\n"))),
        "atlas" => ("migrations", Some(("migrations/atlas.sum", "h1:x\n"))),
        "supabase" => ("supabase/migrations", None),
        _ => ("migrations", None),
    };
    let put = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    files.iter().for_each(|file| put(&format!("{folder}/{file}"), text));
    if let Some((path, text)) = sign {
        put(path, text);
    }
    if tool == "diesel" {
        files.iter().for_each(|file| put(&format!("{folder}/{}", file.replace("up.sql", "down.sql")), text));
    }
}

#[test]
fn files_run_in_the_order_that_was_recorded() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tools/orders.tsv");
    for line in std::fs::read_to_string(recorded).unwrap().lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let tool = fields[0].split(' ').next().unwrap();
        let words = |at: usize| fields.get(at).copied().unwrap_or_default().split_whitespace().collect::<Vec<_>>();
        let (run, not_run) = (words(1), words(2));
        let root = tempfile::tempdir().unwrap();
        write(root.path(), tool, &[run.clone(), not_run.clone()].concat());
        let request = Request { paths: vec![root.path().to_owned()], config: ConfigSource::None, ..Request::default() };
        let project = Project::load(&request, &|_, _| {}).unwrap();
        let is_shown = |name: &str| words(1).iter().chain(&words(2)).any(|file| name.ends_with(file));
        let names = |is_run: bool| {
            let files = project.files.iter().filter(|file| file.is_run() == is_run);
            let names = files.map(|file| file.path.to_string_lossy().into_owned()).filter(|name| is_shown(name));
            names.map(|name| name.split_once("migrations/").unwrap().1.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(true), run, "{}", fields[0]);
        let mut skipped: Vec<String> = names(false).into_iter().filter(|name| !name.ends_with("down.sql")).collect();
        skipped.sort();
        let mut expected = not_run;
        expected.sort_unstable();
        assert_eq!(skipped, expected, "{}", fields[0]);
    }
}

#[test]
fn what_a_tool_refuses_or_skips_is_reported() {
    let function = "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$\nBEGIN\n  PERFORM 1;\nEND $$;\n";
    for (text, expected) in [
        ("SELECT 1;\n-- +migrate Up\nSELECT 2;\n".to_owned(), "skips this statement"),
        ("SELECT 1;\n-- +goose Up\nSELECT 2;\n".to_owned(), "before the first annotation"),
        (format!("-- +goose Up\n{function}"), "splits this statement"),
        (format!("-- +migrate Up\n{function}"), "splits this statement"),
        ("-- +goose Up\nSELECT 1\n-- +goose Down\n".to_owned(), "no semicolon"),
    ] {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("1_a.sql"), &text).unwrap();
        let paths = vec![root.path().to_owned()];
        let request = Request { paths, config: ConfigSource::None, ..Request::default() };
        let project = Project::load(&request, &|_, _| {}).unwrap();
        let only = vec!["statement-will-fail".to_owned()];
        let found = project.check(&|_| Settings { only: only.clone(), ..Settings::default() }, &|_, _| ()).found;
        let messages: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
        assert!(matches!(messages[..], [message] if message.contains(expected)), "{text}: {messages:?}");
    }
}

/// The files that are run below a folder that has these, and the rules with findings about them.
fn judged(files: &[(&str, &str)]) -> (Vec<String>, Vec<&'static str>) {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join(".git")).unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let request = Request { paths: vec![root.path().to_owned()], config: ConfigSource::None, ..Request::default() };
    let project = Project::load(&request, &|_, _| {}).unwrap();
    let only = ["syntax-error", "statement-will-fail", "concurrently-in-transaction", "duplicate-migration-version"]
        .map(str::to_owned);
    let found = project.check(&|_| Settings { only: only.to_vec(), ..Settings::default() }, &|_, _| ()).found;
    let name = |file: &pgvet_workspace::ProjectFile| file.path.strip_prefix(root.path()).unwrap().display().to_string();
    let run = project.files.iter().filter(|file| file.is_run()).map(name).collect();
    (run, found.iter().map(|found| found.rule).collect())
}

const TABLE: &str = "CREATE TABLE orders (id bigint PRIMARY KEY);\n";

#[test]
fn bun_sends_each_part_alone() {
    let up = "m/20240102000000_b.up.sql";
    let rules = |text: &str| judged(&[("m/20240101000000_a.up.sql", TABLE), (up, text)]).1;
    let index = "CREATE INDEX CONCURRENTLY i ON orders (id);";
    assert_eq!(rules("SELECT 1\n\n--bun:split\n\nSELECT 2\n"), [""; 0]);
    assert_eq!(rules("SELECT 1\n\nSELECT 2\n"), ["syntax-error"]);
    assert_eq!(rules(&format!("SELECT 1;\n--bun:split\n{index}\n")), [""; 0]);
    assert_eq!(rules(&format!("--bun:split\nSELECT 1;\n{index}\n")), ["concurrently-in-transaction"]);
    let in_transaction = format!("SELECT 1;\n--bun:split\n{index}\n");
    let (_, rules) = judged(&[("m/20240101000000_a.up.sql", TABLE), ("m/20240102000000_b.tx.up.sql", &in_transaction)]);
    assert_eq!(rules, ["concurrently-in-transaction"]);
}

#[test]
fn of_two_files_for_one_step_pop_runs_the_one_for_postgresql() {
    let cockroach = "CREATE TABLE orders (id bigint, INDEX (id));\n";
    let (all, own) = ("m/20240101000000_a.up.sql", "m/20240101000000_a.postgres.up.sql");
    assert_eq!(judged(&[(all, cockroach), (own, TABLE)]), (vec![own.to_owned()], vec![]));
    let other = "m/20240101000000_a.mysql.up.sql";
    assert_eq!(judged(&[(all, cockroach), (other, TABLE)]), (vec![all.to_owned()], vec!["syntax-error"]));
}

#[test]
fn prisma_runs_no_loose_file() {
    let (first, loose) = ("prisma/migrations/20240101000000_a/migration.sql", "prisma/migrations/add_note.sql");
    let broken = "ALTER TABLE nowhere ADD COLUMN note text;\n";
    let lock = ("prisma/migrations/migration_lock.toml", "provider = \"postgresql\"\n");
    assert_eq!(judged(&[(first, TABLE), (loose, broken)]), (vec![first.to_owned()], vec![]));
    let (run, rules) = judged(&[("m/add_note.sql", broken), (first, TABLE), lock]);
    assert!(!run.contains(&"prisma/migrations/add_note.sql".to_owned()) && rules.is_empty(), "{run:?}, {rules:?}");
    let (run, _) = judged(&[("prisma/migrations/1_a.sql", TABLE), ("prisma/migrations/2_b.sql", "SELECT 1;\n")]);
    assert_eq!(run, ["prisma/migrations/1_a.sql", "prisma/migrations/2_b.sql"], "nothing shows that Prisma runs them");
}

#[test]
fn scripts_for_a_new_database_are_not_migrations_of_another() {
    let index = "CREATE TYPE state AS ENUM ('new');\nCREATE TABLE notes (id bigint);\n\
                 CREATE INDEX CONCURRENTLY i ON notes (id);\n";
    let init = ("notes/init/01_all.sql", index);
    let migrations = [("sql/1_a.sql", TABLE), ("sql/2_b.sql", "CREATE TYPE state AS ENUM ('old');\n")];
    let dockerfile = ("notes/Dockerfile", "FROM postgres:17\nCOPY init /docker-entrypoint-initdb.d\n");
    let with = |others: &[(&'static str, &'static str)]| judged(&[&migrations[..], &[init], others].concat()).1;
    assert_eq!(with(&[dockerfile]), [""; 0]);
    // They run one after the other, before anybody uses the database.
    let copy = "CREATE TABLE copy (id bigint);\nINSERT INTO copy SELECT * FROM notes;\nDROP TABLE notes;\n\
                ALTER TABLE copy RENAME TO notes;\n";
    assert_eq!(with(&[dockerfile, ("notes/init/02_copy.sql", copy)]), [""; 0]);
    assert!(with(&[]).contains(&"concurrently-in-transaction"), "{:?}", with(&[]));
}
