//! The files of a repository as of a revision, in a temporary folder.

use super::command::Git;
use crate::problem::Problem;
use crate::read::MAX_SQL;
use crate::skipped;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};
use tempfile::TempDir;

/// Maximum size of a file that is not SQL: those that are read are smaller.
const MAX_OTHER: u64 = 4 << 20;

/// Maximum number of bytes of all files together.
const MAX_ALL: u64 = 1 << 30;

/// Number of bytes that are held in memory at once, but for a file that is larger itself.
const BATCH: u64 = 32 << 20;

/// A checkout of a revision that ends with this value.
#[derive(Debug)]
pub struct Revision {
    folder: TempDir,
    /// Where the folder that it was asked for is within the repository.
    inside: PathBuf,
    top: PathBuf,
}

/// A file of a tree: its object and its path.
struct Entry<'a> {
    object: &'a str,
    path: PathBuf,
    size: u64,
}

impl Revision {
    /// Writes the files of the repository around `folder` as they were at a revision. Links, submodules and large files
    /// that are not SQL are omitted. A file with SQL that is too large to be read is copied as nothing but its size.
    ///
    /// # Errors
    /// Says that there is no such revision, or what cannot be read or written.
    pub fn checkout(folder: &Path, revision: &str) -> Result<Self, Problem> {
        let git = Git::around(folder)?;
        let problem = |message: String| Problem::new(folder, message, None);
        let commit = git.line(&["rev-parse", "--verify", "--end-of-options", &format!("{revision}^{{commit}}")]);
        let commit = commit.map_err(|_| {
            let help = "name a commit, a branch or a tag; a shallow clone lacks older ones (`git fetch --unshallow`)";
            Problem::new(folder, format!("has no revision `{revision}`"), Some(help))
        })?;
        let unreadable = |message: String| problem(format!("cannot be read at `{revision}`: {message}"));
        let tree = git.run(&["ls-tree", "-r", "-l", "-z", "--full-tree", &commit]).map_err(unreadable)?;
        let tree = String::from_utf8_lossy(&tree);
        let entries = entries(&tree);
        if entries.iter().map(|entry| entry.size).filter(|size| *size <= MAX_SQL).sum::<u64>() > MAX_ALL {
            return Err(problem(format!("has more than {} MiB of SQL at `{revision}`", MAX_ALL >> 20)));
        }
        let not_copied = |error: io::Error| problem(format!("cannot be copied: {error}"));
        let target = tempfile::tempdir().map_err(not_copied)?;
        let place = |entry: &Entry<'_>| {
            let path = target.path().join(&entry.path);
            fs::create_dir_all(path.parent().unwrap_or(target.path())).map(|()| path)
        };
        for entry in entries.iter().filter(|entry| entry.size > MAX_SQL) {
            place(entry).and_then(|path| File::create(path)?.set_len(entry.size)).map_err(not_copied)?;
        }
        for batch in batches(&entries) {
            let objects: Vec<&str> = batch.iter().map(|entry| entry.object).collect();
            let mut files = batch.iter().zip(git.blobs(&objects).map_err(unreadable)?);
            files
                .try_for_each(|(entry, text)| fs::write(place(entry)?, text.unwrap_or_default()))
                .map_err(not_copied)?;
        }
        // The top of a repository, without its history.
        fs::create_dir_all(target.path().join(".git")).map_err(not_copied)?;
        let absolute = crate::config::absolute(folder);
        let inside = absolute.strip_prefix(&git.top).map(Path::to_owned).unwrap_or_default();
        Ok(Self { folder: target, inside, top: git.top })
    }

    /// Where a path of the repository is in the copy; without one, the folder that it was asked for.
    pub fn path(&self, path: Option<&Path>) -> PathBuf {
        let inside = match path {
            None => self.inside.clone(),
            Some(path) => path.strip_prefix(&self.top).unwrap_or(path).to_owned(),
        };
        let is_below = inside.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if is_below { self.folder.path().join(inside) } else { self.folder.path().to_owned() }
    }

    /// The folder of the copy, which messages need not show.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// The regular files of `ls-tree -l -z`: `MODE blob OBJECT SIZE<tab>PATH`, as far as they are copied.
fn entries(tree: &str) -> Vec<Entry<'_>> {
    let mut found = Vec::new();
    let mut others = 0;
    for line in tree.split('\0') {
        let Some((head, path)) = line.split_once('\t') else { continue };
        let mut words = head.split_whitespace();
        let (Some(mode), Some("blob"), Some(object), Some(size)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let path = PathBuf::from(path);
        let is_git = |name: &OsStr| name.eq_ignore_ascii_case(".git");
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(name) if !is_git(name)));
        let size: u64 = size.parse().unwrap_or(u64::MAX);
        if !mode.starts_with("100") || !is_plain {
            continue;
        }
        if !skipped::may_be_sql(&path.file_name().unwrap_or_default().to_string_lossy()) {
            if size > MAX_OTHER || others + size > MAX_ALL {
                continue;
            }
            others += size;
        }
        found.push(Entry { object, path, size });
    }
    found
}

/// The files whose texts are copied, in groups that fit into memory.
fn batches<'e, 'a>(entries: &'e [Entry<'a>]) -> Vec<Vec<&'e Entry<'a>>> {
    let mut batches: Vec<Vec<&Entry<'_>>> = Vec::new();
    let mut size = BATCH;
    for entry in entries.iter().filter(|entry| entry.size <= MAX_SQL) {
        size += entry.size;
        match batches.last_mut() {
            Some(batch) if size <= BATCH => batch.push(entry),
            _ => {
                size = entry.size;
                batches.push(vec![entry]);
            }
        }
    }
    batches
}
