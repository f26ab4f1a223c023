//! Applied migrations whose files are gone, as files that stand for them, or as a note.

use super::{Past, Removed};
use crate::config::{ConfigError, Configs};
use crate::git::Changes;
use crate::identity::{Identities, identity};
use crate::plan::Source;
use crate::problem::Problem;
use crate::project::Role;
use crate::{order, roots, skipped};
use pgvet_model::incident::Applied;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns a file for each applied migration of a database that is gone, with the identities of all for which it stands.
/// `sources` are the files of the database, of which there is one at least.
pub(crate) fn stand_ins(
    sources: &[Source],
    changes: &Changes,
    named: &[(PathBuf, PathBuf)],
    identities: &Identities,
) -> Vec<(Source, Vec<PathBuf>)> {
    let Some(Source { config, database, .. }) = sources.first() else { return Vec::new() };
    let is_migration = |path: &Path| {
        as_named_below(path, named).is_some_and(|(path, folder)| {
            skipped::Names::default().skip(&folder, &path).is_none() && !config.is_excluded(&path)
        })
    };
    let stand_in = |(paths, removed): (Vec<PathBuf>, Removed)| {
        let (path, _) = as_named_below(paths.first()?, named)?;
        let before = changes.before(paths.first()?).map(|text| Arc::from(String::from_utf8_lossy(text)));
        let is_in_base = paths.iter().any(|path| changes.applied(path) == Applied::InBase);
        let applied = if is_in_base { Applied::InBase } else { Applied::Committed };
        let past = Past { before, removed: Some(removed), applied: Some(applied), ..Past::default() };
        let source = Source::new(path, Role::Reported, config.clone());
        Some((Source { past, database: *database, ..source }, paths))
    };
    Removed::find(sources, changes, identities, is_migration).into_iter().filter_map(stand_in).collect()
}

/// The folders that the request names, without links, each with the way the user named it.
pub(crate) fn named_folders(asked: &BTreeSet<PathBuf>) -> Vec<(PathBuf, PathBuf)> {
    asked.iter().map(|folder| (identity(folder), folder.clone())).collect()
}

/// The path of a file below one of the folders, as the user would name it.
pub(crate) fn as_named_below(path: &Path, folders: &[(PathBuf, PathBuf)]) -> Option<(PathBuf, PathBuf)> {
    folders.iter().find_map(|(real, named)| Some((named.join(path.strip_prefix(real).ok()?), named.clone())))
}

/// Reports migrations that were deleted, or moved out of their folder, and that no finding reports.
pub(crate) fn note_on_deleted(
    changes: &Changes,
    named: &[(PathBuf, PathBuf)],
    configs: &Configs,
    reported: &BTreeSet<PathBuf>,
) -> Result<Option<Problem>, ConfigError> {
    let mut deleted = Vec::new();
    for path in changes.deleted().filter(|path| !reported.contains(*path)) {
        let Some((path, folder)) = as_named_below(path, named) else { continue };
        let parent = path.parent().unwrap_or(Path::new(""));
        let is_named = || roots::named_folder(parent, &mut roots::Repositories::default()).is_some();
        let is_migration = order::is_versioned(&path) || is_named();
        let is_skipped = skipped::Names::default().skip(&folder, &path).is_some();
        if is_migration && !is_skipped && !configs.of(parent)?.is_excluded(&path) {
            deleted.push(path);
        }
    }
    let Some(first) = deleted.first() else { return Ok(None) };
    let changes = "deleted or moved: their changes remain in every database to which they were applied";
    let message = match deleted.len() - 1 {
        0 => "was deleted or moved: its changes remain in every database to which it was applied".to_owned(),
        1 => format!("and 1 other migration were {changes}"),
        count => format!("and {count} other migrations were {changes}"),
    };
    let help = "restore migrations that have run on any database, and undo their changes in a new migration; some tools \
                refuse to run without them";
    Ok(Some(Problem::new(first, message, Some(help))))
}
