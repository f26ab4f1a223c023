//! Statements of the fixtures, changed at random: whatever comes out, the engine neither panics nor hangs.
//! `.ci/faults statements 1000000` runs more of them.

#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;

use fastrand::Rng;
use mutate::changed;
use pgvet_linter::check::check;
use pgvet_linter::settings::Settings;
use pgvet_model::migration::Migration;
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{PARSE_STACK_BYTES, parse_file};
use std::time::{Duration, Instant};

/// Number of texts that are checked without `PGVET_FAULTS`.
const FEW: u64 = 2_000;

/// A text takes milliseconds; builds for tests are slow, and so are busy machines.
const LIMIT: Duration = Duration::from_secs(20);

/// A text grows with each change, and becomes another one when it is this long.
const LONGEST: usize = 4_000;

#[test]
fn no_statement_makes_the_engine_panic_or_hang() {
    let count = std::env::var("PGVET_FAULTS").ok().and_then(|count| count.parse().ok()).unwrap_or(FEW);
    let checks =
        std::thread::Builder::new().stack_size(PARSE_STACK_BYTES).spawn(move || (0..count).for_each(check_one));
    checks.expect("a thread can be started").join().expect("no text makes it panic");
}

thread_local! {
    static TEXT: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

fn check_one(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let before = TEXT.take();
    let text = changed(if before.len() < LONGEST { &before } else { "" }, &mut random);
    let file = parse_file(SourceFile::new("1.sql".to_owned(), text.clone()));
    let begun = Instant::now();
    let found = check(&[Migration::new(&file)], &Settings::default());
    assert!(begun.elapsed() < LIMIT, "{:?}: {text}", begun.elapsed());
    let defect = found.iter().find(|finding| finding.rule == "internal-error");
    assert!(defect.is_none(), "{defect:?}: {text}");
    TEXT.set(text);
}
