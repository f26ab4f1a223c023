//! Repositories without pipes and devices, for which git would wait, or which it would read without end. And what leads
//! out of a repository: git quotes a file that is not what it expects, and reads the objects of other repositories as if
//! they were this one's.

use crate::config::absolute;
use std::collections::HashSet;
use std::env;
use std::fs::{self, FileType};
use std::path::{Component, Path, PathBuf};

/// Maximum number of entries that are looked at. Beyond, only the time of git is limited.
const MOST_ENTRIES: usize = 1_000_000;

/// Maximum size of a file that names folders with objects.
const MOST_ALTERNATES: u64 = 1 << 20;

/// Variable of git with which the user, and never a checkout, names folders with objects.
const TRUSTED_OBJECTS: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES";

/// Looks through folders of git, each once. git follows links there, and so does this.
#[derive(Debug)]
pub(super) struct RegularFiles {
    /// The folder with `.git`, links resolved.
    top: PathBuf,
    /// Folders whose objects may be read, links resolved.
    trusted: Vec<PathBuf>,
    /// A link to something outside of the folder with `.git`.
    pub(super) outward: Option<PathBuf>,
    /// Folders with links resolved, and whether they were entered as folders with objects: a folder can be both.
    seen: HashSet<(PathBuf, bool)>,
    entries: usize,
}

impl RegularFiles {
    pub(super) fn of(top: &Path) -> Self {
        let top = top.canonicalize().unwrap_or_else(|_| top.to_owned());
        let named = env::var_os(TRUSTED_OBJECTS).unwrap_or_default();
        let named = env::split_paths(&named).filter_map(|folder| folder.canonicalize().ok());
        let trusted = named.chain([top.clone()]).collect();
        Self { top, trusted, outward: None, seen: HashSet::new(), entries: 0 }
    }

    /// The message about a folder of git that must not be read: it has a pipe or device, or a link to one, or takes
    /// objects from outside of the repository.
    pub(super) fn check(&mut self, folder: &Path) -> Result<(), String> {
        // The folder of git may be elsewhere: that of a worktree is in the repository that the worktree belongs to.
        self.trusted.extend(folder.canonicalize().ok());
        let mut folders = vec![(folder.to_owned(), false)];
        while let Some((folder, has_objects)) = folders.pop() {
            let is_new = |target| self.seen.insert((target, has_objects));
            if !folder.canonicalize().is_ok_and(is_new) {
                continue;
            }
            // Any folder may be one with objects, and links may lead to each part of this path.
            let alternates = folder.join("info/alternates");
            if fs::metadata(&alternates).is_ok_and(|metadata| metadata.is_file()) {
                folders.extend(self.alternates(&alternates)?.into_iter().map(|folder| (folder, true)));
            }
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                self.entries += 1;
                if self.entries > MOST_ENTRIES {
                    return Err(format!("`{}` has too many files to look for pipes and links", folder.display()));
                }
                let path = entry.path();
                // A file system may treat upper and lower case alike.
                let has_objects = has_objects || entry.file_name().eq_ignore_ascii_case("objects");
                let kind = match entry.file_type().ok().filter(|kind| !kind.is_symlink()) {
                    Some(kind) => Some(kind),
                    None => self.behind_link(&path, has_objects)?,
                };
                match kind {
                    Some(kind) if kind.is_dir() => folders.push((path, has_objects)),
                    Some(kind) if !kind.is_file() => return Err(special(&path)),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn behind_link(&mut self, link: &Path, has_objects: bool) -> Result<Option<FileType>, String> {
        let Ok(target) = link.canonicalize() else { return Ok(None) };
        if !target.starts_with(&self.top) {
            self.outward.get_or_insert_with(|| link.to_owned());
        }
        if has_objects {
            self.check_objects(link, &target)?;
        }
        Ok(fs::metadata(target).ok().map(|target| target.file_type()))
    }

    /// The folders with objects that a file names, one a line.
    ///
    /// Source: git 2.47, `Documentation/gitrepository-layout`, "objects/info/alternates".
    fn alternates(&self, file: &Path) -> Result<Vec<PathBuf>, String> {
        let objects = file.ancestors().nth(2).unwrap_or(file);
        let objects = objects.canonicalize().unwrap_or_else(|_| objects.to_owned());
        let is_small = fs::metadata(file).is_ok_and(|metadata| metadata.len() < MOST_ALTERNATES);
        let text = if is_small { fs::read(file).ok() } else { None };
        let text = text.ok_or_else(|| format!("`{}` cannot be read", file.display()))?;
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"#"));
        let mut folders = Vec::new();
        for line in lines {
            // git reads a quoted name in its own way, and a line only up to a NUL byte.
            if line.starts_with(b"\"") || line.contains(&0) {
                return Err(format!("`{}` names a folder with quotes or a NUL byte", file.display()));
            }
            // git before 2.39 resolves `..` before links.
            let named = objects.join(super::name_of(line));
            for folder in [absolute(&named), named] {
                // git ignores what is not there.
                let Ok(folder) = folder.canonicalize() else { continue };
                self.check_objects(file, &folder)?;
                folders.push(folder);
            }
        }
        Ok(folders)
    }

    fn check_objects(&self, from: &Path, target: &Path) -> Result<(), String> {
        if self.trusted.iter().any(|folder| target.starts_with(folder)) {
            return Ok(());
        }
        let (from, target) = (from.display(), target.display());
        Err(format!(
            "`{from}` leads to objects outside of it, in `{target}`; set {TRUSTED_OBJECTS} to that folder if they may be read"
        ))
    }
}

/// The message about a pipe or device among the files that git reads beside those that it compares. It follows no links
/// there, older versions do.
pub(super) fn check_beside(top: &Path, names: &[impl AsRef<Path>]) -> Result<(), String> {
    check_in(top)?;
    // The folder of the last name, as far as it is there. Names are in order, so each folder is entered once. The
    // search ends at the first folder that is missing, because a name can have millions of them.
    let mut inside = PathBuf::new();
    for name in names {
        let name = name.as_ref();
        if name.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
            let (top, name) = (top.display(), name.display());
            return Err(format!("the index of `{top}` has the name `{name}`, which leads out of it"));
        }
        let folder = name.parent().unwrap_or(Path::new(""));
        while !folder.starts_with(&inside) {
            inside.pop();
        }
        let below = folder.strip_prefix(&inside).unwrap_or(folder);
        for part in below.components() {
            let next = inside.join(part);
            let path = top.join(&next);
            if !path.is_dir() {
                break;
            }
            check_in(&path)?;
            inside = next;
        }
    }
    Ok(())
}

fn check_in(folder: &Path) -> Result<(), String> {
    for name in [".gitattributes", ".gitignore", ".gitmodules"] {
        let path = folder.join(name);
        if fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            return Err(special(&path));
        }
    }
    Ok(())
}

fn special(path: &Path) -> String {
    format!("`{}` is not a regular file", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_of_the_repository_are_refused() {
        let root = tempfile::tempdir().unwrap();
        for names in [["/etc/passwd", "a/b.sql"], ["../x", "a/b.sql"], ["a/../../x", "b.sql"]] {
            let refused = check_beside(root.path(), &names).unwrap_err();
            assert!(refused.contains("which leads out of it"), "{refused}");
        }
        assert_eq!(check_beside(root.path(), &["a/b.sql", "c.sql"]), Ok(()));
    }
}
