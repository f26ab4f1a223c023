//! Which files below a folder are checked, and what is said about the others.

use crate::support::Folder;

const MYSQL: &[u8] = b"ALTER TABLE a MODIFY b varchar(255);\n";
const WRONG: &[u8] = b"SELEC 1;\n";

#[test]
fn samples_and_tests_beside_migrations_are_not_checked_unless_they_are_named() {
    let folder = Folder::new(&[
        ("migrations/1_a.sql", b"-- nothing\n"),
        ("app-samples/1_a.sql", WRONG),
        ("t/a.sql", WRONG),
        ("sql/x_demo.sql", WRONG),
    ]);
    insta::assert_snapshot!(folder.run(&["check", "."]), @"
    exit 0
    --- stdout
    No problems found in 1 file; 3 files skipped: 2 for tests, 1 for examples or development (see pgvet config --files)
    ");
    for named in ["app-samples", "t", "sql/x_demo.sql"] {
        assert!(folder.run(&["check", named]).contains("1 error in 1 of 1 file"), "{named}");
    }
}

#[test]
fn what_is_for_another_database_is_reported_once_and_fails_nothing() {
    let folder = Folder::new(&[
        ("shop/migration/V1__a.sql", MYSQL),
        ("shop/migration/V2__b.sql", b"CREATE INDEX i ON a (b);\n"),
        ("users/migrations/1_a.sql", b"-- nothing\n"),
        ("users/queries/a.sql", b"-- name: GetUser :one\nSELECT * FROM users;\n"),
    ]);
    insta::assert_snapshot!(folder.run(&["check", "."]), @"
    exit 0
    --- stdout
    No problems found in 1 file; 3 files skipped: 2 for another database system, 1 with application queries (see pgvet config --files)
    --- stderr
    note: `shop/migration/V1__a.sql` and 1 other file were not checked: they seem to be written for MySQL
      help: name a file to check it; under [migrations] in pgvet.toml, `include` checks files and `exclude` skips them without this note
    ");
    let in_github = folder.run(&["check", ".", "--format", "github"]);
    assert!(
        in_github.contains("::notice title=pgvet::`shop/migration/V1__a.sql` and 1 other file were"),
        "{in_github}"
    );
    let output = folder.output(&["check", ".", "--format", "json"], b"", &[]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["notes"][0]["path"], "shop/migration/V1__a.sql");
    let skipped = serde_json::json!([
        { "reason": "other-database", "files": ["shop/migration/V1__a.sql", "shop/migration/V2__b.sql"] },
        { "reason": "queries", "files": ["users/queries/a.sql"] },
    ]);
    assert_eq!((&document["not_checked"], &document["summary"]["skipped"]), (&skipped, &3.into()));
    let output = folder.output(&["check", ".", "--format", "sarif"], b"", &[]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let invocation = &document["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], true);
    assert_eq!(invocation["toolExecutionNotifications"][0]["level"], "note");
    let in_markdown = folder.run(&["check", ".", "--format", "markdown"]);
    assert!(in_markdown.contains("> [!NOTE]\n> `shop/migration/V1__a.sql` and"), "{in_markdown}");
}

#[test]
fn configuration_skips_files_and_brings_them_back() {
    let folder = Folder::new(&[
        ("m/1_a.sql", MYSQL),
        ("n/1_a.sql", b"-- nothing\n"),
        ("n/tests/2_b.sql", b"-- nothing\n"),
        (".tools/3_c.sql", b"-- nothing\n"),
        ("build/4_d.sql", b"-- nothing\n"),
        (".gitignore", b"build/\n"),
        (".git/HEAD", b""),
    ]);
    assert!(folder.run(&["check", "m/1_a.sql"]).contains("error[syntax-error]"));
    let configure = |text: &str| std::fs::write(folder.path().join("pgvet.toml"), text).unwrap();
    configure("[migrations]\nexclude = [\"m/**\"]\n");
    insta::assert_snapshot!(folder.run(&["check", "."]), @"
    exit 0
    --- stdout
    No problems found in 1 file; 2 files skipped: 1 for tests, 1 excluded by configuration (see pgvet config --files)
    ");
    configure("[migrations]\nexclude = [\"m/**\"]\ninclude = [\"n/tests/**\", \".tools\", \"build/*.sql\"]\n");
    insta::assert_snapshot!(folder.run(&["check", "."]), @"
    exit 0
    --- stdout
    No problems found in 4 files; 1 file skipped: 1 excluded by configuration (see pgvet config --files)
    ");
    configure("[migrations]\nexclude = [\"**\"]\n");
    insta::assert_snapshot!(folder.run(&["check", "."]), @"
    exit 2
    --- stderr
    error: `.` has no SQL files to check (3 skipped: 3 excluded by configuration)
      help: name a file to check it, or use `include` under [migrations] in pgvet.toml; `pgvet config --files` lists every file
    ");
}

#[test]
fn config_lists_every_file_with_its_role() {
    let folder = Folder::new(&[
        ("db/migrations/1_a.up.sql", b"CREATE TABLE a (b int);\n"),
        ("db/migrations/1_a.down.sql", b"DROP TABLE a;\n"),
        ("db/migrations/test/2_b.up.sql", b"SELECT 1;\n"),
        ("db/migrations/seed.sql", b"INSERT INTO a VALUES (1);\n"),
        ("db/migrations/views.sql", b"SELECT 1;\n"),
        ("db/migrations/mysql/1_a.up.sql", MYSQL),
        ("db/schema.sql", b"--\n-- PostgreSQL database dump\n--\n"),
        ("flyway/R__views.sql", b"SELECT 1;\n"),
        ("vendor/lib/1.sql", WRONG),
        (".cache/1.sql", WRONG),
        ("out/1.sql", WRONG),
        (".gitignore", b"out/\n"),
        (".git/HEAD", b""),
        ("pgvet.toml", b"[migrations]\nschema = \"db/schema.sql\"\n"),
    ]);
    insta::assert_snapshot!(folder.run(&["config", "--files"]), @"
    exit 0
    --- stdout
    skipped     .cache/1.sql                    in hidden folders
    down        db/migrations/1_a.down.sql      a down migration, checked only with --down
    up          db/migrations/1_a.up.sql        golang-migrate, from the names of the files
    skipped     db/migrations/mysql/1_a.up.sql  for another database system
    seed        db/migrations/seed.sql          its name says seed; checked, but when it runs is not known
    up          db/migrations/test/2_b.up.sql   golang-migrate, from the names of the files
    other       db/migrations/views.sql         no version in its name; checked, but when it runs is not known
    baseline    db/schema.sql                   a dump of the schema from before the migrations
    repeatable  flyway/R__views.sql             run again, always or whenever it changes
    skipped     out/1.sql                       ignored by git
    skipped     vendor/lib/1.sql                in dependencies or build output

    2 up, 1 down, 1 repeatable, 1 seed, 1 baseline, 1 other, 4 skipped; `include` and `exclude` under [migrations] in pgvet.toml change this.
    ");
    let output = folder.output(&["config", "--files", "--format", "json"], b"", &[]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = serde_json::json!({ "path": ".cache/1.sql", "role": "skipped", "reason": "in hidden folders" });
    assert_eq!(document["sql_files"][0], first);
}

#[test]
fn a_list_of_the_tool_goes_before_names() {
    let folder = Folder::new(&[
        ("sqitch.plan", b"%project=x\nvendor/a 2024-01-01T00:00:00Z\nusers_test 2024-01-01T00:00:00Z\n"),
        ("deploy/vendor/a.sql", b"-- nothing\n"),
        ("deploy/users_test.sql", b"-- nothing\n"),
        ("deploy/tests/helper.sql", WRONG),
        (
            "changelog/master.xml",
            b"<databaseChangeLog><include file=\"test/a.sql\" relativeToChangelogFile=\"true\"/></databaseChangeLog>",
        ),
        ("changelog/test/a.sql", b"-- nothing\n"),
        ("atlas/atlas.sum", b"h1:x\nx_test.sql h1:AD5RbGgyptYGkcN9PwLkv6Ve+trXOa0l9qDGXQYhIVU=\n"),
        ("atlas/x_test.sql", b"-- nothing\n"),
        ("atlas/y_test.sql", WRONG),
    ]);
    insta::assert_snapshot!(folder.run(&["check", "."]), @"
    exit 0
    --- stdout
    No problems found in 4 files; 2 files skipped: 2 for tests (see pgvet config --files)
    ");
}

/// Also one of Liquibase at the top of a project, in folders whose names say nothing.
#[test]
fn a_changelog_goes_before_names_wherever_it_is() {
    let folder = Folder::new(&[
        ("changelog.yaml", b"databaseChangeLog:\n- include:\n    file: target/sql/1.sql\n"),
        ("target/sql/1.sql", b"--liquibase formatted sql\n--changeset a:1\nSELEC 1;\n"),
        ("target/sql/2.sql", b"--liquibase formatted sql\n--changeset a:2\nSELEC 2;\n"),
    ]);
    let files = folder.run(&["config", "--files", "."]);
    assert!(files.contains("up          target/sql/1.sql") && files.contains("1 up, 1 skipped"), "{files}");
    assert!(folder.run(&["check", "."]).contains("1 error in 1 of 1 file"));
}

#[test]
fn in_a_project_without_sql_files_the_error_says_how_to_print_them() {
    let folder = Folder::new(&[("manage.py", b""), ("shop/migrations/0001_initial.py", b"")]);
    insta::assert_snapshot!(folder.run(&["check"]), @"
    exit 2
    --- stderr
    error: `.` has no SQL files to check
      help: this is a Django project, whose migrations are not SQL files; run the migrations on a temporary PostgreSQL server and check the captured SQL: `pgvet capture -- python manage.py migrate` (the project must take its connection from DATABASE_URL, or from PGHOST and PGPORT; set others with --env)
    ");
    assert!(folder.run(&["init", "--print"]).starts_with("exit 0"));
    assert!(folder.run(&["init"]).contains("pgvet capture -- python manage.py migrate"));
}

#[test]
fn empty_standard_input_is_an_error_unless_it_is_allowed() {
    let folder = Folder::new(&[]);
    insta::assert_snapshot!(folder.run(&["check", "-"]), @"
    exit 2
    --- stderr
    error: `<stdin>` is empty, so nothing was checked
      help: the command that writes it may have failed; use --allow-empty if it may print nothing
    ");
    assert!(folder.run(&["check", "-", "--allow-empty"]).starts_with("exit 0"));
}
