//! What is written of a query parses to the same tree.

use pgvet_syntax::statement::PARSE_STACK_BYTES;
use std::path::Path;
use xtask::measure::deparse::measure;

#[test]
fn queries_of_the_fixtures_are_written_exactly() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let thread = std::thread::Builder::new().stack_size(PARSE_STACK_BYTES).spawn(move || measure(&fixtures));
    let report = thread.unwrap().join().unwrap().unwrap();
    assert!(report.queries > 100, "too few are read: {report:#?}");
    assert!(report.same * 2 > report.queries, "too many are refused: {:#?}", report.refused);
    assert!(report.differing.is_empty(), "{:#?}", report.differing);
}
