//! Statements of a loop, folded into one.

use super::Work;
use crate::shape::shape;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Folds statements of one shape into the first of them, as far as they can be judged as one: under the same settings,
/// with the same end, and with nothing between them that could take a lock or change the schema.
pub(super) fn fold(work: Vec<Work>) -> Vec<Work> {
    let mut folded: Vec<Work> = Vec::new();
    let mut known: HashMap<(String, bool, bool), usize> = HashMap::new();
    for one in work {
        let is_same_setting = folded.last().is_none_or(|last| last.settings == one.settings);
        if one.error.is_some() || !is_about_rows(&one.sql) || !is_same_setting {
            known.clear();
        }
        match known.entry((shape(&one.sql), one.is_undone, one.is_rolled_back)) {
            Entry::Occupied(first) => folded[*first.get()].times += 1,
            Entry::Vacant(entry) => {
                entry.insert(folded.len());
                folded.push(one);
            }
        }
    }
    folded
}

/// Whether a statement reads or changes rows, as the body of a loop does.
fn is_about_rows(sql: &str) -> bool {
    let first = sql.trim_start().split(|one: char| !one.is_ascii_alphabetic()).next().unwrap_or_default();
    ["select", "insert", "update", "delete", "merge", "with"].iter().any(|word| first.eq_ignore_ascii_case(word))
}
