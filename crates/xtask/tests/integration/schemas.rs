//! The schemas of the model are those of servers, and so is what its SQL makes.

use pgvet_model::version::PgVersion;
use pgvet_syntax::statement::PARSE_STACK_BYTES;
use pgvet_trace::server::testing::binaries;
use xtask::measure::schemas::measure;

/// The oldest and the newest major.
const MAJORS: [u8; 2] = [14, 18];

/// Some of the histories, and how many of them are compared at least.
struct Sample {
    /// Part of their names.
    name: &'static str,
    histories: usize,
    objects: usize,
}

const SAMPLES: [Sample; 2] = [
    Sample { name: "rules/co", histories: 23, objects: 58 },
    Sample { name: "tools/sqlx/", histories: 10, objects: 23 },
];

#[test]
#[expect(clippy::print_stderr, reason = "the log of a test says how much was compared")]
fn the_schemas_of_the_model_are_those_of_servers() {
    let compare = || {
        for major in MAJORS.into_iter().filter(|major| binaries(*major).is_some()) {
            for Sample { name, histories, objects } in SAMPLES {
                let report = measure(PgVersion(major), name).unwrap();
                let summary = format!("{name}: {}", report.summary());
                eprintln!("{summary}");
                let enough = report.compared >= histories && report.objects >= objects;
                assert!(enough, "too few are compared: {summary}, skipped: {:#?}", report.skipped);
                assert_eq!(report.applied, report.compared, "{summary}, server and script: {:#?}", report.scripts);
                assert!(report.model.is_empty(), "{summary}, model and server: {:#?}", report.model);
                assert!(report.scripts.is_empty(), "{summary}, server and script: {:#?}", report.scripts);
            }
        }
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(PARSE_STACK_BYTES).spawn_scoped(scope, compare).unwrap();
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}
