//! The schemas of the model are those of servers, and so is what its SQL makes.

use pgvet_model::version::PgVersion;
use pgvet_syntax::statement::PARSE_STACK_BYTES;
use pgvet_trace::server::testing::binaries;
use xtask::measure::schemas::measure;

/// The oldest and the newest major.
const MAJORS: [u8; 2] = [14, 18];

/// Parts of the names of histories, each with how many of them can be compared at least.
const HISTORIES: [(&str, usize); 2] = [("rules/co", 20), ("tools/sqlx/", 10)];

#[test]
fn the_schemas_of_the_model_are_those_of_servers() {
    let compare = || {
        for major in MAJORS.into_iter().filter(|major| binaries(*major).is_some()) {
            for (only, least) in HISTORIES {
                let report = measure(PgVersion(major), only).unwrap();
                assert!(report.applied >= least, "PostgreSQL {major}, {only}: only {} are compared", report.applied);
                assert!(report.model.is_empty(), "PostgreSQL {major}, model and server: {:#?}", report.model);
                assert!(report.scripts.is_empty(), "PostgreSQL {major}, server and script: {:#?}", report.scripts);
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
