//! Code that the fuzz targets share.

pub mod check;
mod mutate;
mod ranges;

/// The cases that rules are tested with; fixtures are written so, and are the first inputs.
#[path = "../../crates/linter/tests/rules/scenario.rs"]
#[allow(dead_code, reason = "written for tests, which use more of it")]
mod scenario;

/// Checks of fixes, shared with the tests of rules.
#[path = "../../crates/linter/tests/rules/fix_made.rs"]
mod fix_made;

use pgvet_syntax::statement::PARSE_STACK_BYTES;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{LazyLock, Mutex};

/// A property to check, and the text for which.
type Job = (fn(&str), String);

/// One thread for all runs: to start one with so large a stack takes longer than most of them.
static WORKER: LazyLock<Mutex<(Sender<Job>, Receiver<()>)>> = LazyLock::new(|| {
    let (jobs, job) = channel::<Job>();
    let (done, is_done) = channel();
    let work = move || job.into_iter().map(|(check, text)| check(&text)).try_for_each(|()| done.send(()));
    let worker = std::thread::Builder::new().stack_size(PARSE_STACK_BYTES).spawn(work);
    worker.expect("a thread can be started");
    Mutex::new((jobs, is_done))
});

/// Runs a check with the stack that parsing needs. The fuzzer has seen a panic when it ends the thread.
pub fn on_large_stack(check: fn(&str), text: &str) {
    let worker = WORKER.lock().expect("no panic is survived");
    worker.0.send((check, text.to_owned())).expect("the thread runs");
    worker.1.recv().expect("the check has ended");
}

/// Changes the first `size` bytes of `data`, which has room for `max_size`, and returns the new size. Bytes are changed as
/// well, now and then.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut random = fastrand::Rng::with_seed(seed.into());
    let text = match std::str::from_utf8(&data[..size]) {
        Ok(text) if random.u8(..8) > 0 => text,
        _ => return libfuzzer_sys::fuzzer_mutate(data, size, max_size),
    };
    let mut text = text.to_owned();
    for _ in 0..random.usize(1..=4) {
        text = mutate::changed(&text, &mut random);
    }
    let mut end = text.len().min(max_size);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    data[..end].copy_from_slice(&text.as_bytes()[..end]);
    end
}

/// A target over SQL: what it checks of a text, and how new texts are made of old ones.
#[macro_export]
macro_rules! sql_target {
    ($check:path) => {
        libfuzzer_sys::fuzz_target!(|text: &str| $crate::on_large_stack($check, text));
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            $crate::mutate(data, size, max_size, seed)
        });
    };
}
