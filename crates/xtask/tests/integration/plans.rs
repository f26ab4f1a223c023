//! Plans block writes for less time than what they replace. `cargo xtask measure plans` does it with a million rows.

use pgvet_trace::server::testing::binaries;
use xtask::measure::plans::measure;

const RECIPES: [&str; 3] = ["ADD UNIQUE (note, total)", "customer_id SET NOT NULL", "CREATE INDEX ON orders"];

#[test]
fn plans_block_writes_for_less_time_than_their_originals() {
    if binaries(18).is_none() {
        return;
    }
    let compared = measure(18, 300_000, 1, |recipe| RECIPES.iter().any(|wanted| recipe.contains(wanted))).unwrap();
    assert_eq!(compared.len(), RECIPES.len());
    for one in compared {
        assert!(one.plan.held < one.original.held, "{one:?}");
    }
}
