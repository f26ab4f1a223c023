use crate::check::{check, run};
use crate::settings::Settings;
use pgvet_model::migration::{Direction, Migration};
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;

/// The rules that report in a text, and where.
fn found(text: &str) -> Vec<(&'static str, String)> {
    let file = parse_file(SourceFile::new("m.sql".to_owned(), text.to_owned()));
    let migration = Migration::new(&file);
    let only = ["index-without-concurrently", "unknown-suppression", "unused-suppression"].map(str::to_owned).to_vec();
    let found = check(&[migration], &Settings { only, ..Settings::default() });
    found.into_iter().map(|found| (found.rule, text[found.range.as_usize()].to_owned())).collect()
}

const INDEX: &str = "CREATE INDEX i ON t (a)";
const RULE: &str = "index-without-concurrently";

#[test]
fn a_comment_before_in_or_behind_a_statement_suppresses() {
    assert_eq!(found(&format!("{INDEX};")).len(), 1);
    for text in [
        format!("-- pgvet: ignore[{RULE}] small\n{INDEX};"),
        format!("/* pgvet: ignore[{RULE}] */ {INDEX};"),
        format!("{INDEX}; -- pgvet: ignore[{RULE}]"),
        format!("CREATE INDEX i -- pgvet: ignore[{RULE}]\nON t (a);"),
        format!("SELECT 1;\n{INDEX};\n-- pgvet: ignore-file[{RULE}]"),
        format!("-- pgvet: ignore-file[{RULE}]\nSELECT 1;\n{INDEX};"),
    ] {
        assert_eq!(found(&text), [], "{text}");
    }
}

#[test]
fn a_comment_in_a_body_counts_for_its_statement() {
    let text = format!("DO $$ BEGIN\n-- pgvet: ignore[{RULE}]\nCREATE INDEX i ON t (a);\nEND $$;");
    assert!(found(&text).iter().all(|(rule, _)| *rule != RULE));
}

#[test]
fn a_comment_about_another_statement_is_unused() {
    let text = format!("-- pgvet: ignore[{RULE}]\nSELECT 1;\n{INDEX};");
    let rules: Vec<&str> = found(&text).into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(rules, ["unused-suppression", RULE]);
    let text = format!("SELECT 1;\n-- pgvet: ignore[{RULE}]");
    assert_eq!(found(&text), [("unused-suppression", format!("-- pgvet: ignore[{RULE}]"))]);
}

#[test]
fn names_are_checked() {
    let text = "-- pgvet: ignore[index-without-concurrentl, syntax-error]\nSELECT 1;";
    let expected = ["index-without-concurrentl", "syntax-error"];
    assert_eq!(found(text), expected.map(|name| ("unknown-suppression", name.to_owned())));
}

#[test]
fn rules_that_do_not_run_are_not_unused() {
    assert_eq!(found("-- pgvet: ignore[drop-table, work-after-strong-lock]\nSELECT 1;"), []);
}

#[test]
fn comments_of_other_linters_concern_the_rules_that_correspond() {
    for text in [
        format!("-- squawk-ignore require-concurrent-index-creation\n{INDEX};"),
        format!("-- squawk-ignore-file\nSELECT 1;\n{INDEX};"),
        format!("-- eugene: ignore E6\n{INDEX};"),
        format!("-- eugene: ignore\n{INDEX};"),
        format!("-- atlas:nolint PG101\n{INDEX};"),
        format!("-- atlas:nolint\n\nSELECT 1;\n{INDEX};"),
    ] {
        assert_eq!(found(&text), [], "{text}");
    }
    for text in [
        format!("-- squawk-ignore ban-drop-table\n{INDEX};"),
        format!("-- squawk-ignore require-concurrent-index-creation\nSELECT 1;\n{INDEX};"),
        format!("-- squawk-ignore no-such-rule\n{INDEX};"),
        format!("-- atlas:nolint destructive\n{INDEX};"),
    ] {
        assert_eq!(found(&text).len(), 1, "{text}");
    }
}

#[test]
fn what_is_suppressed_is_kept_with_the_reason() {
    let text = format!("-- pgvet: ignore[{RULE}]: few rows\n{INDEX};");
    let file = parse_file(SourceFile::new("m.sql".to_owned(), text));
    let migration = Migration::new(&file);
    let outcome = run(&[migration], &Settings { only: vec![RULE.to_owned()], ..Settings::default() }, &());
    let suppressed: Vec<_> = outcome.suppressed.iter().map(|one| (one.diagnostic.rule, one.reason.as_str())).collect();
    assert_eq!(suppressed, [(RULE, "few rows")]);
    assert_eq!(outcome.found, []);
}

/// The rules that report in a rollback migration.
fn found_down(lint_down: bool) -> Vec<&'static str> {
    let up = parse_file(SourceFile::new("1.up.sql".to_owned(), "CREATE TABLE t (a int);".to_owned()));
    let down = parse_file(SourceFile::new("1.down.sql".to_owned(), format!("{INDEX}; DROP TABLE t; SELEC;")));
    let later = parse_file(SourceFile::new("2.up.sql".to_owned(), "ALTER TABLE t ADD b int;".to_owned()));
    let migration = |file, direction| Migration { direction, ..Migration::new(file) };
    let migrations =
        [migration(&up, Direction::Up), migration(&down, Direction::Down), migration(&later, Direction::Up)];
    let only = ["index-without-concurrently", "statement-will-fail", "syntax-error"].map(str::to_owned).to_vec();
    let found = check(&migrations, &Settings { only, lint_down, ..Settings::default() });
    found.into_iter().map(|found| found.rule).collect()
}

#[test]
fn rollback_migrations_are_judged_on_request_and_leave_nothing_behind() {
    assert_eq!(found_down(false), ["syntax-error"]);
    assert_eq!(found_down(true), ["index-without-concurrently", "syntax-error"]);
}
