//! The names in git's index, read without running git: every run asks for them.
//!
//! Source: git 2.47, `Documentation/gitformat-index`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most bytes of an index that is read: about a million files.
const LIMIT: u64 = 256 << 20;

/// Bytes of an entry before its name, without the flags that version 3 adds.
const ENTRY: usize = 62;

/// A file that git tracks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Relative to the top of the repository.
    pub(crate) name: PathBuf,
    /// Whether a sparse checkout leaves it out of the folder (`skip-worktree`).
    pub(crate) is_not_checked_out: bool,
}

/// Returns the files that the repository at `top` tracks; none if there is no index that can be read. Of a split index
/// only the names that it holds itself are known.
pub(crate) fn entries(top: &Path) -> Vec<Entry> {
    read(&folder(top).join("index")).and_then(|bytes| parse(&bytes)).unwrap_or_default()
}

/// Returns the folder with the index: `.git`, or the one that it names in a worktree or a submodule.
fn folder(top: &Path) -> PathBuf {
    let git = top.join(".git");
    let named = read(&git).and_then(|text| String::from_utf8(text).ok());
    let named = named.as_deref().and_then(|text| text.lines().next()?.strip_prefix("gitdir: "));
    named.map_or_else(|| git.clone(), |named| top.join(named))
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let metadata = fs::metadata(path).ok().filter(|metadata| metadata.is_file() && metadata.len() <= LIMIT)?;
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    File::open(path).ok()?.take(LIMIT).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn parse(bytes: &[u8]) -> Option<Vec<Entry>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (version, count) = (number(4)?, number(8)?);
    if !bytes.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let mut entries = Vec::new();
    let mut previous: Vec<u8> = Vec::new();
    let mut at = 12;
    for _ in 0..count {
        let is_extended = version >= 3 && bytes.get(at + ENTRY - 2)? & 0x40 != 0;
        let is_not_checked_out = is_extended && bytes.get(at + ENTRY)? & 0x40 != 0;
        let mut start = at + ENTRY + if is_extended { 2 } else { 0 };
        let kept = if version == 4 { previous.len().checked_sub(varint(bytes, &mut start)?)? } else { 0 };
        let length = bytes.get(start..)?.iter().position(|byte| *byte == 0)?;
        previous.truncate(kept);
        previous.extend_from_slice(&bytes[start..start + length]);
        entries.push(Entry { name: PathBuf::from(super::name_of(&previous)), is_not_checked_out });
        let end = start + length;
        // Entries of older versions end in one to eight NUL bytes.
        at = if version == 4 { end + 1 } else { at + (end - at + 8) / 8 * 8 };
    }
    Some(entries)
}

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
