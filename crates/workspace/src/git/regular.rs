//! Repositories without pipes and devices, for which git would wait, or which it would read without end. And links out of
//! a repository: git quotes a file that is not what it expects.

use std::collections::HashSet;
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

/// Maximum number of entries that are looked at. Beyond, only the time of git is limited.
const MOST_ENTRIES: usize = 1_000_000;

/// Looks through folders of git, each once. git follows links there, and so does this.
#[derive(Debug)]
pub(super) struct RegularFiles {
    /// The folder with `.git`, links resolved.
    top: PathBuf,
    /// A link to something outside of the folder with `.git`.
    pub(super) outward: Option<PathBuf>,
    seen: HashSet<PathBuf>,
    entries: usize,
}

impl RegularFiles {
    pub(super) fn of(top: &Path) -> Self {
        let top = top.canonicalize().unwrap_or_else(|_| top.to_owned());
        Self { top, outward: None, seen: HashSet::new(), entries: 0 }
    }

    /// The message about a pipe or device, or a link to one, below a folder of git.
    pub(super) fn check(&mut self, folder: &Path) -> Result<(), String> {
        let special = |path: &Path| Err(format!("`{}` is not a regular file", path.display()));
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let is_new = folder.canonicalize().is_ok_and(|folder| self.seen.insert(folder));
            let entries = if is_new { fs::read_dir(&folder).ok() } else { None };
            for entry in entries.into_iter().flatten().flatten() {
                self.entries += 1;
                if self.entries > MOST_ENTRIES {
                    return Ok(());
                }
                let path = entry.path();
                let kind = entry.file_type().ok().filter(|kind| !kind.is_symlink());
                match kind.or_else(|| self.behind_link(&path)) {
                    Some(kind) if kind.is_dir() => folders.push(path),
                    Some(kind) if !kind.is_file() => return special(&path),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn behind_link(&mut self, link: &Path) -> Option<FileType> {
        let target = link.canonicalize().ok()?;
        if !target.starts_with(&self.top) {
            self.outward.get_or_insert_with(|| link.to_owned());
        }
        fs::metadata(target).ok().map(|target| target.file_type())
    }
}
