//! Notes why the effects of a statement may be incomplete.

use super::Executor;
use crate::effect::{Unknown, UnknownReason};
use pgvet_syntax::source::TextRange;

impl Executor<'_> {
    /// Notes a fact that no statement shows.
    pub(crate) fn unknown(&mut self, fact: impl Into<String>) {
        self.note_unknown(UnknownReason::Fact(fact.into()));
    }

    /// Notes a reason that is about the statement as a whole.
    pub(crate) fn note_unknown(&mut self, reason: UnknownReason) {
        self.note(Unknown { reason, range: TextRange::default(), may_change: false, by_trigger: false });
    }

    /// Notes code at `range` that is not analyzed.
    pub(crate) fn skip_code(&mut self, reason: UnknownReason, range: TextRange, may_change: bool) {
        self.note(Unknown { reason, range, may_change, by_trigger: false });
    }

    fn note(&mut self, unknown: Unknown) {
        self.effects.note_unknown(unknown);
    }

    /// Gives the reasons without a place of their own the place of the statement.
    pub(super) fn place_unknown(&mut self) {
        let statement = self.place.range;
        self.effects.move_unknown(|range| if range.is_empty() { statement } else { range });
    }
}
