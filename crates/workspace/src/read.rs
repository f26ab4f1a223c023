//! Reading one file into text whose offsets are those of the file.

use crate::boundary::Boundary;
use crate::problem::{Problem, display};
use crate::skipped;
use pgvet_syntax::source::{SourceFile, TextRange};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// Bytes of a file that are no UTF-8. The rest of the file is still read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodingError {
    /// The first bytes that are wrong.
    pub range: TextRange,
}

/// Most bytes of a file with SQL: no migration that a person reviews is larger.
pub(crate) const MAX_SQL: u64 = 128 << 20;

/// Maximum size of every other file: configuration, statistics, baselines, and files that name a migration tool.
const MAX_OTHER: u64 = 16 << 20;

pub(crate) fn read(path: &Path) -> Result<(SourceFile, Option<EncodingError>), Problem> {
    if let Some(why) = refusal(path, skipped::is_sql) {
        return Err(Problem::new(path, why, Some("name the file itself to check it")));
    }
    let bytes = bytes(path, MAX_SQL).map_err(|error| Problem::io(path, &error))?;
    decode(display(path), bytes)
}

/// The bytes of a file of a checkout that a migration tool compares.
pub(crate) fn compared(path: &Path) -> Option<Vec<u8>> {
    let extension = path.extension();
    let is_same = |target: &str| Path::new(target).extension() == extension;
    if refusal(path, is_same).is_some() { None } else { bytes(path, MAX_SQL).ok() }
}

/// Whether a file with the name of SQL has a NUL byte, which no text in UTF-8 has.
pub(crate) fn is_binary(path: &Path) -> bool {
    refusal(path, skipped::is_sql).is_none() && bytes(path, MAX_SQL).is_ok_and(|bytes| bytes.contains(&0))
}

/// The text of a file that belongs to a checkout and is not SQL.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let extension = path.extension();
    // Most files that are searched for do not exist, which one question to the system tells.
    let is_link = fs::symlink_metadata(path)?.is_symlink();
    let refusal = || refusal_of_link(path, |target| Path::new(target).extension() == extension);
    if let Some(why) = if is_link { refusal() } else { refusal_of_folders(path) } {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("it {why}")));
    }
    utf8(bytes(path, MAX_OTHER)?)
}

/// The text of a file with SQL that is to be run, and so must be UTF-8 and no special file.
pub fn sql_to_run(path: &Path) -> io::Result<String> {
    utf8(bytes(path, MAX_SQL)?)
}

/// The text of another file that the user has named. Links are followed, because the user may name any file.
pub fn named_text(path: &Path) -> io::Result<String> {
    utf8(bytes(path, MAX_OTHER)?)
}

fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// The text of a file with SQL that is to be read again, whatever its encoding; a stream can be read only once.
pub(crate) fn whole(path: &Path) -> Option<String> {
    if is_stream(path) { None } else { read(path).ok().map(|(source, _)| source.text) }
}

/// Why a link is not followed: it leads out of the checkout, or to a file of another kind, which may hold secrets.
fn refusal(path: &Path, is_of_kind: impl FnOnce(&str) -> bool) -> Option<String> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    is_link.then(|| refusal_of_link(path, is_of_kind)).flatten()
}

fn refusal_of_link(path: &Path, is_of_kind: impl FnOnce(&str) -> bool) -> Option<String> {
    if is_stream(path) {
        return None;
    }
    let target = fs::canonicalize(path).ok()?;
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let link = |why: &str| format!("is a symbolic link that {why}");
    let other = || (!is_of_kind(&name)).then(|| format!("points to a file of another type, `{}`", target.display()));
    Boundary::around(path).refusal(path).or_else(other).map(|why| link(&why))
}

/// Why nothing is read through a link to a folder: it leads out of the checkout. The path itself is no link.
fn refusal_of_folders(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = std::path::absolute(folder).ok()?;
    // Without links and `..`, the path needs no search for its repository.
    let leads_elsewhere = fs::canonicalize(&folder).is_ok_and(|target| target != folder);
    leads_elsewhere.then(|| Boundary::around(path).refusal(path)).flatten()
}

/// Whether somebody may write to the file while it is read, and nothing tells its size.
fn is_stream(path: &Path) -> bool {
    // `pgvet check <(command)` names `/dev/fd/63`; elsewhere a pipe would be waited for, and a device has no end.
    cfg!(unix) && ["/dev/stdin", "/dev/fd/", "/proc/self/fd/"].iter().any(|start| display(path).starts_with(start))
}

/// At most `limit` bytes, and only of a regular file: others are not even opened.
fn bytes(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let size = if is_stream(path) { None } else { Some(regular_size(&fs::metadata(path)?)?) };
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {} MiB", limit >> 20));
    if size.is_some_and(|size| size > limit) {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(size.unwrap_or(0) as usize);
    File::open(path)?.take(size.unwrap_or(limit + 1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
}

fn regular_size(metadata: &Metadata) -> io::Result<u64> {
    if metadata.is_file() {
        return Ok(metadata.len());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
}

pub(crate) fn read_stdin(name: &str) -> Result<(SourceFile, Option<EncodingError>), Problem> {
    let mut bytes = Vec::new();
    let failed = |error| Problem::io(Path::new(name), &error);
    io::stdin().lock().take(MAX_SQL + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_SQL {
        return Err(Problem::new(Path::new(name), format!("is larger than {} MiB", MAX_SQL >> 20), None));
    }
    decode(name.to_owned(), bytes)
}

/// Each byte that is no UTF-8 becomes one `?`, so that everything after it keeps its place. NUL, which UTF-16 and binary
/// files hold, cannot be part of SQL: nothing of such a file can be checked.
pub(crate) fn decode(path: String, bytes: Vec<u8>) -> Result<(SourceFile, Option<EncodingError>), Problem> {
    if bytes.contains(&0) {
        let at = bytes.iter().take_while(|byte| **byte != 0).count();
        let message = format!("is not SQL text: byte {at} is NUL");
        let help = "save it as UTF-8 if it is UTF-16 text; rename it if it is not SQL";
        return Err(Problem { path, message, help: Some(help.to_owned()) });
    }
    let error = match String::from_utf8(bytes) {
        Ok(text) => return Ok((SourceFile::new(path, text), None)),
        Err(error) => error,
    };
    let mut text = String::with_capacity(error.as_bytes().len());
    let mut first = None;
    for chunk in error.as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        let start = text.len() as u32;
        text.extend(chunk.invalid().iter().map(|_| '?'));
        if !chunk.invalid().is_empty() {
            first.get_or_insert(TextRange::new(start, text.len() as u32));
        }
    }
    Ok((SourceFile::new(path, text), first.map(|range| EncodingError { range })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_byte_keeps_the_offsets_of_the_rest() {
        let (source, error) = decode("a.sql".to_owned(), b"-- caf\xe9\nSELECT 1".to_vec()).unwrap();
        assert_eq!(source.text, "-- caf?\nSELECT 1");
        assert_eq!(error, Some(EncodingError { range: TextRange::new(6, 7) }));
    }

    #[test]
    fn nul_bytes_make_a_file_binary() {
        let problem = decode("a.sql".to_owned(), b"S\0E\0L\0".to_vec()).unwrap_err();
        assert_eq!(problem.message, "is not SQL text: byte 1 is NUL");
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_read_through_a_folder_out_of_the_checkout() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["checkout/.git", "checkout/real", "outside/deep"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["checkout/real/a.json", "outside/a.json", "outside/deep/a.json"] {
            fs::write(at(file), "{}").unwrap();
        }
        std::os::unix::fs::symlink("real", at("checkout/inside")).unwrap();
        std::os::unix::fs::symlink("../outside/deep", at("checkout/meta")).unwrap();
        assert!(text(&at("checkout/inside/a.json")).is_ok());
        assert!(text(&at("checkout/real/../inside/a.json")).is_ok());
        for path in ["checkout/meta/a.json", "checkout/meta/../a.json"] {
            let error = text(&at(path)).unwrap_err().to_string();
            assert!(error.contains("which is outside"), "{path}: {error}");
        }
    }

    #[test]
    fn valid_text_is_taken_as_it_is() {
        assert_eq!(decode("a.sql".to_owned(), "-- é".into()).unwrap().1, None);
    }
}
