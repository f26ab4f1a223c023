//! Passes over the findings of a run after the rules, in this order: overlap, suppression
//! ([`crate::suppression`]), and what the settings hide. Baseline and grouping belong to the programs that report.

use crate::confidence::Confidence;
use crate::diagnostic::Diagnostic;
use crate::meta::Category;
use crate::rules;
use crate::settings::Settings;
use crate::severity::Severity;
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::{Placeholder, PlaceholderKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Findings that a run made and does not show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hidden {
    /// Less severe than [`Settings::level`].
    pub below_level: usize,
    /// Severe enough, but less sure than [`Settings::confidence`].
    pub below_confidence: usize,
}

/// How much a finding counts against one that it would replace: whether it is shown, and whether it is more than possible.
type Weight = (bool, Confidence);

/// Drops findings where a rule that says it better has one at the same place or within it, or points to it. One that is
/// hidden replaces none that is shown, and one that is only possible none that is surer.
pub(crate) fn yield_to_others(found: &mut Vec<Diagnostic>, settings: &Settings) {
    let weight =
        |found: &Diagnostic| -> Weight { (is_shown(found, settings), found.confidence.min(Confidence::Likely)) };
    let mut places: BTreeMap<(&str, u32, u32, u32), Weight> = BTreeMap::new();
    for diagnostic in found.iter() {
        let labels = diagnostic.labels.iter().map(|label| (label.file, label.range));
        for (file, range) in labels.chain([(diagnostic.file, diagnostic.range)]) {
            let known = places.entry((diagnostic.rule, file, range.start, range.end)).or_insert(weight(diagnostic));
            *known = (*known).max(weight(diagnostic));
        }
    }
    let is_replaced = |diagnostic: &Diagnostic| {
        let (is_shown, confidence) = weight(diagnostic);
        let TextRange { start, end } = diagnostic.range;
        let yields_to = rules::find(diagnostic.rule).map_or(&[][..], |rule| rule.meta.yields_to);
        yields_to.iter().any(|rule| {
            let mut within =
                places.range((rule.name, diagnostic.file, start, 0)..=(rule.name, diagnostic.file, end, u32::MAX));
            within.any(|((.., ends), (shown, sure))| *ends <= end && *shown >= is_shown && *sure >= confidence)
        })
    };
    let replaced: Vec<bool> = found.iter().map(is_replaced).collect();
    let mut replaced = replaced.into_iter();
    found.retain(|_| !replaced.next().unwrap_or_default());
}

/// Removes what the settings do not show, and counts it.
pub(crate) fn hide(found: &mut Vec<Diagnostic>, settings: &Settings) -> Hidden {
    let mut hidden = Hidden::default();
    found.retain(|diagnostic| {
        let (severe, sure) = (is_severe(diagnostic, settings), diagnostic.confidence >= settings.confidence);
        hidden.below_level += usize::from(!severe);
        hidden.below_confidence += usize::from(severe && !sure);
        severe && sure
    });
    hidden
}

/// Whether the settings show the finding.
pub(crate) fn is_shown(diagnostic: &Diagnostic, settings: &Settings) -> bool {
    is_severe(diagnostic, settings) && diagnostic.confidence >= settings.confidence
}

fn is_severe(diagnostic: &Diagnostic, settings: &Settings) -> bool {
    diagnostic.severity >= settings.level || is_engine(diagnostic)
}

fn is_engine(diagnostic: &Diagnostic) -> bool {
    rules::find(diagnostic.rule).is_some_and(|rule| rule.meta.category == Category::Engine)
        && diagnostic.severity > Severity::Info
}

/// Removes edits that would change a placeholder, or write the filler that replaces it into the file.
pub(crate) fn keep_placeholders(found: &mut [Diagnostic], placeholders: &[Placeholder]) {
    if placeholders.is_empty() {
        return;
    }
    let is_value = |placeholder: &Placeholder| {
        !matches!(placeholder.kind, PlaceholderKind::Control | PlaceholderKind::MetaCommand)
    };
    let only_values = placeholders.iter().all(is_value);
    let stand_ins: Vec<String> = placeholders.iter().map(Placeholder::identifier).collect();
    let names_one = |text: &str| {
        let text = text.to_ascii_lowercase();
        stand_ins.iter().any(|stand_in| text.contains(stand_in.as_str()))
    };
    let holds_one = |range: TextRange| {
        placeholders
            .iter()
            .any(|placeholder| placeholder.range.start < range.end && range.start < placeholder.range.end)
    };
    for diagnostic in found {
        diagnostic
            .fixes
            .retain(|fix| only_values && !fix.edits.iter().any(|edit| holds_one(edit.range) || names_one(&edit.text)));
        if !only_values || diagnostic.steps.iter().any(|step| names_one(&step.sql)) {
            diagnostic.steps.clear();
        }
    }
}
