//! The names in git's index, read without running git: every run asks for them.
//!
//! Source: git 2.47, `Documentation/gitformat-index`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Maximum number of bytes of an index: about a million files.
const MOST_BYTES: u64 = 256 << 20;

/// Maximum number of bytes of all names together. Version 4 stores only the end of a name, so a small index can hold
/// names of gigabytes, which git keeps whole.
const MOST_NAMES: usize = 128 << 20;

/// Bytes of an entry before the digest of the file's content.
const NUMBERS: usize = 40;

/// Sizes of a digest: SHA-1, SHA-256. The index does not say which one it has.
const DIGESTS: [usize; 2] = [20, 32];

/// A file that git tracks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Relative to the top of the repository.
    pub(crate) name: PathBuf,
    /// Whether a sparse checkout leaves it out of the folder (`skip-worktree`).
    pub(crate) is_not_checked_out: bool,
}

/// Returns the files that the repository at `top` tracks; none if there is no index. Of a split index only the names that
/// it holds itself are known.
///
/// # Errors
/// The index and why it cannot be read, as the end of the sentence "`path` ...".
pub(crate) fn entries(top: &Path) -> Result<Vec<Entry>, (PathBuf, String)> {
    let index = folder(top).join("index");
    read(&index).map_err(|why| (index, why))
}

/// Checks that neither an index nor a part of it that is shared, in another file of `folder`, needs much memory.
///
/// Source: git 2.47, `Documentation/gitformat-index`, "Split index".
pub(super) fn check(index: &Path, folder: &Path) -> Result<(), String> {
    let is_shared = |name: &Path| name.to_string_lossy().starts_with("sharedindex.");
    let beside = fs::read_dir(folder).into_iter().flatten().flatten();
    let shared = beside.filter(|entry| is_shared(Path::new(&entry.file_name()))).map(|entry| entry.path());
    shared.chain([index.to_owned()]).try_for_each(|path| read(&path).map(drop))
}

/// Returns the folder with the index: `.git`, or the one that it names in a worktree or a submodule.
fn folder(top: &Path) -> PathBuf {
    let git = top.join(".git");
    let named = bytes(&git).ok().flatten().and_then(|text| String::from_utf8(text).ok());
    let named = named.as_deref().and_then(|text| text.lines().next()?.strip_prefix("gitdir: "));
    named.map_or_else(|| git.clone(), |named| top.join(named))
}

/// The entries of an index; none if there is no such file.
fn read(path: &Path) -> Result<Vec<Entry>, String> {
    let Some(bytes) = bytes(path)? else { return Ok(Vec::new()) };
    for digest in DIGESTS {
        if let Some(entries) = parse(&bytes, digest)? {
            return Ok(entries);
        }
    }
    Err("is an index that cannot be read".to_owned())
}

/// The content of a regular file, if there is one.
fn bytes(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let Some(metadata) = fs::metadata(path).ok().filter(fs::Metadata::is_file) else { return Ok(None) };
    if metadata.len() > MOST_BYTES {
        return Err(format!("has more than {} MiB", MOST_BYTES >> 20));
    }
    let unreadable = |error| format!("cannot be read: {error}");
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    let file = File::open(path).map_err(unreadable)?;
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(Some(bytes))
}

/// The entries of an index with digests of this size; `None` if it is no such index.
fn parse(bytes: &[u8], digest: usize) -> Result<Option<Vec<Entry>>, String> {
    let mut names = 0;
    let mut entries = Vec::new();
    let Some(mut index) = Index::begin(bytes, digest) else { return Ok(None) };
    for _ in 0..index.count {
        let Some(entry) = index.next_entry() else { return Ok(None) };
        names += entry.name.as_os_str().len();
        if names > MOST_NAMES {
            return Err(format!("has names of more than {} MiB", MOST_NAMES >> 20));
        }
        if entry.name.components().any(|part| !matches!(part, Component::Normal(_))) {
            return Err(format!("has the name `{}`, which leads out of the repository", entry.name.display()));
        }
        entries.push(entry);
    }
    Ok(Some(entries))
}

/// An index that is read from its beginning.
struct Index<'b> {
    bytes: &'b [u8],
    digest: usize,
    version: u32,
    count: u32,
    /// Where the next entry begins.
    at: usize,
    /// The name of the previous entry.
    name: Vec<u8>,
}

impl<'b> Index<'b> {
    fn begin(bytes: &'b [u8], digest: usize) -> Option<Self> {
        let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let (version, count) = (number(4)?, number(8)?);
        let is_known = bytes.starts_with(b"DIRC") && (2..=4).contains(&version);
        is_known.then_some(Self { bytes, digest, version, count, at: 12, name: Vec::new() })
    }

    fn next_entry(&mut self) -> Option<Entry> {
        let flags = self.at + NUMBERS + self.digest;
        let flag = |at: usize| Some(u16::from_be_bytes(self.bytes.get(at..at + 2)?.try_into().ok()?));
        let is_extended = self.version >= 3 && flag(flags)? & 0x4000 != 0;
        let is_not_checked_out = is_extended && flag(flags + 2)? & 0x4000 != 0;
        let length = flag(flags)? & MOST_LENGTH;
        let mut start = flags + if is_extended { 4 } else { 2 };
        let kept = if self.version == 4 { self.name.len().checked_sub(varint(self.bytes, &mut start)?)? } else { 0 };
        let rest = self.bytes.get(start..)?;
        let rest = &rest[..rest.iter().position(|byte| *byte == 0)?];
        self.name.truncate(kept);
        self.name.extend_from_slice(rest);
        if self.name.len().min(usize::from(MOST_LENGTH)) != usize::from(length) {
            return None;
        }
        let end = start + rest.len();
        // Entries of older versions end in one to eight NUL bytes.
        self.at = if self.version == 4 { end + 1 } else { self.at + (end - self.at + 8) / 8 * 8 };
        Some(Entry { name: PathBuf::from(super::name_of(&self.name)), is_not_checked_out })
    }
}

/// Bits of the flags of an entry that hold the length of its name, and the length from which on they are all set.
const MOST_LENGTH: u16 = 0xfff;

/// The number of bytes that a name does not share with the previous one.
fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut next = || {
        let byte = *bytes.get(*at)?;
        *at += 1;
        Some(byte)
    };
    let mut byte = next()?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = next()?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some(value)
}

/// An index of version 4 with SHA-1, whose names share all but their last 8 bytes.
#[cfg(test)]
pub(super) fn prepared(count: u32, shared: usize) -> Vec<u8> {
    with_digests(count, shared, DIGESTS[0])
}

#[cfg(test)]
fn with_digests(count: u32, shared: usize, digest: usize) -> Vec<u8> {
    let mut bytes = [b"DIRC".as_slice(), &4_u32.to_be_bytes(), &count.to_be_bytes()].concat();
    for number in 0..count {
        let length = u16::try_from(shared + 8).unwrap_or(u16::MAX).min(MOST_LENGTH);
        bytes.extend([vec![0; NUMBERS], vec![0xff; digest]].concat());
        bytes.extend(length.to_be_bytes());
        let first = if number == 0 { "a".repeat(shared) } else { String::new() };
        bytes.push(if number == 0 { 0 } else { 8 });
        bytes.extend(format!("{first}{number:04}.sql\0").into_bytes());
    }
    bytes
}

/// An index of version 2 with SHA-1 and these names, whose entries have a flag.
#[cfg(test)]
pub(super) fn of_names(names: impl IntoIterator<Item = String>, flag: u16) -> Vec<u8> {
    let names: Vec<String> = names.into_iter().collect();
    let mut bytes = [b"DIRC".as_slice(), &2_u32.to_be_bytes(), &(names.len() as u32).to_be_bytes()].concat();
    for name in names {
        let start = bytes.len();
        bytes.extend([0; 24]);
        // The mode of a regular file.
        bytes.extend(0o100_644_u32.to_be_bytes());
        bytes.extend([0; NUMBERS - 28]);
        bytes.extend([0xff; DIGESTS[0]]);
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX).min(MOST_LENGTH);
        bytes.extend((length | flag).to_be_bytes());
        bytes.extend(name.into_bytes());
        bytes.resize(start + (bytes.len() - start + 8) / 8 * 8, 0);
    }
    // The digest of all that, which git does not compare.
    bytes.extend([0; DIGESTS[0]]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_whatever_the_digest() {
        for digest in DIGESTS {
            let names = |bytes: &[u8]| {
                let entries = DIGESTS.iter().find_map(|digest| parse(bytes, *digest).unwrap());
                entries.unwrap_or_default().into_iter().map(|entry| entry.name).collect::<Vec<_>>()
            };
            assert_eq!(
                names(&with_digests(2, 3, digest)),
                ["aaa0000.sql", "aaa0001.sql"].map(PathBuf::from),
                "{digest}"
            );
            assert!(names(&with_digests(2, 3, digest)[..60]).is_empty(), "{digest}");
        }
    }

    #[test]
    fn a_small_index_with_names_of_gigabytes_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (index_file, shared) = (folder.path().join("index"), folder.path().join("sharedindex.00"));
        let large = prepared(10_000, 200_000);
        assert!(large.len() < 1 << 20);
        fs::write(&shared, prepared(2, 3)).unwrap();
        fs::write(&index_file, &large).unwrap();
        let refused = Err("has names of more than 128 MiB".to_owned());
        assert_eq!(check(&index_file, folder.path()), refused);
        fs::write(&shared, &large).unwrap();
        fs::write(&index_file, prepared(2, 3)).unwrap();
        assert_eq!(check(&index_file, folder.path()), refused);
    }
}
