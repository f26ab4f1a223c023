//! Long statements tell how far they have come.

use pgvet_model::migration::Migration;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::parse_file;
use pgvet_trace::provider::{Scratch, ScratchOptions};
use pgvet_trace::server::testing::binaries;
use pgvet_trace::{Event, Progress, Settings, run};

/// Returns the reported progress of the second of these two statements.
fn told(major: u8, sql: &str, progress: bool) -> Option<Vec<Progress>> {
    binaries(major)?;
    let file = parse_file(SourceFile::new("m.sql".to_owned(), sql.to_owned()));
    let migration = Migration::new(&file);
    let setup = "CREATE FUNCTION slow(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \
                 $$ BEGIN PERFORM pg_sleep(0.003); RETURN $1; END $$; \
                 CREATE TABLE t AS SELECT g AS a, repeat('x', 1000) AS b FROM generate_series(1, 400) g";
    let settings = Settings { setup: vec![setup.to_owned()], progress, ..Settings::default() };
    let mut provider = Scratch::new(ScratchOptions { major: Some(major), ..ScratchOptions::default() });
    let mut told = Vec::new();
    let trace = run(&[migration], &mut provider, &settings, &mut |event| {
        if let Event::Statement { number: 1, of, progress: Some(progress), .. } = event {
            assert_eq!(of, 2);
            told.push(progress.clone());
        }
    });
    assert!(trace.unwrap().migrations[0].failure().is_none());
    Some(told)
}

#[test]
fn an_index_build_tells_its_phase_and_how_much_is_read() {
    for major in [14, 18] {
        for command in ["CREATE INDEX", "CREATE INDEX CONCURRENTLY"] {
            let sql = format!("SELECT 1; {command} i ON t (slow(a))");
            let Some(told) = told(major, &sql, true) else { continue };
            let building = told.iter().find(|told| told.phase.starts_with("building index")).unwrap();
            assert!(building.total.is_some_and(|total| building.done <= total), "{building:?}");
            assert!(building.to_string().contains(" of "), "{building}");
        }
    }
}

#[test]
fn analyze_tells_its_phase_and_how_much_is_sampled() {
    for major in [14, 18] {
        let Some(told) = told(major, "CREATE INDEX i ON t (slow(a)); ANALYZE t", true) else { continue };
        let found = told.iter().find(|told| told.phase == "computing statistics").unwrap();
        assert_eq!((found.unit.as_str(), Some(found.done)), ("blocks", found.total), "{found}");
    }
}

#[test]
fn progress_is_not_reported_without_a_listener() {
    let Some(told) = told(18, "SELECT 1; CREATE INDEX i ON t (slow(a))", false) else { return };
    assert_eq!(told, []);
}
