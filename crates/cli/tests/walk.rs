//! Which files below a folder are checked, and what is said about the others.

#![expect(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

mod support;

use support::Folder;

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
