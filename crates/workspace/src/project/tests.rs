use super::*;
use crate::skipped::SkipReason;
use pgvet_model::migration::Direction;
use std::fs;

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    root
}

fn load(request: &Request) -> Project {
    Project::load(request, &|_, _| {}).unwrap()
}

fn names(project: &Project) -> Vec<(String, Role)> {
    let name = |file: &ProjectFile| file.parsed.source.path.rsplit('/').next().unwrap().to_owned();
    project.files.iter().map(|file| (name(file), file.role)).collect()
}

#[test]
fn named_files_run_in_the_order_of_their_numbers_and_count_once() {
    let root = folder(&[("1.sql", b""), ("2.sql", b"")]);
    let at = |name: &str| root.path().join(name);
    let project = load(&Request { paths: vec![at("2.sql"), at("1.sql"), at("2.sql")], ..Request::default() });
    assert_eq!(names(&project), [("1.sql".to_owned(), Role::Reported), ("2.sql".to_owned(), Role::Reported)]);
}

#[test]
fn folders_of_migrations_are_databases_of_their_own() {
    let root = tempfile::tempdir().unwrap();
    for name in ["a/migrations/1.sql", "a/migrations/2/up.sql", "b/migrations/1.sql"] {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("SELECT '{name}';")).unwrap();
    }
    let project = load(&Request { paths: vec![root.path().to_owned()], ..Request::default() });
    assert_eq!(project.files.iter().map(|file| file.database).collect::<Vec<_>>(), [1, 1, 2]);
}

#[test]
fn history_stops_before_what_is_reported() {
    let root = folder(&[("1.sql", b""), ("2.sql", b""), ("3.sql", b""), ("dump.txt", b"")]);
    let at = |name: &str| root.path().join(name);
    let project = load(&Request {
        paths: vec![at("2.sql")],
        history: vec![root.path().to_owned()],
        schema: Some(at("dump.txt")),
        ..Request::default()
    });
    let expected = [("dump.txt", Role::Baseline), ("1.sql", Role::History), ("2.sql", Role::Reported)];
    assert_eq!(names(&project), expected.map(|(name, role)| (name.to_owned(), role)));
    let migrations = project.migrations();
    assert_eq!(migrations.iter().map(|migration| migration.report).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn a_file_without_text_beside_migrations_is_skipped() {
    let utf16 = b"\xff\xfeS\0";
    let root = folder(&[("V1__a.sql", b"SELECT 1;"), ("notes.sql", utf16)]);
    let project = load(&Request { paths: vec![root.path().to_owned()], ..Request::default() });
    assert_eq!(project.problems, []);
    assert_eq!(project.skipped.iter().map(|skipped| skipped.reason).collect::<Vec<_>>(), [SkipReason::NoText]);
    assert!(project.notes.iter().any(|note| note.message.starts_with("was skipped: it contains NUL bytes")));

    let with_version = folder(&[("V1__a.sql", b"SELECT 1;"), ("V2__b.sql", utf16)]);
    let named = folder(&[("V1__a.sql", b"SELECT 1;"), ("notes.sql", utf16)]);
    let alone = folder(&[("notes.sql", utf16), ("other.sql", b"SELECT 1;")]);
    let paths = [with_version.path().to_owned(), named.path().join("notes.sql"), alone.path().to_owned()];
    for path in paths {
        let project = load(&Request { paths: vec![path], ..Request::default() });
        let problems: Vec<_> = project.problems.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(problems, ["is not SQL text: byte 3 is NUL"]);
    }
}

#[test]
fn one_bad_file_does_not_stop_the_others() {
    let root = folder(&[("1.sql", b"SELECT 1;"), ("2.sql", b"-- \xff\n"), ("3.sql", b"\0")]);
    let mut paths = vec![root.path().to_owned()];
    paths.push(root.path().join("missing.sql"));
    let project = load(&Request { paths, ..Request::default() });
    let problems: Vec<_> = project.problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(problems, ["does not exist", "is not SQL text: byte 0 is NUL"]);
    assert_eq!(project.reported_files(), 2);
    let diagnostics = project.encoding_diagnostics(&|_| Settings::default());
    assert_eq!(diagnostics.iter().map(|diagnostic| diagnostic.file).collect::<Vec<_>>(), [1]);
    assert!(diagnostics[0].message.starts_with("byte 3 is not UTF-8"), "{}", diagnostics[0].message);
}

#[test]
fn sections_become_migrations_in_both_directions() {
    let root = folder(&[("1_a.sql", b"-- +goose Up\nSELECT 1;\n-- +goose Down\nSELECT 2;\n")]);
    let project = load(&Request { paths: vec![root.path().to_owned()], ..Request::default() });
    let directions: Vec<_> = project.migrations().iter().map(|migration| migration.direction).collect();
    assert_eq!(directions, [Direction::Up, Direction::Down]);
}

#[test]
fn many_files_are_read_in_parallel_in_order() {
    let files: Vec<(String, Vec<u8>)> =
        (1..=40).map(|n| (format!("{n}_x.sql"), format!("SELECT {n};").into())).collect();
    let borrowed: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (name.as_str(), text.as_slice())).collect();
    let root = folder(&borrowed);
    let project = load(&Request { paths: vec![root.path().to_owned()], ..Request::default() });
    let expected: Vec<_> = files.iter().map(|(name, _)| (name.clone(), Role::Reported)).collect();
    assert_eq!(names(&project), expected);
}

#[test]
fn scripts_that_revert_a_sqitch_change_belong_to_it() {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("sqitch.plan", "users 2024\norders [users] 2024\n"),
        ("deploy/users.sql", "CREATE TABLE users (id int PRIMARY KEY, n text);"),
        ("deploy/orders.sql", "CREATE TABLE orders (id int PRIMARY KEY); DROP TABLE users;"),
        ("revert/users.sql", "SET lock_timeout = '1s'; ALTER TABLE users DROP COLUMN n, DROP COLUMN missing;"),
        ("verify/users.sql", "SELECT n FROM users;"),
    ] {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let project = load(&Request { paths: vec![root.path().to_owned()], ..Request::default() });
    let shown: Vec<&str> =
        project.files.iter().map(|file| file.path.strip_prefix(root.path()).unwrap().to_str().unwrap()).collect();
    assert_eq!(shown, ["deploy/users.sql", "revert/users.sql", "verify/users.sql", "deploy/orders.sql"]);
    assert!(project.files.iter().all(|file| file.database == 1));
    let outcome = project.check(&|_| Settings { lint_down: true, ..Settings::default() }, &|_, _| {});
    let refused: Vec<_> = outcome.found.iter().filter(|found| found.rule == "statement-will-fail").collect();
    let [refused] = refused[..] else { panic!("{refused:?}") };
    assert!(refused.file == 1 && refused.message.contains("missing"), "{}", refused.message);
}

#[test]
fn scripts_without_numbers_have_no_order_unless_they_are_named_in_one() {
    let root = folder(&[("1_a.sql", b""), ("views.sql", b""), ("tables.sql", b"")]);
    let at = |name: &str| root.path().join(name);
    let ordered = |paths: Vec<PathBuf>| {
        let project = load(&Request { paths, ..Request::default() });
        project.migrations().iter().map(|migration| migration.ordered).collect::<Vec<_>>()
    };
    assert_eq!(ordered(vec![root.path().to_owned()]), [true, false, false]);
    assert_eq!(ordered(vec![at("tables.sql"), at("views.sql")]), [true, true]);
    assert_eq!(ordered(vec![at("tables.sql")]), [true]);
}

#[test]
fn what_no_numbering_covers_has_no_order() {
    let table = b"CREATE TABLE t (id int);";
    let ordered = |files: &[(&str, &[u8])]| {
        let root = folder(files);
        let project = load(&Request { paths: vec![root.path().to_owned()], ..Request::default() });
        project.migrations().iter().map(|migration| migration.ordered).collect::<Vec<_>>()
    };
    assert_eq!(ordered(&[("schema.sql", table)]), [true]);
    assert_eq!(ordered(&[("1_a.sql", table), ("2_b.sql", table), ("schema.sql", table)]), [true, true, false]);
    let goose = b"-- +goose Up\nSELECT 1;\n";
    let of_tools: [(&str, &[u8]); 3] = [("1_a.up.sql", table), ("2_b.up.sql", table), ("3_c.sql", goose)];
    assert_eq!(ordered(&of_tools), [true, true, false]);
    let of_folder: [(&str, &[u8]); 3] = [("atlas.sum", b""), ("1_a.sql", table), ("snapshot.sql", table)];
    assert_eq!(ordered(&of_folder), [true, false]);
}

#[test]
fn tools_with_equally_many_files_have_no_order_unless_they_are_named_in_one() {
    use UnknownOrder::{NoVersion, OtherTool};
    let root = folder(&[("1_a.sql", b""), ("2_b.sql", b"-- +goose Up\n"), ("views.sql", b"")]);
    let at = |name: &str| root.path().join(name);
    let unknown = |paths: Vec<PathBuf>| {
        let project = load(&Request { paths, without_history: true, ..Request::default() });
        project.files.iter().map(|file| file.unknown_order).collect::<Vec<_>>()
    };
    assert_eq!(unknown(vec![root.path().to_owned()]), [None, Some(OtherTool), Some(NoVersion)]);
    fs::remove_file(at("views.sql")).unwrap();
    assert_eq!(unknown(vec![root.path().to_owned()]), [Some(OtherTool), Some(OtherTool)]);
    fs::remove_file(at("1_a.sql")).unwrap();
    assert_eq!(unknown(vec![root.path().to_owned()]), [None]);
    fs::write(at("1_a.sql"), "").unwrap();
    let elsewhere = folder(&[("c.sql", b"")]);
    assert_eq!(unknown(vec![at("2_b.sql"), elsewhere.path().join("c.sql")]), [None, None]);
}

#[test]
fn scripts_beside_the_migrations_of_a_tool_are_skipped_and_counted() {
    let table = b"CREATE TABLE t (id int);";
    let root = folder(&[
        ("migrations/1_a/up.sql", table),
        ("migrations/1_a/down.sql", table),
        ("scripts/seed.sql", table),
        ("api/migration.sql", table),
    ]);
    let project = load(&Request { paths: vec![root.path().to_owned()], ..Request::default() });
    assert_eq!(project.migrations().len(), 2);
    let skipped = project.skipped.iter().filter(|skipped| skipped.reason == SkipReason::NoMigration);
    assert_eq!(skipped.count(), 2);
    // Where there is nothing else, they are what there is to check.
    let root = folder(&[("scripts/tables.sql", table), ("api/migration.sql", table)]);
    let project = load(&Request { paths: vec![root.path().to_owned()], ..Request::default() });
    assert_eq!(project.migrations().len(), 2);
}
