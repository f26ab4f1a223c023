//! From the paths on the command line to the SQL files that they name.

mod linked;

use crate::boundary::Boundary;
use crate::config::absolute;
use crate::git::index;
use crate::identity::{Identities, identity};
use crate::ignored;
use crate::order;
use crate::problem::Problem;
use crate::roots::Repositories;
use crate::skipped::{self, Skip, SkipReason};
use ignore::WalkBuilder;
use rustc_hash::FxHashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A file with SQL that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// Why its path says that it is not a migration; `None` if it does not.
    pub(crate) skip: Option<Skip>,
}

/// Returns the SQL files at `path`: the file itself, or all below a folder in the order of its migration tool.
pub(crate) fn files_at(path: &Path, identities: &Identities, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let known = problems.len();
    let found = search(path, identities, problems);
    let files: Vec<PathBuf> = found.into_iter().filter(|found| found.skip.is_none()).map(|found| found.path).collect();
    if files.is_empty() && problems.len() == known {
        problems.push(Problem::new(path, "has no SQL files", Some("name a folder or file with `.sql` migrations")));
    }
    order::sort(files)
}

/// Returns the SQL files at `path`, with those that are skipped because of their names.
pub(crate) fn search(path: &Path, identities: &Identities, problems: &mut Vec<Problem>) -> Vec<Found> {
    if let Some(why) = Boundary::around(path).refusal(path) {
        problems.push(Problem::new(path, why, Some("to check its target, name the target itself")));
        return Vec::new();
    }
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return vec![Found { path: path.to_owned(), skip: None }],
        Err(error) => {
            problems.push(Problem::io(path, &error));
            return Vec::new();
        }
    }
    let mut walked = walk(path, Filter::Git, identities, problems);
    let mut found = judged(path, std::mem::take(&mut walked.files));
    let is_checked = |found: &Found| found.skip.is_none();
    // A folder of samples that is named, or one that git ignores, is to be checked.
    let is_named = path.file_name().and_then(|name| name.to_str()).is_some_and(skipped::is_named_for_samples);
    if is_named || !found.iter().any(is_checked) {
        take_fallback(&mut found);
    }
    if !found.iter().any(is_checked) {
        let mut again = Vec::new();
        let mut again_walked = walk(path, Filter::Hidden, identities, &mut again);
        let mut all = judged(path, std::mem::take(&mut again_walked.files));
        take_fallback(&mut all);
        if all.iter().any(is_checked) {
            (found, walked.links) = (all, again_walked.links);
        }
        again.retain(|problem| !problems.contains(problem));
        problems.append(&mut again);
    }
    let behind_links = linked::behind(path, &walked.links, &found);
    found.extend(out_of_reach(path, walked.not_checked_out, SkipReason::NotCheckedOut));
    found.extend(out_of_reach(path, behind_links, SkipReason::LinkedFolder));
    found
}

/// Files that are skipped for this reason, unless their names give another one.
fn out_of_reach(root: &Path, files: Vec<PathBuf>, reason: SkipReason) -> Vec<Found> {
    let mut names = skipped::Names::default();
    let mut skip = |path: &Path| names.skip(root, path).filter(|skip| skip.folder.is_some());
    let own = Skip { reason, folder: None, is_fallback: false };
    let found = files.into_iter().map(|path| (skip(&path), path));
    found.map(|(skip, path)| Found { path, skip: Some(skip.unwrap_or_else(|| own.clone())) }).collect()
}

/// Returns the SQL files that [`search`] does not see: those that git ignores, and those in hidden folders.
pub(crate) fn unseen(path: &Path, seen: &[Found], identities: &Identities) -> Vec<(PathBuf, SkipReason)> {
    let seen: FxHashSet<&Path> = seen.iter().map(|found| found.path.as_path()).collect();
    let is_hidden = |file: &Path| {
        let below = file.strip_prefix(path).unwrap_or(file);
        below.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.') && part.as_os_str() != ".")
    };
    let files = walk(path, Filter::None, identities, &mut Vec::new()).files;
    let unseen = files.into_iter().filter(|file| !seen.contains(file.as_path()));
    let reason = |file: &PathBuf| if is_hidden(file) { SkipReason::Hidden } else { SkipReason::Ignored };
    unseen.map(|file| (file.clone(), reason(&file))).collect()
}

/// Returns the SQL files in hidden folders below a folder that git tracks: a change may bring them.
pub(crate) fn tracked_hidden(root: &Path) -> FxHashSet<PathBuf> {
    // A walk of the folder reports what cannot be read.
    let tracked = tracked_below(root).0.into_iter().filter(|tracked| tracked.is_hidden);
    tracked.map(|tracked| tracked.path).filter(|path| path.is_file() && !is_behind_link(root, path)).collect()
}

/// Whether a link to a folder lies between the folder that was asked for and a file. For git, a file behind a link is not
/// the one that it tracks under this name.
fn is_behind_link(root: &Path, file: &Path) -> bool {
    let Some((below, folder)) = file.parent().and_then(|folder| Some((folder.strip_prefix(root).ok()?, folder))) else {
        return true;
    };
    identity(folder) != identity(root).join(below)
}

/// Judges the files by their names.
fn judged(root: &Path, files: Vec<PathBuf>) -> Vec<Found> {
    let mut names = skipped::Names::default();
    let mut found: Vec<Found> = files.into_iter().map(|path| Found { skip: names.skip(root, &path), path }).collect();
    let kept = found.iter().filter(|found| found.skip.is_none()).map(|found| found.path.as_path());
    let mut variants = skipped::variants(kept.clone());
    variants.extend(skipped::generic_beside_own(kept));
    for found in found.iter_mut().filter(|found| variants.contains(&found.path)) {
        found.skip = Some(Skip { reason: SkipReason::OtherDatabase, folder: None, is_fallback: false });
    }
    found
}

fn take_fallback(found: &mut [Found]) {
    for found in found.iter_mut().filter(|found| found.skip.as_ref().is_some_and(|skip| skip.is_fallback)) {
        found.skip = None;
    }
}

/// The filter of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    /// Hidden folders, and what git ignores and does not track: a build copies migrations.
    Git,
    /// Hidden folders.
    Hidden,
    /// Files of git itself.
    None,
}

/// What is below a folder.
#[derive(Debug, Default)]
struct Walked {
    /// Those with SQL.
    files: Vec<PathBuf>,
    /// Links to folders, which are not followed: they may form a cycle.
    links: Vec<PathBuf>,
    /// Tracked files with SQL that a sparse checkout does not contain.
    not_checked_out: Vec<PathBuf>,
}

/// Returns the SQL files below a folder, and what was not examined.
fn walk(root: &Path, filter: Filter, identities: &Identities, problems: &mut Vec<Problem>) -> Walked {
    let as_git = filter == Filter::Git;
    let above = absolute(root);
    let trouble = if as_git { above.ancestors().find_map(ignored::trouble) } else { None };
    let as_git = as_git && trouble.is_none();
    problems.extend(trouble);
    let unread: Arc<Mutex<Vec<Problem>>> = Arc::default();
    let seen = Arc::clone(&unread);
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(false).hidden(filter != Filter::None);
    walk.filter_entry(move |entry| {
        let is_folder = entry.depth() > 0 && entry.file_type().is_some_and(|kind| kind.is_dir());
        if is_folder && entry.file_name() == ".git" {
            return false;
        }
        let trouble = if as_git && is_folder { ignored::trouble(entry.path()) } else { None };
        let is_read = trouble.is_none();
        seen.lock().unwrap_or_else(PoisonError::into_inner).extend(trouble);
        is_read
    });
    walk.git_ignore(as_git).git_exclude(as_git).git_global(as_git).parents(as_git);
    let boundary = Boundary::of_walk(root);
    let (mut files, mut links, mut not_checked_out) = (Vec::new(), Vec::new(), Vec::new());
    for entry in walk.build() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                problems.extend(problem(root, error));
                continue;
            }
        };
        let is_link = entry.path_is_symlink();
        let is_folder =
            if is_link { entry.path().is_dir() } else { entry.file_type().is_some_and(|kind| kind.is_dir()) };
        if is_folder && is_link && entry.depth() > 0 {
            links.push(entry.into_path());
        } else if !is_folder && skipped::may_be_sql(&entry.file_name().to_string_lossy()) {
            files.push((entry.into_path(), is_link));
        }
    }
    if as_git {
        let known: FxHashSet<PathBuf> = files.iter().map(|(path, _)| path.clone()).collect();
        let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
        let (tracked, unknown) = tracked_below(root);
        problems.extend(unknown);
        for Tracked { path, is_hidden, is_not_checked_out } in tracked {
            if is_not_checked_out && fs::symlink_metadata(&path).is_err() {
                not_checked_out.push(path);
            } else if !is_hidden && !known.contains(&path) && path.is_file() && !is_behind_link(root, &path) {
                let is_link = is_link(&path);
                files.push((path, is_link));
            }
        }
    }
    files.retain(|(path, is_link)| {
        let refusal = if *is_link { boundary.refusal(path) } else { None };
        if !is_link {
            identities.know(path);
        }
        let is_read = refusal.is_none();
        problems.extend(refusal.map(|why| Problem::new(path, why, Some("pgvet reads only files of the checkout"))));
        is_read
    });
    problems.append(&mut unread.lock().unwrap_or_else(PoisonError::into_inner));
    Walked { files: files.into_iter().map(|(path, _)| path).collect(), links, not_checked_out }
}

/// A file with SQL that git tracks.
struct Tracked {
    path: PathBuf,
    /// Whether it, or a folder below the one that was asked for, is hidden.
    is_hidden: bool,
    is_not_checked_out: bool,
}

/// Returns the SQL files below a folder that git tracks, ignored or not, and why they are unknown if they are.
fn tracked_below(root: &Path) -> (Vec<Tracked>, Option<Problem>) {
    let from_root = absolute(root);
    let top = Repositories::default().around(&from_root).map(Path::to_owned);
    let Some(top) = top else { return (Vec::new(), None) };
    let entries = match index::entries(&top) {
        Ok(entries) => entries,
        Err((index, why)) => {
            let help = "rebuild the index with `git reset` (this unstages changes), so that pgvet can list the tracked \
                        files";
            return (Vec::new(), Some(Problem::new(&index, why, Some(help))));
        }
    };
    let is_sql = |path: &PathBuf| path.file_name().is_some_and(|name| skipped::may_be_sql(&name.to_string_lossy()));
    let is_hidden = |path: &Path| path.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'));
    let below = |entry: index::Entry| {
        let path = top.join(entry.name).strip_prefix(&from_root).ok()?.to_owned();
        Some(Tracked {
            is_hidden: is_hidden(&path),
            path: root.join(path),
            is_not_checked_out: entry.is_not_checked_out,
        })
    };
    (entries.into_iter().filter(|entry| is_sql(&entry.name)).filter_map(below).collect(), None)
}

/// Returns the problem of a path that could not be read; a line of `.gitignore` that cannot be read ignores nothing.
fn problem(root: &Path, error: ignore::Error) -> Option<Problem> {
    let path = match &error {
        ignore::Error::WithPath { path, .. } => path.clone(),
        ignore::Error::WithDepth { err, .. } => match &**err {
            ignore::Error::WithPath { path, .. } => path.clone(),
            _ => root.to_owned(),
        },
        _ => root.to_owned(),
    };
    error.into_io_error().map(|error| Problem::io(&path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_ignores_is_skipped_unless_it_is_named() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in [".git", "db", "build/db"] {
            fs::create_dir_all(at(folder)).unwrap();
            fs::write(at(folder).join("1.sql"), "").unwrap();
        }
        fs::write(at("db/scratch.sql"), "").unwrap();
        fs::write(at(".gitignore"), "build/**\nscratch.*\n").unwrap();
        let mut problems = Vec::new();
        let mut files = |path: &str| files_at(&at(path), &Identities::default(), &mut problems);
        assert_eq!(files(""), [at("db/1.sql")]);
        assert_eq!(files("db"), [at("db/1.sql")]);
        assert_eq!(files("build"), [at("build/db/1.sql")]);
        assert_eq!(files("db/scratch.sql"), [at("db/scratch.sql")]);
        assert_eq!(problems, []);
    }

    #[test]
    fn a_folder_without_sql_and_a_missing_path_are_problems() {
        let root = tempfile::tempdir().unwrap();
        let mut problems = Vec::new();
        assert!(files_at(root.path(), &Identities::default(), &mut problems).is_empty());
        assert!(files_at(&root.path().join("no"), &Identities::default(), &mut problems).is_empty());
        let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(messages, ["has no SQL files", "does not exist"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_out_of_the_checkout_and_special_files_are_problems() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for (file, text) in [("outside/1.sql", ""), ("a/.git/config", "token"), ("a/db/1.sql", ""), ("a/.env", "x")] {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), text).unwrap();
        }
        for (name, target) in [
            ("2_out.sql", "../../outside/1.sql"),
            ("3_git.sql", "../.git/config"),
            ("4_env.sql", "../.env"),
            ("5_zero.sql", "/dev/zero"),
            ("6_in.sql", "1.sql"),
        ] {
            symlink(target, at("a/db").join(name)).unwrap();
        }
        symlink("../outside", at("a/folder")).unwrap();
        let read = |path: &str| {
            let mut problems = Vec::new();
            let files = files_at(&at(path), &Identities::default(), &mut problems);
            let read =
                files.iter().filter_map(|file| crate::read::read(file).map_err(|problem| problems.push(problem)).ok());
            (read.count(), problems.len())
        };
        assert_eq!(read("a/db"), (2, 4));
        assert_eq!(read("a/folder"), (0, 1));
        assert_eq!(read("a/folder/1.sql"), (0, 1));
        for file in ["2_out.sql", "3_git.sql", "4_env.sql", "5_zero.sql"] {
            assert_eq!(read(&format!("a/db/{file}")), (0, 1), "{file}");
        }
        symlink("/dev/zero", at("a/db/.gitignore")).unwrap();
        assert_eq!(read("a/db"), (2, 5));
        assert_eq!(read("a"), (2, 5), "what git ignores is unknown, so all of it is read");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_among_the_files_is_not_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let pipe = root.path().join("1.sql");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let problem = crate::read::read(&pipe).unwrap_err();
        assert_eq!(problem.message, "cannot be read: it is not a regular file");
    }
}
