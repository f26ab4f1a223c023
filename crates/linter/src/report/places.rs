//! Where findings are, so that a finding of one version is merged with that of another.

use crate::diagnostic::Diagnostic;
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;

/// Finds findings of a list by rule and range. The list may grow and lose its end, and nothing else.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The positions of those before `indexed`.
    positions: FxHashMap<(&'static str, u32, TextRange), Vec<usize>>,
    indexed: usize,
}

/// Number of findings up to which a search through all of them is faster than an index.
const FEW: usize = 16;

impl Places {
    /// Adds a finding, or the version for which it was found to the one that is there.
    pub(crate) fn record(&mut self, found: &mut Vec<Diagnostic>, diagnostic: Diagnostic) {
        match self.same(found, &diagnostic) {
            Some(at) => {
                let existing = &mut found[at];
                for version in diagnostic.pg_versions {
                    if !existing.pg_versions.contains(&version) {
                        existing.pg_versions.push(version);
                    }
                }
            }
            None => found.push(diagnostic),
        }
    }

    fn same(&mut self, found: &[Diagnostic], diagnostic: &Diagnostic) -> Option<usize> {
        let key = |one: &Diagnostic| (one.rule, one.file, one.range);
        let is_same = |other: &Diagnostic| {
            other.message == diagnostic.message
                || !diagnostic.pg_versions.iter().any(|version| other.pg_versions.contains(version))
        };
        if found.len() <= FEW {
            return found.iter().position(|other| key(other) == key(diagnostic) && is_same(other));
        }
        if found.len() < self.indexed {
            *self = Self::default();
        }
        for (at, one) in found.iter().enumerate().skip(self.indexed) {
            self.positions.entry(key(one)).or_default().push(at);
        }
        self.indexed = found.len();
        self.positions.get(&key(diagnostic))?.iter().copied().find(|at| is_same(&found[*at]))
    }

    /// Forgets what is known, because the list lost its end.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
