//! Reduced statements are about as small as a person makes them.

use pgvet_model::version::PgVersion;
use pgvet_trace::server::testing::binaries;
use xtask::measure::reduce::measure;

#[test]
fn results_are_about_as_small_as_by_hand() {
    if binaries(18).is_none() {
        return;
    }
    let mut outcomes = measure(PgVersion(18), "cases", 1).unwrap();
    // `cargo xtask measure reduce` runs all of them.
    outcomes.extend(measure(PgVersion(18), "generated", 5).unwrap());
    assert!(outcomes.len() >= 43, "{}", outcomes.len());
    let large = outcomes.iter().filter(|outcome| outcome.is_large());
    let large: Vec<String> =
        large.map(|outcome| format!("{}: {:?}\n{}", outcome.name, outcome.tokens, outcome.sql)).collect();
    assert!(large.is_empty(), "{}", large.join("\n"));
}
