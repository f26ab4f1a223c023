//! Many findings of one rule in one migration are one problem.

use crate::diagnostic::{Diagnostic, Label};

/// Where a migration has more than `most` findings, keeps the first. Of the others `shown` become its labels, and `also`
/// says in the message how many there are.
pub(super) fn in_each_migration(
    found: &mut Vec<Diagnostic>,
    most: usize,
    shown: usize,
    also: impl Fn(usize) -> String,
) {
    found.sort_by_key(|diagnostic| (diagnostic.file, diagnostic.range.start));
    let mut merged: Vec<Diagnostic> = Vec::with_capacity(found.len());
    for of_file in found.chunk_by(|one, other| one.file == other.file) {
        match of_file {
            [first, others @ ..] if of_file.len() > most => {
                merged.push(with_others(first, others, shown, &also(others.len())));
            }
            few => merged.extend(few.iter().cloned()),
        }
    }
    *found = merged;
}

fn with_others(first: &Diagnostic, others: &[Diagnostic], shown: usize, also: &str) -> Diagnostic {
    let mut merged = first.clone();
    merged.message = format!("{}, and {also}", first.message);
    for (at, other) in others.iter().enumerate() {
        if at < shown {
            merged.labels.push(Label { file: other.file, range: other.range, message: other.message.clone() });
        }
        merged.severity = merged.severity.max(other.severity);
        let new = |name: &&String| !first.relations.contains(*name);
        merged.relations.extend(other.relations.iter().filter(new).cloned());
    }
    merged
}
