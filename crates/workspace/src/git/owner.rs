//! Whether a folder of git outside of a checkout belongs to it. `.git` may be a file that names any folder, and each folder
//! of git may name another one for its objects, so a checkout could show the history of a repository beside it.

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum size of the file with which the folder of a worktree names the worktree.
const MOST_OF_NAME: u64 = 64 << 10;

/// The message about a folder of git, or the one with its objects, that does not say that it belongs to the checkout.
/// `named_back` is its setting `core.worktree`.
///
/// Source: git 2.47, `Documentation/gitrepository-layout`, "gitdir" and "commondir"; `Documentation/git-worktree`, "DETAILS".
pub(super) fn check(top: &Path, own: &Path, common: &Path, named_back: Option<&Path>) -> Result<(), String> {
    let [top, own, common] =
        [top, own, common].map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.to_owned()));
    let elsewhere = |folder: &Path| format!("its `.git` leads to `{}`", folder.display());
    let is_worktree = own.parent() == Some(common.join("worktrees").as_path());
    if common != own && !is_worktree {
        return Err(format!("{}, which has no worktree there", elsewhere(&common)));
    }
    if own.starts_with(&top) && common.starts_with(&top) {
        return Ok(());
    }
    let worktree = || if is_worktree { worktree(&own)?.parent().map(Path::to_owned) } else { None };
    let belongs = |folder: PathBuf| folder.canonicalize().is_ok_and(|folder| folder == top);
    if named_back.map(Path::to_owned).into_iter().chain(worktree()).any(belongs) {
        return Ok(());
    }
    Err(format!("{}, which does not name this folder as its working tree (`core.worktree`)", elsewhere(&own)))
}

/// The `.git` of the worktree that a folder of git is for.
fn worktree(own: &Path) -> Option<PathBuf> {
    let file = own.join("gitdir");
    let is_small = fs::metadata(&file).is_ok_and(|file| file.is_file() && file.len() <= MOST_OF_NAME);
    let name = if is_small { fs::read(&file).ok()? } else { return None };
    Some(own.join(super::name_of(name.trim_ascii_end())))
}
