//! Files behind links to folders, which a walk does not follow and a migration tool may.

use super::Found;
use crate::boundary::Boundary;
use crate::identity::identity;
use crate::skipped;
use ignore::WalkBuilder;
use rustc_hash::FxHashSet;
use std::path::{Path, PathBuf};

/// Returns the SQL files behind links that were not found elsewhere. A link out of the checkout stands for what is
/// behind it, because nothing outside is looked at.
pub(super) fn behind(root: &Path, links: &[PathBuf], found: &[Found]) -> Vec<PathBuf> {
    if links.is_empty() {
        return Vec::new();
    }
    let boundary = Boundary::of_walk(root);
    let mut seen: FxHashSet<PathBuf> = found.iter().map(|found| identity(&found.path)).collect();
    let mut targets: Vec<(PathBuf, &PathBuf)> = links.iter().map(|link| (identity(link), link)).collect();
    targets.sort();
    let mut behind = Vec::new();
    let mut walked: Option<PathBuf> = None;
    for (target, link) in targets {
        // A folder comes before those in it.
        if walked.as_ref().is_some_and(|walked| target.starts_with(walked)) {
            continue;
        }
        if boundary.refusal(link).is_some() {
            behind.push(link.clone());
        } else {
            behind.extend(sql_below(link, &boundary).into_iter().filter(|file| seen.insert(identity(file))));
        }
        walked = Some(target);
    }
    behind
}

/// The SQL files below a folder, whatever git ignores.
fn sql_below(folder: &Path, boundary: &Boundary) -> Vec<PathBuf> {
    let mut walk = WalkBuilder::new(folder);
    walk.standard_filters(false).filter_entry(|entry| entry.file_name() != ".git");
    let is_sql = |entry: &ignore::DirEntry| {
        skipped::may_be_sql(&entry.file_name().to_string_lossy())
            && entry.path().is_file()
            && !(entry.path_is_symlink() && boundary.refusal(entry.path()).is_some())
    };
    walk.build().flatten().filter(|entry| is_sql(entry)).map(ignore::DirEntry::into_path).collect()
}
