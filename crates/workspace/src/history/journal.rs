//! New migrations that Drizzle passes over because of the times in its journal.
//!
//! Drizzle runs the entries whose `when` is later than that of the newest applied one, wherever they stand in the journal.
//! Source: drizzle-orm 0.45.4, `src/pg-core/dialect.ts`, `migrate`.

use crate::order;
use crate::plan::Source;
use crate::read;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The path of the journal in a folder of migrations.
const JOURNAL: &str = "meta/_journal.json";

/// Notes of each new migration the newest applied one of its journal, if that has a later time.
pub(super) fn mark_outdated(sources: &mut [Source]) {
    let folder = |source: &Source| order::place(&source.path).0.to_owned();
    let folders: BTreeSet<PathBuf> = sources.iter().filter(|source| source.past.is_new).map(folder).collect();
    for root in folders {
        let Some(times) = times(&root) else { continue };
        let time = |source: &Source| times.get(&tag(&source.path)).copied();
        let own = || sources.iter().filter(|source| order::place(&source.path).0 == root);
        let applied = own().filter(|source| !source.past.is_new);
        let newest = applied.filter_map(|source| Some((time(source)?, source))).max_by_key(|(time, _)| *time);
        let newest = newest.and_then(|(time, source)| Some((time, (tag(&source.path), source.past.applied?))));
        let Some((newest_time, newest)) = newest else { continue };
        let is_outdated = |source: &Source| {
            source.past.is_new
                && order::place(&source.path).0 == root
                && time(source).is_some_and(|time| time <= newest_time)
        };
        sources
            .iter_mut()
            .filter(|source| is_outdated(source))
            .for_each(|source| source.past.outdated_by = Some(newest.clone()));
    }
}

/// The name of a migration in the journal.
fn tag(path: &Path) -> String {
    let name = order::place(path).1;
    name.strip_suffix(".sql").map_or_else(|| name.clone(), str::to_owned)
}

/// The times of the entries of a journal.
fn times(folder: &Path) -> Option<BTreeMap<String, u64>> {
    let journal = read::text(&folder.join(JOURNAL)).ok()?;
    let journal: serde_json::Value = serde_json::from_str(&journal).ok()?;
    let time = |entry: &serde_json::Value| Some((entry["tag"].as_str()?.to_owned(), entry["when"].as_u64()?));
    Some(journal["entries"].as_array()?.iter().filter_map(time).collect())
}
