//! Hashes of migrations in `atlas.sum`, which Atlas compares before it runs anything.
//!
//! The hash of a file is that of all names and texts up to this file, so nothing is known about the files after the first
//! one that differs. Source: ariga.io/atlas 0.32.1, `sql/migrate/dir.go`, `NewHashFile`, `UnmarshalText` and `Validate`.

use crate::order::FlywayName;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pgvet_model::incident::Consequence;
use sha2::{Digest, Sha256};

/// The name of the file with the hashes.
pub(crate) const LIST: &str = "atlas.sum";

/// What Atlas does if a hash does not match.
pub(crate) const MISMATCH: Consequence =
    Consequence::Refuses { saying: "checksum mismatch", unless: Some("update `atlas.sum` with `atlas migrate hash`") };

/// A file of a folder, and its content.
pub(crate) type Content = (String, Vec<u8>);

/// The content of an `atlas.sum`.
pub(crate) struct Sums {
    total: String,
    entries: Vec<(String, String)>,
}

impl Sums {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let total = lines.next()?;
        let entry = |line: &str| line.split_once("h1:").map(|(name, hash)| (name.trim().to_owned(), hash.to_owned()));
        Some(Self {
            total: total.strip_prefix("h1:").unwrap_or(total).to_owned(),
            entries: lines.map(entry).collect::<Option<_>>()?,
        })
    }

    /// The ending of the names of the files that are hashed. Atlas reads the folders of other tools as these do:
    /// golang-migrate has down migrations that are not hashed, and Flyway an order of its own.
    pub(crate) fn ending(&self) -> Option<&'static str> {
        let is_of_flyway = |name: &str| name.contains('/') || FlywayName::parse(name).is_some();
        if self.entries.is_empty() || self.entries.iter().any(|(name, _)| is_of_flyway(name)) {
            return None;
        }
        let is_golang_migrate = self.entries.iter().all(|(name, _)| name.ends_with(".up.sql"));
        Some(if is_golang_migrate { ".up.sql" } else { ".sql" })
    }

    /// Returns the name of the first file with another hash, or `None` for the first line. The outer `None` means that
    /// all hashes match, or that a file is missing on either side.
    #[expect(clippy::option_option, reason = "no difference, and one of the first line, differ")]
    pub(crate) fn first_difference(&self, actual: &[(String, String)]) -> Option<Option<String>> {
        let both = self.entries.iter().zip(actual);
        if let Some(((name, _), (own, _))) = both.into_iter().find(|(listed, actual)| listed != actual) {
            return (name == own).then(|| Some(name.clone()));
        }
        (self.entries.len() == actual.len() && self.total != total(&self.entries)).then_some(None)
    }
}

/// The names of files with their hashes. A file that opts out has a name that is hashed, but no hash.
pub(crate) fn hashes(files: &[Content]) -> Vec<(String, String)> {
    let mut hash = Sha256::new();
    let mut hashes = Vec::with_capacity(files.len());
    for (name, content) in files {
        hash.update(name);
        if !opts_out(content) {
            hash.update(content);
            hashes.push((name.clone(), STANDARD.encode(hash.clone().finalize())));
        }
    }
    hashes
}

/// The hash of all entries.
fn total(entries: &[(String, String)]) -> String {
    let mut hash = Sha256::new();
    for (name, own) in entries {
        hash.update(name);
        hash.update(own);
    }
    STANDARD.encode(hash.finalize())
}

/// Whether the first line of a file has the directive `atlas:sum ignore`: `^([ -~]*)atlas:(\w+)(?: +(.+))*`.
pub(crate) fn opts_out(content: &[u8]) -> bool {
    const DIRECTIVE: &[u8] = b"atlas:";
    let line = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let printable = line.iter().take_while(|byte| (b' '..=b'~').contains(*byte)).count();
    let starts = |at: &usize| line[*at..].starts_with(DIRECTIVE) && line.get(at + DIRECTIVE.len()).is_some_and(is_word);
    let Some(at) = (0..=printable).rev().find(starts) else { return false };
    let rest = &line[at + DIRECTIVE.len()..];
    let (word, argument) = rest.split_at(rest.iter().take_while(|byte| is_word(byte)).count());
    let blanks = argument.iter().take_while(|byte| **byte == b' ').count();
    word == b"sum" && blanks > 0 && &argument[blanks..] == b"ignore"
}

pub(crate) fn without_returns(content: &[u8]) -> Vec<u8> {
    let is_kept = |(at, byte): &(usize, &u8)| **byte != b'\r' || content.get(at + 1) != Some(&b'\n');
    content.iter().enumerate().filter(is_kept).map(|(_, byte)| *byte).collect()
}

pub(crate) fn with_returns(content: &[u8]) -> Vec<u8> {
    without_returns(content).split(|byte| *byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(name: &str, text: &str) -> Content {
        (name.to_owned(), text.as_bytes().to_vec())
    }

    /// The hashes were written by `sql/migrate` of ariga.io/atlas 0.32.1.
    #[test]
    fn hashes_are_those_of_atlas() {
        let files = [
            content("1_a.sql", "CREATE TABLE a (id int);\n"),
            content("2_b.sql", "-- atlas:sum ignore\n\nCREATE TABLE b (id int);\n"),
            content("3_c.sql", "-- atlas:txtar\n\n-- migration.sql --\r\nCREATE TABLE c (id int);"),
        ];
        let sums = Sums::parse(include_str!("atlas_sum/atlas.sum")).unwrap();
        assert_eq!(hashes(&files), sums.entries);
        assert_eq!(total(&sums.entries), sums.total);
        assert_eq!(sums.first_difference(&hashes(&files)), None);
        let mut edited = files.clone();
        edited[2].1.push(b'\n');
        assert_eq!(sums.first_difference(&hashes(&edited)), Some(Some("3_c.sql".to_owned())));
        assert_eq!(sums.first_difference(&hashes(&files[..2])), None);
    }

    #[test]
    fn files_opt_out_in_their_first_line() {
        for (text, expected) in [
            ("-- atlas:sum ignore", true),
            ("-- atlas:sum   ignore\nSELECT 1;", true),
            ("atlas:sum ignore", true),
            ("-- see atlas:txtar atlas:sum ignore\n", true),
            ("-- atlas:sum ignore\r\n", false),
            ("-- atlas:sum ignore \n", false),
            ("-- atlas:sum\n", false),
            ("-- atlas:sums ignore\n", false),
            ("\n-- atlas:sum ignore\n", false),
            ("-- é atlas:sum ignore\n", false),
        ] {
            assert_eq!(opts_out(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn line_endings_are_exchanged() {
        assert_eq!(without_returns(b"a\r\nb\rc\n"), b"a\nb\rc\n");
        assert_eq!(with_returns(b"a\r\nb\n"), b"a\r\nb\r\n");
    }
}
