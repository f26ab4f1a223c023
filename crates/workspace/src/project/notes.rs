//! Notes for the reader of a report about the files of a run.

use super::{ProjectFile, Request};
use crate::framework;
use crate::layout::captured::Origin;
use crate::layout::{Sign, Tool};
use crate::problem::Problem;
use std::path::{Path, PathBuf};

pub(super) fn stray(path: &Path) -> Problem {
    let message = "was skipped: it contains NUL bytes (UTF-16 or binary), and nothing shows that it is a migration";
    Problem::new(path, message, Some("save it as UTF-8 if it is a migration; otherwise rename it, or `exclude` it"))
}

/// What is said about captured migrations whose sources are not in the project. `pgvet capture` itself has said it about
/// those in a temporary folder.
pub(super) fn foreign(files: &[ProjectFile]) -> Option<Problem> {
    let is_kept = |origin: &Origin| origin.is_foreign() && origin.temporary_name.is_none();
    let is_foreign = |file: &&ProjectFile| file.origin.as_ref().is_some_and(is_kept);
    let first = files.iter().find(is_foreign)?;
    let others = match files.iter().filter(is_foreign).count() {
        1 => String::new(),
        2 => " and 1 other file".to_owned(),
        count => format!(" and {} other files", count - 1),
    };
    let why = if others.is_empty() {
        "was captured from a migration outside this project, so its findings are not reported".to_owned()
    } else {
        format!("{others} were captured from migrations outside this project, so their findings are not reported")
    };
    let help = "no action is needed for migrations of installed packages";
    Some(Problem::new(&first.path, why.trim_start(), Some(help)))
}

/// What is said of a project whose changes of the schema are not SQL files, if nothing shows that a migration tool runs the
/// files that were found.
pub(super) fn framework(files: &[ProjectFile], request: &Request) -> Option<Problem> {
    let folder = request.paths.first().map_or(Path::new("."), PathBuf::as_path);
    let is_of_tool =
        |file: &ProjectFile| file.layout.tool != Tool::Plain || file.layout.sign != Sign::None || file.origin.is_some();
    // If there is nothing to check, a problem says so.
    let has_nothing = files.is_empty() && request.changes.is_none();
    if has_nothing || !request.paths.iter().all(|path| path.is_dir()) || files.iter().any(is_of_tool) {
        return None;
    }
    let found = framework::around(folder)?;
    let message = format!("belongs to {}; only SQL files are checked", found.describe());
    Some(Problem::new(folder, message, Some(&found.advice())))
}
