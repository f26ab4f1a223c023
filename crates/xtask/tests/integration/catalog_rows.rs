//! The rows that CREATE TABLE and CREATE INDEX add to the system catalogs, predicted and counted on real servers.

use pgvet_model::effect::CatalogRows;
use pgvet_model::migration::Migration;
use pgvet_model::predict::effects;
use pgvet_model::production::Functions;
use pgvet_model::version::PgVersion;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{PARSE_STACK_BYTES, parse_file};
use pgvet_trace::server::Server;
use pgvet_trace::server::testing::{MAJORS, server};
use std::path::Path;

/// A table to be made.
struct Case {
    name: String,
    /// The first major that accepts it.
    from: u8,
    setup: String,
    statement: String,
}

/// The cases of `fixtures/catalog_rows/cases.sql`: a line `--` separates setup from statement.
fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/catalog_rows/cases.sql");
    let text = std::fs::read_to_string(path).unwrap();
    let case = |part: &str| {
        let (name, sql) = part.split_once('\n').unwrap();
        let from = sql.strip_prefix("-- from: ").and_then(|rest| rest.lines().next());
        let (setup, statement) = sql.split_once("\n--\n").unwrap_or(("", sql));
        Case {
            name: name.to_owned(),
            from: from.map_or(0, |from| from.parse().unwrap()),
            setup: setup.to_owned(),
            statement: statement.to_owned(),
        }
    };
    text.split("-- case: ").skip(1).map(case).collect()
}

fn predicted(case: &Case, major: u8) -> Result<CatalogRows, String> {
    let parse = |text: &String| parse_file(SourceFile::new(String::new(), text.clone()));
    let files = [parse(&case.setup), parse(&case.statement)];
    let migration = |file, report| Migration { report, ..Migration::new(file) };
    let found =
        effects(&[migration(&files[0], false), migration(&files[1], true)], PgVersion(major), &Functions::default());
    let only = &found[1][0].effects;
    match &only.fails {
        Some(failure) => Err(format!("refused: {}", failure.reason)),
        None => Ok(only.catalog_rows),
    }
}

/// Rows of every catalog.
fn count(server: &Server) -> Vec<(&'static str, i64)> {
    let catalogs = CatalogRows::default().all().map(|(name, _)| name);
    let counts: Vec<String> = catalogs.iter().map(|name| format!("(SELECT count(*) FROM {name})")).collect();
    let rows = server.query("test", &format!("SELECT {}", counts.join(", "))).unwrap();
    let numbers = rows[0].iter().map(|value| value.as_ref().unwrap().parse().unwrap());
    catalogs.into_iter().zip(numbers).collect()
}

/// Temporary tables live as long as their session, so everything runs in one, which counts before and after.
fn counted(server: &Server, case: &Case) -> Vec<(&'static str, i64)> {
    server.query("postgres", "DROP DATABASE IF EXISTS test").unwrap();
    server.query("postgres", "CREATE DATABASE test").unwrap();
    // The schema of temporary tables is made once per session.
    let warm = "CREATE TEMP TABLE warm (); DROP TABLE warm;";
    server.query("test", &format!("{warm} {}", case.setup)).unwrap();
    let before = count(server);
    let catalogs = before.iter().map(|(name, _)| format!("(SELECT count(*) FROM {name})"));
    let counts = format!("SELECT {}", catalogs.collect::<Vec<_>>().join(", "));
    let rows = server.query("test", &format!("{} {counts}", case.statement)).unwrap();
    let after = rows.last().unwrap().iter().map(|value| value.as_ref().unwrap().parse::<i64>().unwrap());
    before.iter().zip(after).map(|((name, before), after)| (*name, after - before)).collect()
}

/// A line for each catalog of each case that differs.
fn differences(major: u8) -> Vec<String> {
    let Some(server) = server(major) else { return Vec::new() };
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.from <= major).collect();
    assert!(cases.len() >= 30);
    let mut mismatches = Vec::new();
    for case in &cases {
        let counted = counted(&server, case);
        match predicted(case, major) {
            Err(problem) => mismatches.push(format!("{major} {}: {problem}", case.name)),
            Ok(rows) => {
                for ((catalog, predicted), (_, counted)) in rows.all().into_iter().zip(counted) {
                    if i64::try_from(predicted).unwrap() != counted {
                        let case = &case.name;
                        mismatches
                            .push(format!("{major} {case}: {catalog} gets {counted} rows, predicted {predicted}"));
                    }
                }
            }
        }
    }
    mismatches
}

#[test]
fn the_catalogs_of_real_servers_get_the_predicted_rows() {
    let all = || {
        let mismatches: Vec<String> = MAJORS.into_iter().flat_map(differences).collect();
        assert!(mismatches.is_empty(), "\n{}\n", mismatches.join("\n"));
    };
    let thread = std::thread::Builder::new().stack_size(PARSE_STACK_BYTES).spawn(all).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
