//! Results of earlier runs, kept on disk: the state after a history, and the findings of a whole run.
//!
//! Entries are named by a digest of everything that they follow from, so an entry is never out of date; it is just no
//! longer asked for. They are written to another name first and then moved, so that runs side by side do not disturb
//! each other, and an entry that cannot be read is treated as missing: the folder can be deleted at any time.
//!
//! The format has no field names, so serde must not omit any field that is written here (`skip_serializing_if`), and
//! skipped variants come last.

mod key;
mod warm;

pub(crate) use key::Key;
pub(crate) use warm::Warm;

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// More entries than these, or more bytes, are removed, the ones that were used longest ago first.
const MAX_ENTRIES: usize = 64;
const MAX_BYTES: u64 = 256 << 20;

/// A folder of entries.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The folder that the environment names: `PGVET_CACHE_DIR`, or the platform's folder for caches. `None` where there
    /// is no such place.
    pub fn of_user() -> Option<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || variable("HOME");
        let folder = variable("PGVET_CACHE_DIR").or_else(|| {
            let caches = if cfg!(windows) {
                variable("LOCALAPPDATA")
            } else if cfg!(target_os = "macos") {
                home().map(|home| home.join("Library/Caches"))
            } else {
                variable("XDG_CACHE_HOME").or_else(|| home().map(|home| home.join(".cache")))
            };
            caches.map(|caches| caches.join("pgvet"))
        });
        folder.map(Self::at)
    }

    /// A folder, which need not exist.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// A folder beside the entries, for what has a form of its own.
    pub fn folder_of(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn has(&self, key: Key) -> bool {
        self.path(key).exists()
    }

    /// The entry, unless it is missing or cannot be read.
    pub(crate) fn get<T: DeserializeOwned>(&self, key: Key) -> Option<T> {
        let path = self.path(key);
        let bytes = fs::read(&path).ok()?;
        let (digest, content) = bytes.split_at_checked(blake3::OUT_LEN)?;
        if digest != blake3::hash(content).as_bytes() {
            return None;
        }
        let value = postcard::from_bytes(content).ok()?;
        // It was used: others go first. A folder that cannot be written to is as good to read from.
        let _ = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(value)
    }

    /// Keeps a value. What goes wrong costs the next run time and nothing else.
    pub(crate) fn put<T: Serialize>(&self, key: Key, value: &T) {
        let Ok(content) = postcard::to_stdvec(value) else { return };
        if fs::create_dir_all(&self.folder).is_err() {
            return;
        }
        let written = tempfile::NamedTempFile::new_in(&self.folder).and_then(|mut file| {
            file.write_all(blake3::hash(&content).as_bytes())?;
            file.write_all(&content)?;
            file.persist(self.path(key)).map_err(|error| error.error)
        });
        if written.is_ok() {
            self.remove_old();
        }
    }

    fn path(&self, key: Key) -> PathBuf {
        self.folder.join(key.file_name())
    }

    fn remove_old(&self) {
        let mut entries = entries(&self.folder);
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.used));
        let mut bytes = 0;
        for (at, entry) in entries.iter().enumerate() {
            bytes += entry.bytes;
            if at >= MAX_ENTRIES || bytes > MAX_BYTES {
                // Another run may have removed it.
                let _ = fs::remove_file(&entry.path);
            }
        }
    }
}

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// The files of a folder that are named as entries are; others are not ours.
fn entries(folder: &Path) -> Vec<Entry> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    let entry = |file: fs::DirEntry| {
        let path = file.path();
        let metadata = file.metadata().ok().filter(|_| Key::names(&path))?;
        Some(Entry { bytes: metadata.len(), used: metadata.modified().ok()?, path })
    };
    files.filter_map(|file| entry(file.ok()?)).collect()
}

#[cfg(test)]
mod tests;
