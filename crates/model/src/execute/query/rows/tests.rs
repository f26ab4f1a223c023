//! The cases of `fixtures/rows/statements.sql`.

use crate::effect::Effects;
use crate::migration::Migration;
use crate::predict::effects;
use crate::production::Functions;
use crate::version::PgVersion;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;
use std::fmt::Write as _;

const STATEMENTS: &str = include_str!("../../../../../../fixtures/rows/statements.sql");

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/rows/statements.sql");

/// The effects of the last statement of `sql`, after what is there and what an earlier migration has done.
fn effects_of(schema: &str, earlier: &str, sql: &str) -> Effects {
    let parse = |path: &str, text: &str| parse_file(SourceFile::new(path.to_owned(), text.to_owned()));
    let files = [parse("1.sql", schema), parse("2.sql", earlier), parse("3.sql", sql)];
    let migrations: Vec<Migration<'_>> =
        files.iter().enumerate().map(|(at, file)| Migration { report: at == 2, ..Migration::new(file) }).collect();
    let version = PgVersion(17);
    let mut found = effects(&migrations, version, &Functions::default());
    found.pop().and_then(|mut statements| statements.pop()).expect("the statement was run").effects
}

/// One line for each table that is read or written.
fn verdicts(effects: &Effects) -> String {
    let mut lines = String::new();
    for read in &effects.reads {
        let _ = writeln!(lines, "--> read {}: {}", read.relation.name, read.rows);
        if let Some((rows, strength)) = &read.row_lock {
            let _ = writeln!(lines, "--> lock {} {strength:?}: {rows}", read.relation.name);
        }
    }
    for change in &effects.data_changes {
        let _ = writeln!(lines, "--> {:?} {}: {}", change.kind, change.relation.name, change.rows);
    }
    lines
}

#[test]
fn statements_have_the_verdicts_of_the_fixture() {
    let (head, cases) = STATEMENTS.split_once("\n-- cases\n").expect("the cases follow the schema");
    let schema =
        head.split_once("\n-- schema\n").and_then(|(_, rest)| rest.split_once("-- fill\n")).expect("a schema").0;
    let mut number = 0;
    let mut judged = String::new();
    for case in cases.split("\n\n") {
        let kept: Vec<&str> = case.lines().filter(|line| !line.starts_with("-->")).collect();
        let sql = kept.join("\n");
        let (earlier, last) = match sql.split_once("-- earlier\n") {
            Some((_, rest)) => rest.split_once("-- then\n").expect("what follows"),
            None => ("", sql.as_str()),
        };
        let effects = effects_of(schema, earlier, last);
        assert_eq!(effects.fails, None, "{sql}");
        let _ = write!(judged, "{sql}\n{}\n", verdicts(&effects));
        number += 1;
    }
    assert!(number >= 60, "only {number} cases");
    let expected = cases.trim_end();
    let judged = judged.trim_end();
    if judged != expected && std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(PATH, format!("{head}\n-- cases\n{judged}\n")).expect("the fixture can be written");
        return;
    }
    let differs = judged.lines().zip(expected.lines()).find(|(judged, expected)| judged != expected);
    assert!(
        judged == expected,
        "INSTA_UPDATE=always writes the verdicts into the fixture; the first that differs: {differs:?}"
    );
}
