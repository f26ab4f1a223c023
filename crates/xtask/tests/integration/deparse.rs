//! What is written of a query, and of a statement in a reduction, parses to the same tree.

use pgvet_syntax::statement::PARSE_STACK_BYTES;
use std::path::Path;
use xtask::measure::deparse::measure;

/// What the deparser of `libpg_query` writes with another tree. A reduction keeps such statements as they are.
const CHANGED: [&str; 2] = [
    // COLLATE belongs to the type, and is written after USING.
    "USING NULL COLLATE",
    // INCLUDING ALL is written as a list that lacks an option.
    "INCLUDING COMMENTS INCLUDING COMPRESSION",
];

#[test]
fn queries_of_the_fixtures_are_written_exactly() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let thread = std::thread::Builder::new().stack_size(PARSE_STACK_BYTES).spawn(move || measure(&fixtures));
    let report = thread.unwrap().join().unwrap().unwrap();
    assert!(report.queries > 100, "too few are read: {report:#?}");
    assert!(report.same * 2 > report.queries, "too many are refused: {:#?}", report.refused);
    assert!(report.differing.is_empty(), "{:#?}", report.differing);
    // Its texts are read with another setting of `standard_conforming_strings`.
    assert!(report.not_kept.iter().all(|query| query.contains("ambiguous-text")), "{:#?}", report.not_kept);
    assert!(report.not_written.iter().all(|statement| statement.contains("ambiguous-text")), "{report:#?}");
    assert_eq!(report.changed.len(), CHANGED.len(), "{:#?}", report.changed);
    let is_known = |text: &String| CHANGED.iter().any(|known| text.contains(known));
    assert!(report.changed.iter().all(is_known), "{:#?}", report.changed);
}
