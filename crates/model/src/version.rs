//! PostgreSQL major versions, and how the model asks about them.

use serde::{Deserialize, Serialize};
use std::cell::Cell;

/// The oldest major that the model knows, and the newest.
pub const SUPPORTED: (PgVersion, PgVersion) = (PgVersion(10), PgVersion(18));
/// The majors that are assumed when nothing is configured: those that PostgreSQL supports.
pub const DEFAULT_RANGE: VersionRange = VersionRange { from: PgVersion(14), to: PgVersion(18) };

/// A PostgreSQL major version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PgVersion(pub u8);

impl std::fmt::Display for PgVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The majors that a project runs on, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRange {
    pub from: PgVersion,
    pub to: PgVersion,
}

impl VersionRange {
    /// Every major in the range, oldest first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = PgVersion> {
        (self.from.0..=self.to.0).map(PgVersion)
    }

    /// Reads `16` or `14-18`.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let help = format!(
            "expected a major version or a range between {} and {}, such as 16 or 14-18",
            SUPPORTED.0, SUPPORTED.1
        );
        let major = |part: &str| -> Result<PgVersion, String> {
            let version = part
                .trim()
                .parse()
                .map(PgVersion)
                .map_err(|_| format!("`{text}` is not a PostgreSQL version: {help}"))?;
            if version < SUPPORTED.0 || version > SUPPORTED.1 {
                return Err(format!("PostgreSQL {version} is not known: {help}"));
            }
            Ok(version)
        };
        let (from, to) = match text.split_once('-') {
            Some((from, to)) => (major(from)?, major(to)?),
            None => (major(text)?, major(text)?),
        };
        if from > to {
            return Err(format!("`{text}` runs backwards: {help}"));
        }
        Ok(Self { from, to })
    }
}

/// The version for which a statement is being modelled, with a memory of what was asked.
///
/// A statement is modelled for the oldest major first. Only where the answer to [`Target::at_least`] would have been
/// different for a newer major is it modelled again for that one, so that most statements are modelled once.
#[derive(Debug)]
pub struct Target {
    version: PgVersion,
    asked: Cell<u32>,
}

impl Target {
    pub fn new(version: PgVersion) -> Self {
        Self { version, asked: Cell::new(0) }
    }

    /// One that was asked before.
    pub(crate) fn recalled(version: PgVersion, asked: u32) -> Self {
        Self { version, asked: Cell::new(asked) }
    }

    /// The questions so far, for [`Target::recalled`].
    pub(crate) fn asked(&self) -> u32 {
        self.asked.get()
    }

    pub fn version(&self) -> PgVersion {
        self.version
    }

    /// Whether this is PostgreSQL `major` or newer. Remembers that it matters.
    pub fn at_least(&self, major: u8) -> bool {
        self.asked.set(self.asked.get() | 1 << major);
        self.version.0 >= major
    }

    /// The oldest major in `(self.version, to]` for which some answer would differ.
    pub fn next_difference(&self, to: PgVersion) -> Option<PgVersion> {
        (self.version.0 + 1..=to.0).find(|major| self.asked.get() & (1 << major) != 0).map(PgVersion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_or_refused_with_help() {
        assert_eq!(VersionRange::parse("14-18"), Ok(DEFAULT_RANGE));
        assert_eq!(VersionRange::parse("16").map(|range| range.iter().count()), Ok(1));
        for wrong in ["9", "19", "x", "18-14", ""] {
            assert!(VersionRange::parse(wrong).unwrap_err().contains("14-18"), "{wrong}");
        }
    }

    #[test]
    fn only_consulted_majors_are_modelled_again() {
        let target = Target::new(PgVersion(14));
        assert!(!target.at_least(17));
        assert!(target.at_least(12));
        assert_eq!(target.next_difference(PgVersion(18)), Some(PgVersion(17)));
        assert_eq!(target.next_difference(PgVersion(16)), None);
    }
}
