//! The observer must see what real servers were recorded to do in `fixtures/locks`.
//!
//! Two majors with a part of the cases; `PGVET_TRACE_ALL=1` or `cargo xtask measure trace` takes all.

use pgvet_model::version::PgVersion;
use pgvet_trace::server::testing;
use xtask::measure::MAJORS;
use xtask::measure::trace::{Judged, judge};

/// Of how many cases one is traced.
const PART: usize = 4;

#[test]
fn the_observer_sees_what_was_recorded() {
    let all = std::env::var_os("PGVET_TRACE_ALL").is_some();
    let majors = if all { MAJORS.to_vec() } else { vec![PgVersion(15), PgVersion(18)] };
    let majors = majors.into_iter().filter(|major| testing::binaries(major.0).is_some());
    let judging: Vec<_> = majors
        .map(|major| std::thread::Builder::new().stack_size(64 << 20).spawn(move || judged(major, all)).unwrap())
        .collect();
    let judged: Vec<(PgVersion, Vec<Judged>)> = judging.into_iter().map(|judging| judging.join().unwrap()).collect();
    let mut wrong = Vec::new();
    for (major, judged) in &judged {
        assert!(judged.len() > 120, "only {} cases were traced on {major}", judged.len());
        let differing = judged.iter().filter(|judged| !judged.differences.is_empty());
        wrong.extend(differing.map(|judged| format!("{major} {}: {:?}", judged.id, judged.differences)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Different majors take different parts.
fn judged(major: PgVersion, all: bool) -> (PgVersion, Vec<Judged>) {
    let mut at = usize::from(major.0);
    let judged = judge(major, |_| {
        at += 1;
        all || at % PART == 0
    });
    (major, judged.expect("the cases run"))
}
