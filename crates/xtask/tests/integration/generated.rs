//! The model must agree with servers about random statements, and about those that it once got wrong.

use pgvet_model::version::PgVersion;
use pgvet_syntax::statement::PARSE_STACK_BYTES;
use pgvet_trace::server::testing::binaries;
use xtask::measure::generated::{check_cases, measure};

/// The oldest and the newest major.
const MAJORS: [u8; 2] = [14, 18];

/// Runs on the majors that are installed; a missing one is loud, and a failure in CI.
fn on_servers(test: impl Fn(PgVersion) + Send) {
    std::thread::scope(|scope| {
        let all = || MAJORS.into_iter().filter(|major| binaries(*major).is_some()).map(PgVersion).for_each(test);
        let thread = std::thread::Builder::new().stack_size(PARSE_STACK_BYTES).spawn_scoped(scope, all).unwrap();
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn the_model_agrees_about_what_it_once_got_wrong() {
    on_servers(|version| {
        let (cases, differences) = check_cases(version).unwrap();
        assert!(cases >= 50, "only {cases} cases");
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    });
}

#[test]
fn the_model_agrees_about_random_statements() {
    on_servers(|version| {
        let report = measure(version, 1, 200, false).unwrap();
        assert!(report.statements >= 200 && report.foreseen > 0);
        assert!(report.differences.is_empty(), "PostgreSQL {version}\n{}", report.text);
    });
}
