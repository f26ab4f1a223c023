//! Phases of a change that takes several releases, as comments state them: `-- pgvet: phase contract after 2.4`.

use crate::comment::{self, MARK};
use pgvet_model::migration::Migration;
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// What a migration does for a change that takes several releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Adds the new form beside the old one, which deployed code still uses.
    Expand,
    /// Gives existing rows the new form.
    Backfill,
    /// Removes the old form, which deployed code must not use any more.
    Contract,
}

impl Phase {
    const ALL: [Self; 3] = [Self::Expand, Self::Backfill, Self::Contract];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expand => "expand",
            Self::Backfill => "backfill",
            Self::Contract => "contract",
        }
    }

    /// The comment that states it.
    pub fn comment(self) -> String {
        format!("-- {MARK} phase {}", self.as_str())
    }
}

/// A comment that states the phase of its migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) phase: Phase,
    /// The release after whose deployment the migration may run.
    pub(crate) after: Option<SmolStr>,
}

/// Reads a directive; `None` if it is about something else, and what is wrong with it if it is about a phase.
pub(crate) fn read(directive: &str) -> Option<Result<Marker, String>> {
    let mut words = directive.split_whitespace();
    words.next().filter(|word| *word == "phase")?;
    let named = words.next().unwrap_or_default();
    let Some(phase) = Phase::ALL.into_iter().find(|phase| phase.as_str() == named) else {
        return Some(Err(format!("unknown phase `{named}` after `{MARK} phase`")));
    };
    let rest: Vec<&str> = words.collect();
    Some(match rest.as_slice() {
        [] => Ok(Marker { phase, after: None }),
        ["after", release] => Ok(Marker { phase, after: Some(SmolStr::new(release)) }),
        _ => Err(format!("unknown words `{}` after `{MARK} phase {named}`", rest.join(" "))),
    })
}

/// The comment that states the phase of a migration, and where it is. Of several, the last phase counts.
pub(crate) fn marker(migration: &Migration<'_>) -> Option<(Marker, TextRange)> {
    let text = &migration.file.text;
    if !text.contains(MARK) {
        return None;
    }
    let is_own = |range: &TextRange| migration.section.is_none_or(|section| section.contains(*range));
    let comments = statement::split(text).comments.into_iter().filter(is_own);
    let markers = comments.filter_map(|range| Some((read(comment::directive(text, range)?)?.ok()?, range)));
    markers.max_by_key(|(marker, _)| marker.phase as u8)
}

/// The releases whose code runs, as configuration names them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Releases {
    pub deployed: Vec<SmolStr>,
}

impl Releases {
    /// Whether a release is deployed; `None` if nothing says which ones are.
    pub(crate) fn has(&self, release: &str) -> Option<bool> {
        let is_reached = |deployed: &SmolStr| match (numbers(release), numbers(deployed)) {
            (Some(wanted), Some(deployed)) => wanted <= deployed,
            _ => release == deployed,
        };
        (!self.deployed.is_empty()).then(|| self.deployed.iter().any(is_reached))
    }
}

/// The parts of `2.4` or `v2.4.0`, without zeros at the end.
fn numbers(release: &str) -> Option<Vec<u64>> {
    let parts = release.trim_start_matches(['v', 'V']).split('.').map(|part| part.parse().ok());
    let mut numbers: Vec<u64> = parts.collect::<Option<_>>()?;
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directive_names_phase_and_release() {
        let marker = |phase, after: Option<&str>| Marker { phase, after: after.map(SmolStr::new) };
        assert_eq!(read("phase expand"), Some(Ok(marker(Phase::Expand, None))));
        assert_eq!(read("phase contract after v2.4"), Some(Ok(marker(Phase::Contract, Some("v2.4")))));
        assert_eq!(read("ignore[drop-column]"), None);
        for wrong in ["phase", "phase shrink", "phase contract after", "phase contract 2.4", "phase expand after 1 2"] {
            assert!(matches!(read(wrong), Some(Err(_))), "{wrong}");
        }
    }

    #[test]
    fn releases_are_compared_by_their_numbers() {
        let deployed = |names: &[&str]| Releases { deployed: names.iter().map(SmolStr::new).collect() };
        for (names, release, expected) in [
            (&["2.4"][..], "2.4", Some(true)),
            (&["v2.10"], "2.9", Some(true)),
            (&["2.4.0"], "2.4", Some(true)),
            (&["2.4"], "2.4.1", Some(false)),
            (&["2026.11"], "2026.12", Some(false)),
            (&["amber", "basalt"], "amber", Some(true)),
            (&["amber"], "basalt", Some(false)),
            (&["2.4"], "amber", Some(false)),
            (&[], "2.4", None),
        ] {
            assert_eq!(deployed(names).has(release), expected, "{names:?} {release}");
        }
    }
}
