//! Where a recorded run and the model differ.

use super::observation::{End, Observation, Recorded};
use super::predicted::Prediction;
use std::collections::BTreeSet;

/// A part of a run in which the model says something else.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    pub part: &'static str,
    pub recorded: String,
    pub predicted: String,
}

/// How many parts of a run are compared.
pub const PARTS: usize = 6;

/// What was seen, without what a file that never ended had done when the run was killed: how far it came is chance.
fn finished(seen: &Observation, predicted: &Prediction) -> Observation {
    let mut seen = seen.clone();
    if seen.end == End::Never && predicted.end == End::Never {
        let ended = |file: &str| predicted.steps.iter().any(|step| step.file == file);
        seen.steps.retain(|step| ended(&step.file));
        let made: BTreeSet<&str> = seen.steps.iter().map(|step| step.object.as_str()).collect();
        seen.left.retain(|object| made.contains(object.as_str()));
    }
    seen
}

/// Compares all parts.
pub fn differences(recorded: &Recorded, predicted: &Prediction) -> Vec<Difference> {
    let seen = &finished(&recorded.seen, predicted);
    let mut files: Vec<&str> = seen.steps.iter().map(|step| step.file.as_str()).collect();
    files.dedup();
    let mut predicted_files: Vec<&str> = predicted.steps.iter().map(|step| step.file.as_str()).collect();
    predicted_files.dedup();
    let steps = |objects: Vec<String>| objects.join(", ");
    let parts = [
        ("files", files.join(", "), predicted_files.join(", ")),
        (
            "statements",
            steps(seen.steps.iter().map(|step| step.object.clone()).collect()),
            steps(predicted.steps.iter().map(|step| step.object.clone()).collect()),
        ),
        (
            "transactions",
            steps(seen.steps.iter().map(|step| step.transaction.to_string()).collect()),
            steps(predicted.steps.iter().map(|step| step.transaction.to_string()).collect()),
        ),
        (
            "settings",
            steps(seen.steps.iter().map(|step| step.lock_timeout.to_string()).collect()),
            steps(predicted.steps.iter().map(|step| step.lock_timeout.to_string()).collect()),
        ),
        (
            "end",
            format!("{:?} {}", seen.end, seen.error.as_deref().unwrap_or_default()),
            format!("{:?} {}", predicted.end, predicted.error.as_deref().unwrap_or_default()),
        ),
        ("left", seen.left.join(", "), predicted.left.join(", ")),
    ];
    let differ = parts.into_iter().filter(|(_, recorded, predicted)| recorded != predicted);
    differ.map(|(part, recorded, predicted)| Difference { part, recorded, predicted }).collect()
}
