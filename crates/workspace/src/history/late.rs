//! New migrations that sort before one that is applied, or have its version.

use super::runs_once;
use crate::git::Changes;
use crate::identity::Identities;
use crate::order;
use crate::plan::Source;
use pgvet_model::incident::Applied;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A migration of the database: of this branch, by its place among the sources, or of the base branch alone.
struct Entry {
    identity: PathBuf,
    source: Option<usize>,
    is_new: bool,
    /// If it is not new.
    applied: Applied,
}

/// Notes of each new migration the newest applied one of its folder, if that sorts after it, and one of its version.
pub(crate) fn mark_late(sources: &mut [Source], changes: &Changes, identities: &Identities) {
    let entry = |(at, source): (usize, &Source)| {
        let identity = identities.of(&source.path);
        Entry { applied: changes.applied(&identity), identity, source: Some(at), is_new: source.past.is_new }
    };
    let mut entries: Vec<Entry> = sources.iter().enumerate().map(entry).collect();
    if !entries.iter().any(|entry| entry.is_new) {
        return;
    }
    let folders: BTreeSet<PathBuf> = entries.iter().map(|entry| order::sequence(&entry.identity)).collect();
    let elsewhere = changes.only_in_base().filter(|path| folders.contains(&order::sequence(path)));
    entries.extend(elsewhere.map(|path| Entry {
        identity: path.to_owned(),
        source: None,
        is_new: false,
        applied: Applied::InBase,
    }));
    entries.retain(|entry| runs_once(&entry.identity));
    order::sort_by(&mut entries, |entry| entry.identity.clone());
    let mut newest: FxHashMap<(PathBuf, Applied), PathBuf> = FxHashMap::default();
    for at in (0..entries.len()).rev() {
        let Entry { identity, source, is_new, applied } = &entries[at];
        let sequence = order::sequence(identity);
        let Some(source) = source.filter(|_| *is_new) else {
            if !is_new {
                newest.entry((sequence, *applied)).or_insert_with(|| identity.clone());
            }
            continue;
        };
        let version = order::version(identity);
        let is_twin = |other: &&Entry| {
            !other.is_new && order::sequence(&other.identity) == sequence && order::version(&other.identity) == version
        };
        let name = |path: &Path| order::place(path).1;
        sources[source].past.twin = entries.iter().find(is_twin).map(|other| (name(&other.identity), other.applied));
        // What is certainly applied goes first.
        let later = [Applied::InBase, Applied::Committed].into_iter().find_map(|applied| {
            let newest = newest.get(&(sequence.clone(), applied)).filter(|path| order::version(path) != version);
            newest.map(|path| (name(path), applied))
        });
        sources[source].past.newest = later;
    }
}
