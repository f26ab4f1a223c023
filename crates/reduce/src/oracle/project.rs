//! The candidate as migrations of the project that it came from.

use crate::document::Document;
use pgvet_linter::settings::Settings;
use pgvet_model::effect::{Effects, UnknownReason};
use pgvet_model::predict::StatementEffects;
use pgvet_workspace::Project;
use std::collections::{BTreeMap, BTreeSet};

/// A project whose texts are those of the document that was looked at last.
///
/// Only the texts change: the order of the files, the migration tool and its transactions stay.
pub(super) struct Candidate {
    pub(super) project: Project,
    /// What the project shows.
    shown: Option<Document>,
    /// Statements of the original that fail, or about which something is unknown.
    troubled: Option<BTreeSet<usize>>,
}

impl Candidate {
    pub(super) fn new(project: Project) -> Self {
        Self { project, shown: None, troubled: None }
    }

    /// Gives the files of the project the texts of a document.
    pub(super) fn show(&mut self, document: &Document) {
        for (at, file) in document.files.iter().enumerate() {
            let shown = self.shown.as_ref().and_then(|shown| shown.files.get(at));
            if shown.is_some_and(|shown| shown.is_copy_of(file)) {
                continue;
            }
            let text = file.text();
            if self.project.files.get(at).is_some_and(|known| known.parsed.source.text != text) {
                self.project.replace_text(at, text);
            }
        }
        self.shown = Some(document.clone());
    }

    /// The effects of each statement, by its number in the document.
    pub(super) fn effects(&self, document: &Document, settings: &Settings) -> BTreeMap<usize, StatementEffects> {
        let files = self.project.file_indexes();
        let mut found = BTreeMap::new();
        for (migration, effects) in self.project.effects(settings).into_iter().enumerate() {
            let Some(file) = files.get(migration).and_then(|file| document.files.get(*file)) else { continue };
            let (_, placed) = file.placed();
            for effect in effects {
                if let Ok(at) = placed.binary_search_by_key(&effect.statement.start, |placed| placed.start) {
                    found.insert(placed[at].id, effect);
                }
            }
        }
        found
    }

    /// Whether no statement fails that did not fail in the original, and none needs something that is not there. The
    /// first document that is asked about is the original.
    pub(super) fn runs(&mut self, effects: &BTreeMap<usize, StatementEffects>) -> bool {
        let troubled: BTreeSet<usize> =
            effects.iter().filter(|(_, effects)| is_troubled(&effects.effects)).map(|(id, _)| *id).collect();
        self.troubled.get_or_insert_with(|| troubled.clone()).is_superset(&troubled)
    }
}

/// Whether it is sure that the statement fails, or a fact is missing that the migrations do not show.
fn is_troubled(effects: &Effects) -> bool {
    let is_missing = |reason: &UnknownReason| {
        matches!(
            reason,
            UnknownReason::Fact(_) | UnknownReason::MissingFunction { .. } | UnknownReason::PreparedStatement { .. }
        )
    };
    effects.fails.is_some() || effects.unknown.iter().any(|unknown| is_missing(&unknown.reason))
}
