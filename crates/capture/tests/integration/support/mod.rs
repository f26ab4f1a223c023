//! The samples of `fixtures/capture`, whose recordings were made with real frameworks.

use pgvet_capture::Recording;
use pgvet_workspace::STACK_SIZE;
use std::fs;
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/capture").canonicalize().expect("the fixtures are there")
}

fn samples() -> Vec<PathBuf> {
    let entries = fs::read_dir(fixtures()).expect("the fixtures can be listed");
    let mut samples: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    samples.sort();
    assert!(samples.len() >= 19, "{samples:?}");
    samples
}

/// Runs a test for the folder of each sample, with the stack that parsing needs.
pub(crate) fn for_each_sample(test: fn(&Path)) {
    let run = move || samples().iter().for_each(|sample| test(sample));
    let thread = std::thread::Builder::new().stack_size(STACK_SIZE).spawn(run).expect("a thread can be started");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// The recording of a sample.
pub(crate) fn recording(sample: &Path) -> Recording {
    let text = fs::read_to_string(sample.join("recording.jsonl")).expect("a sample has a recording");
    let recording = Recording::from_lines(&text).expect("the recording can be read");
    assert_eq!(recording.to_lines(), text, "a recording is written as it was read");
    recording
}
