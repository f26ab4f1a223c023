//! Reading one file into text whose offsets are those of the file.

use crate::discovery::{Problem, display};
use pgvet_linter::source::{SourceFile, TextRange};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of a file that are no UTF-8. The rest of the file is still read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodingError {
    /// The first bytes that are wrong.
    pub range: TextRange,
}

pub(crate) fn read(path: &Path) -> Result<(SourceFile, Option<EncodingError>), Problem> {
    let failed = |error| Problem::io(path, &error);
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    if size >= u64::from(u32::MAX) {
        return Err(Problem::new(path, "is larger than 4 GB", Some("split it; no migration should be that large")));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    // A pipe has no size. Of a file the size is believed: asking for its end would be one more call for each file.
    let limit = if size == 0 { u64::from(u32::MAX) } else { size };
    file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    decode(display(path), bytes)
}

pub(crate) fn read_stdin(name: &str) -> Result<(SourceFile, Option<EncodingError>), Problem> {
    let mut bytes = Vec::new();
    let limit = u64::from(u32::MAX);
    io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(|error| Problem::io(Path::new(name), &error))?;
    if bytes.len() as u64 == limit {
        return Err(Problem::new(Path::new(name), "is larger than 4 GB", None));
    }
    decode(name.to_owned(), bytes)
}

/// Each byte that is no UTF-8 becomes one `?`, so that everything after it keeps its place. NUL, which UTF-16 and binary
/// files hold, cannot be part of SQL: nothing of such a file can be checked.
fn decode(path: String, bytes: Vec<u8>) -> Result<(SourceFile, Option<EncodingError>), Problem> {
    if bytes.contains(&0) {
        let at = bytes.iter().take_while(|byte| **byte != 0).count();
        let message = format!("is no SQL text: byte {at} is NUL");
        let help = "save it as UTF-8 if it is UTF-16 text; rename it if it is no SQL at all";
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
        assert_eq!(problem.message, "is no SQL text: byte 1 is NUL");
    }

    #[test]
    fn valid_text_is_taken_as_it_is() {
        assert_eq!(decode("a.sql".to_owned(), "-- é".into()).unwrap().1, None);
    }
}
