//! The same path for every spelling of it.

use rustc_hash::FxHashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The path without links. Of a file that does not exist, the one at which it would be created.
pub(crate) fn identity(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| of_missing(path, MOST_LINKS))
}

/// Maximum number of links to nothing that are followed one after the other.
const MOST_LINKS: u32 = 40;

/// Follows the path part by part, as the system does: `..` after a link leads out of the folder behind the link. A link to
/// nothing stands for its target, which would be created.
fn of_missing(path: &Path, links: u32) -> PathBuf {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut found = PathBuf::new();
    // The number of parts at the end that are not there.
    let mut missing = 0_usize;
    for part in path.components() {
        match part {
            Component::ParentDir => {
                found.pop();
                missing = missing.saturating_sub(1);
                continue;
            }
            part => found.push(part),
        }
        if missing > 0 {
            missing += 1;
            continue;
        }
        match (fs::canonicalize(&found), fs::read_link(&found)) {
            (Ok(there), _) => found = there,
            (Err(_), Ok(target)) if links > 0 => {
                found.pop();
                found = of_missing(&found.join(target), links - 1);
                missing = usize::from(!found.exists());
            }
            _ => missing = 1,
        }
    }
    found
}

/// [`identity`] for many files: each file and each folder is examined once.
#[derive(Debug, Default)]
pub(crate) struct Identities(Mutex<FxHashMap<PathBuf, PathBuf>>);

impl Identities {
    pub(crate) fn of(&self, path: &Path) -> PathBuf {
        self.once(path, |path| {
            let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
            match (path.parent(), path.file_name()) {
                (Some(folder), Some(name)) if !is_link => self.of_folder(folder).join(name),
                _ => identity(path),
            }
        })
    }

    fn of_folder(&self, folder: &Path) -> PathBuf {
        self.once(if folder.as_os_str().is_empty() { Path::new(".") } else { folder }, identity)
    }

    /// A file of which is known that it is no link: there is no need to look at it.
    pub(crate) fn know(&self, path: &Path) {
        if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
            let identity = self.of_folder(folder).join(name);
            self.known().insert(path.to_owned(), identity);
        }
    }

    fn known(&self) -> MutexGuard<'_, FxHashMap<PathBuf, PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn once(&self, path: &Path, look: impl FnOnce(&Path) -> PathBuf) -> PathBuf {
        if let Some(known) = self.known().get(path) {
            return known.clone();
        }
        let found = look(path);
        self.known().insert(path.to_owned(), found.clone());
        found
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn all_spellings_of_a_file_are_one() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir(at("real")).unwrap();
        fs::write(at("real/1.sql"), "").unwrap();
        symlink(at("real"), at("folder")).unwrap();
        symlink(at("real/1.sql"), at("real/link.sql")).unwrap();
        let identities = Identities::default();
        let expected = fs::canonicalize(at("real/1.sql")).unwrap();
        for path in ["real/1.sql", "folder/1.sql", "real/link.sql", "real/../folder/./1.sql"] {
            assert_eq!(identities.of(&at(path)), expected, "{path}");
            assert_eq!(identity(&at(path)), expected, "{path}");
        }
        assert_eq!(identities.of(&at("folder/2.sql")), expected.with_file_name("2.sql"));
        fs::create_dir(at("real/deep")).unwrap();
        symlink(at("real/deep"), at("link")).unwrap();
        for path in ["link/../2.sql", "new/../link/../2.sql"] {
            assert_eq!(identity(&at(path)), expected.with_file_name("2.sql"), "{path}");
        }
        symlink("../nowhere/3.sql", at("real/broken")).unwrap();
        assert_eq!(identity(&at("real/broken")), expected.parent().unwrap().with_file_name("nowhere").join("3.sql"));
        symlink("loop", at("real/loop")).unwrap();
        assert_eq!(identity(&at("real/loop")), expected.with_file_name("loop"));
        assert_eq!(identity(&at("link/new/2.sql")), fs::canonicalize(at("real/deep")).unwrap().join("new/2.sql"));
        assert_eq!(identities.of(&at("no/2.sql")), identity(&at("no/2.sql")));
    }
}
