//! The files of a repository as of a revision, in a temporary folder.

use super::command::Git;
use crate::problem::Problem;
use std::fs;
use std::path::{Component, Path, PathBuf};
use tempfile::TempDir;

/// Files larger than this are not migrations.
const MAX_FILE: u64 = 4 << 20;

/// Maximum number of bytes of all files together.
const MAX_ALL: u64 = 1 << 30;

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
}

impl Revision {
    /// Writes the files of the repository around `folder` as they were at a revision. Links, submodules and files that
    /// are too large to be migrations are omitted.
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
        let objects: Vec<&str> = entries.iter().map(|entry| entry.object).collect();
        let texts = git.blobs(&objects).map_err(unreadable)?;
        let target = tempfile::tempdir().map_err(|error| problem(format!("cannot be copied: {error}")))?;
        for (entry, text) in entries.iter().zip(texts) {
            let path = target.path().join(&entry.path);
            let parent = path.parent().unwrap_or(target.path());
            let written = fs::create_dir_all(parent).and_then(|()| fs::write(&path, text));
            written.map_err(|error| problem(format!("cannot be copied: {}: {error}", entry.path.display())))?;
        }
        // The top of a repository, without its history.
        fs::create_dir_all(target.path().join(".git"))
            .map_err(|error| problem(format!("cannot be copied: {error}")))?;
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

/// The regular files of `ls-tree -l -z`: `MODE blob OBJECT SIZE<tab>PATH`, as far as they are read.
fn entries(tree: &str) -> Vec<Entry<'_>> {
    let mut found = Vec::new();
    let mut all = 0;
    for line in tree.split('\0') {
        let Some((head, path)) = line.split_once('\t') else { continue };
        let mut words = head.split_whitespace();
        let (Some(mode), Some("blob"), Some(object), Some(size)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let path = PathBuf::from(path);
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(name) if name != ".git"));
        let size: u64 = size.parse().unwrap_or(u64::MAX);
        if mode.starts_with("100") && is_plain && size <= MAX_FILE && all + size <= MAX_ALL {
            all += size;
            found.push(Entry { object, path });
        }
    }
    found
}
