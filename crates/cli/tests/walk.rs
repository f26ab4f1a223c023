//! Which files below a folder are checked, and what is said about the others.

#![expect(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

mod support;

use support::Folder;

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
    No problems found in 1 file
    ");
    for named in ["app-samples", "t", "sql/x_demo.sql"] {
        assert!(folder.run(&["check", named]).contains("1 error in 1 of 1 file"), "{named}");
    }
}

#[test]
fn what_is_for_another_database_is_told_once_and_fails_nothing() {
    let folder = Folder::new(&[
        ("shop/migration/V1__a.sql", MYSQL),
        ("shop/migration/V2__b.sql", b"CREATE INDEX i ON a (b);\n"),
        ("users/migrations/1_a.sql", b"-- nothing\n"),
        ("users/queries/a.sql", b"-- name: GetUser :one\nSELECT * FROM users;\n"),
    ]);
    insta::assert_snapshot!(folder.run(&["check", "."]), @"
    exit 0
    --- stdout
    No problems found in 1 file
    --- stderr
    note: `shop/migration/V1__a.sql` and 1 other file were not checked: they look written for MySQL
      help: name a file to have it checked all the same; `exclude` under [migrations] in pgvet.toml leaves files out without a word
    ");
    let in_github = folder.run(&["check", ".", "--format", "github"]);
    assert!(
        in_github.contains("::notice title=pgvet::`shop/migration/V1__a.sql` and 1 other file were"),
        "{in_github}"
    );
    let output = folder.output(&["check", ".", "--format", "json"], b"", &[]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["note"]["path"], "shop/migration/V1__a.sql");
    let output = folder.output(&["check", ".", "--format", "sarif"], b"", &[]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let invocation = &document["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], true);
    assert_eq!(invocation["toolExecutionNotifications"][0]["level"], "note");
    let in_markdown = folder.run(&["check", ".", "--format", "markdown"]);
    assert!(in_markdown.contains("> [!NOTE]\n> `shop/migration/V1__a.sql` and"), "{in_markdown}");
}

#[test]
fn what_is_named_is_checked_and_what_is_excluded_is_not_mentioned() {
    let folder = Folder::new(&[("m/1_a.sql", MYSQL), ("n/1_a.sql", b"-- nothing\n")]);
    assert!(folder.run(&["check", "m/1_a.sql"]).contains("error[syntax-error]"));
    std::fs::write(folder.path().join("pgvet.toml"), "[migrations]\nexclude = [\"m/**\"]\n").unwrap();
    insta::assert_snapshot!(folder.run(&["check", "."]), @"
    exit 0
    --- stdout
    No problems found in 1 file
    ");
}
