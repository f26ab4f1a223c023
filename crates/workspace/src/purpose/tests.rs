use crate::project::{Project, Request, Role};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join(".git")).unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

/// Returns the files that are loaded, and what is said about the others, whether they are parsed at once or during the
/// check.
fn load(root: &Path, paths: Vec<PathBuf>) -> (Vec<String>, Option<String>) {
    let request = Request { paths, ..Request::default() };
    let relative = |project: Project| {
        let names = project.files.iter().map(|file| file.path.strip_prefix(root).unwrap());
        let names = names.map(|path| path.to_string_lossy().replace('\\', "/")).collect();
        (names, project.notes.into_iter().next().map(|note| note.message))
    };
    let loaded = relative(Project::load(&request, &|_, _| {}).unwrap());
    let unread = Project::load_to_check(&request, None, &|config| config.settings.clone(), &|_, _| {});
    assert_eq!(relative(unread.unwrap()), loaded);
    loaded
}

fn walk(files: &[(&str, &str)]) -> (Vec<String>, Option<String>) {
    let root = folder(files);
    load(root.path(), vec![root.path().to_owned()])
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn queries_of_programs_are_excluded() {
    let loaded = walk(&[
        ("lib/raster.sql", "-- :name all-rasters :? :*\nSELECT * FROM :i:table;\n"),
        ("migrations/2_b.sql", "-- :name all-rasters :? :*\nSELECT 1;\n"),
        ("queries/users.sql", "-- name: GetUser :one\nSELECT * FROM users WHERE id = $1;\n"),
        ("migrations/plain.sql", "-- name: the users, at once :one\nSELECT 1;\n"),
        ("migrations/1_a.sql", "-- name: first\nSELECT 1;\n"),
    ]);
    assert_eq!(loaded, (names(&["migrations/1_a.sql", "migrations/2_b.sql", "migrations/plain.sql"]), None));
    // A name with a version is that of a migration, whatever its comments say.
    let loaded = walk(&[("db/V1__a.sql", "-- name: GetUser :one\nSELECT 1;\n")]);
    assert_eq!(loaded, (names(&["db/V1__a.sql"]), None));
}

#[test]
fn a_folder_of_which_everything_is_skipped_is_a_problem() {
    let root = folder(&[
        ("queries/users.sql", "-- name: GetUser :one\nSELECT 1;\n"),
        ("tests/a.sql", "SELECT 1;"),
        ("db/migrations/mysql/1.sql", "SELECT 1;"),
    ]);
    let request = Request { paths: vec![root.path().to_owned()], ..Request::default() };
    let project = Project::load(&request, &|_, _| {}).unwrap();
    let messages: Vec<_> = project.problems.iter().map(|problem| problem.message.as_str()).collect();
    let expected =
        "has no SQL files to check (3 skipped: 1 for tests, 1 for another database system, 1 with application queries)";
    assert_eq!(messages, [expected]);
}

#[test]
fn scripts_outside_of_the_folders_of_migrations_are_excluded() {
    let loaded = walk(&[
        ("app/queries/users.sql", "SELECT * FROM @schema.users;"),
        ("db/migrations/1_a.sql", "SELECT 1;"),
        ("db/migrations/functions/f.sql", "SELECT 1;"),
        ("db/migrations/views.sql", "SELECT 1;"),
        ("db/schema.sql", "SELECT 1;"),
    ]);
    assert_eq!(loaded.0, names(&["db/migrations/1_a.sql", "db/migrations/views.sql", "db/migrations/functions/f.sql"]));
    // Without migrations, nothing shows that it is anything else.
    assert_eq!(walk(&[("db/schema.sql", "SELECT 1;")]).0, names(&["db/schema.sql"]));
    // What is named is checked.
    let root = folder(&[("db/migrations/1_a.sql", "SELECT 1;"), ("db/views.sql", "SELECT 1;")]);
    let named = [root.path().join("db/migrations"), root.path().join("db/views.sql")];
    assert_eq!(load(root.path(), named.to_vec()).0, names(&["db/migrations/1_a.sql", "db/views.sql"]));
}

const DUMP: &str = "--\n-- PostgreSQL database dump\n--\n\nCREATE TABLE a (b int);\n";

#[test]
fn a_dump_beside_migrations_is_none_of_them() {
    let loaded = walk(&[("db/schema.sql", DUMP), ("db/1_a.sql", "SELECT 1;"), ("db/views.sql", "SELECT 1;")]);
    assert_eq!(loaded, (names(&["db/1_a.sql", "db/views.sql"]), None));
    let first = walk(&[("db/0_base.sql", DUMP), ("db/1_a.sql", "SELECT 1;")]);
    assert_eq!(first.0, names(&["db/0_base.sql", "db/1_a.sql"]));
    assert_eq!(walk(&[("db/schema.sql", DUMP)]).0, names(&["db/schema.sql"]));
    let rails = [("Gemfile", ""), ("db/migrate/1_a.rb", ""), ("db/structure.sql", DUMP)];
    assert_eq!(walk(&rails).0, names(&[]));
    let planned =
        [("sqitch.plan", "base 2024\nusers 2024\n"), ("deploy/base.sql", DUMP), ("deploy/users.sql", "SELECT 1;")];
    assert_eq!(walk(&planned).0, names(&["deploy/base.sql", "deploy/users.sql"]));
}

#[test]
fn queries_with_parameters_are_excluded_unless_a_number_makes_them_migrations() {
    let query = "SELECT id FROM users WHERE id = ? AND name IN (?, ?)\n";
    let loaded = walk(&[
        ("db/get_user.sql", query),
        ("db/operator.sql", "SELECT data ? 'key' FROM users WHERE data ?| ARRAY['a'];"),
        ("db/1_a.sql", query),
    ]);
    assert_eq!(loaded, (names(&["db/1_a.sql", "db/operator.sql"]), None));
    let loaded = walk(&[
        ("db/by_number.sql", "DELETE FROM users WHERE id = $1;"),
        ("db/format.sql", "SELECT id FROM users ORDER BY %s;"),
        ("db/named.sql", "SELECT id FROM users WHERE name = %(name)s;"),
        ("db/function.sql", "CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT $1'; SELECT 5 %s;"),
        ("db/prepared.sql", "PREPARE q (int) AS SELECT $1; SELECT format('%s', 1), 7 % 2;"),
        ("db/1_a.sql", "SELECT $1;"),
    ]);
    assert_eq!(loaded, (names(&["db/1_a.sql", "db/function.sql", "db/prepared.sql"]), None));
}

#[test]
fn a_down_migration_alone_makes_no_folder_of_migrations() {
    let loaded = walk(&[
        ("static/migrations/1_a.up.sql", "SELECT 1;"),
        ("static/views/down.sql", "DROP VIEW v;"),
        ("static/queries/users.sql", "SELECT 1;"),
    ]);
    assert!(!loaded.0.contains(&"static/queries/users.sql".to_owned()), "{loaded:?}");
}

#[test]
fn migrations_for_mysql_are_excluded_with_those_beside_them() {
    let loaded = walk(&[
        ("a/migration/V1__a.sql", "alter table a modify b varchar(255);"),
        ("a/migration/V2__b.sql", "CREATE INDEX i ON a (b);"),
        ("b/migrations/1/up.sql", "CREATE TABLE `a` (b int) ENGINE=InnoDB;"),
        ("b/migrations/2/up.sql", "DROP INDEX i ON a;"),
        ("c/migrations/1_a.sql", "CREATE TABLE a (b int);"),
    ]);
    let said = "and 3 other files were not checked: they seem to be written for MySQL";
    assert_eq!(loaded, (names(&["c/migrations/1_a.sql"]), Some(said.to_owned())));
}

#[test]
fn what_another_database_reads_is_a_mistake_among_migrations_for_postgresql() {
    let kept = ["migrations/1_a.sql", "migrations/2_b.sql", "versions/12/v12.sql", "versions/13/v13.sql"];
    let loaded = walk(&[
        (kept[0], "CREATE TABLE a (b jsonb);"),
        (kept[1], "ALTER TABLE a MODIFY COLUMN b text;"),
        (kept[2], "CREATE TABLE a (b integer PRIMARY KEY AUTOINCREMENT);"),
        (kept[3], "CREATE TABLE a (b timestamptz);"),
        ("migrations/clickhouse_baseline.sql", "CREATE TABLE `a` (b Int64) ENGINE = MergeTree ORDER BY b;"),
    ]);
    let said = "was not checked: it seems to be written for ClickHouse";
    assert_eq!(loaded, (names(&kept), Some(said.to_owned())));
}

#[test]
fn one_of_many_is_a_mistake_unless_their_folder_is_named_for_it() {
    let portable: Vec<String> = (1..=6).map(|number| format!("CREATE TABLE t{number} (a int);")).collect();
    let wrong = "ALTER TABLE t1 MODIFY COLUMN a int;";
    let left = |folder: &str| {
        let paths: Vec<String> = (1..=7).map(|number| format!("{folder}/{number}_a.sql")).collect();
        let texts = portable.iter().map(String::as_str).chain([wrong]);
        let files: Vec<(&str, &str)> = paths.iter().map(String::as_str).zip(texts).collect();
        walk(&files).0.len()
    };
    assert_eq!((left("db/migrations"), left("mysqldriver/migrations")), (7, 0));
}

#[test]
fn scripts_are_for_what_they_say() {
    let loaded = walk(&[
        ("scripts/dump.sql", "CREATE TABLE `a` (b int);"),
        ("scripts/load.sql", "SELECT a::text FROM b;"),
        ("scripts/plain.sql", "SELECT 1;"),
    ]);
    let said = "was not checked: it seems to be written for MySQL";
    assert_eq!(loaded, (names(&["scripts/load.sql", "scripts/plain.sql"]), Some(said.to_owned())));
}

#[test]
fn what_postgresql_reads_is_for_it() {
    let text = "CREATE TABLE a (auto_increment int, pragma int);";
    assert_eq!(walk(&[("1_a.sql", text)]), (names(&["1_a.sql"]), None));
}

#[test]
fn a_named_file_is_checked_whatever_it_says() {
    let root = folder(&[
        ("migrations/1_a.sql", "CREATE TABLE `a` (b int);"),
        ("migrations/2_b.sql", "CREATE TABLE `b` (b int);"),
        ("queries.sql", "-- name: A :one\nSELECT 1;\n"),
    ]);
    let at = |path: &str| root.path().join(path);
    assert_eq!(load(root.path(), vec![at("queries.sql")]), (names(&["queries.sql"]), None));
    // A file that is excluded from its history is not missed in the report.
    assert_eq!(load(root.path(), vec![at("migrations/2_b.sql")]), (names(&["migrations/2_b.sql"]), None));
    let project = Project::load(&Request { paths: vec![at("migrations/2_b.sql")], ..Request::default() }, &|_, _| {});
    assert!(project.unwrap().files.iter().all(|file| file.role == Role::Reported));
}

#[test]
fn query_files_of_libraries_are_not_migrations() {
    let migration = ("db/migrations/1_a.sql", "CREATE TABLE a (b int);");
    for queries in [
        "-- name: get_user^\nSELECT * FROM users WHERE id = :id;",
        "-- name: delete-user!\nDELETE FROM users;",
        "-- name: users-by-country\n-- Counts them.\nSELECT 1;",
        "/* @name GetUsers */\nSELECT * FROM users;",
    ] {
        assert_eq!(
            walk(&[migration, ("db/migrations/queries.sql", queries)]).0,
            names(&["db/migrations/1_a.sql"]),
            "{queries}"
        );
    }
    for script in ["-- name: the users table\nDROP TABLE users;", "DROP TABLE users;\n-- name: users\n"] {
        assert_eq!(walk(&[migration, ("db/migrations/fix.sql", script)]).0.len(), 2, "{script}");
    }
}

#[test]
fn migrations_of_a_project_for_another_database_are_skipped() {
    let manifest =
        |database: &str| format!("[dependencies]\ndiesel = {{ version = \"2\", features = [\"{database}\"] }}\n");
    let files = |manifest: &str| {
        let files = [
            ("server/migrations/1_a/up.sql", "CREATE TABLE a (b int);"),
            ("mobile/Cargo.toml", manifest),
            ("mobile/migrations/1_a/up.sql", "CREATE TABLE c (d int);"),
        ];
        walk(&files)
    };
    let (found, note) = files(&manifest("sqlite"));
    assert_eq!(found, names(&["server/migrations/1_a/up.sql"]));
    assert_eq!(note.as_deref(), Some("was not checked: it seems to be written for SQLite"));
    assert_eq!(files(&manifest("postgres")).0.len(), 2);
}
