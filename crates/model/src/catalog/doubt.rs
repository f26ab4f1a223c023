//! Uncertain parts of the catalog: relations that code may have changed whose text is known only at run time,
//! and functions, operators and casts that it does not keep.

use super::{Catalog, Oid};
use imbl::OrdSet;
use serde::{Deserialize, Serialize};

/// The doubted relations: these, and all that are older than an oid.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Doubts {
    relations: OrdSet<Oid>,
    before: Oid,
    /// Aggregates, operators, casts or functions of a type were made, which the catalog does not keep.
    more_code: bool,
    /// Code ran that was not analyzed and may have changed something.
    hidden_code: bool,
}

impl Catalog {
    /// The relation may have other parts than the catalog says, or be gone.
    pub fn doubt(&mut self, relation: Oid) {
        self.doubts.relations.insert(relation);
    }

    /// So may everything that there is now.
    pub fn doubt_everything(&mut self) {
        self.doubts.before = Oid(self.next_oid);
    }

    pub fn has_doubts(&self) -> bool {
        self.doubts_everything() || !self.doubts.relations.is_empty()
    }

    /// Whether anything may have been created, changed or dropped that the catalog does not know of.
    pub fn doubts_everything(&self) -> bool {
        self.doubts.before.is_valid()
    }

    /// Notes that code ran which was not analyzed and may have changed something.
    pub fn note_hidden_code(&mut self) {
        self.doubts.hidden_code = true;
    }

    /// Whether such code has run.
    pub fn follows_hidden_code(&self) -> bool {
        self.doubts.hidden_code
    }

    /// Notes that functions, operators or casts were made which the catalog does not keep.
    pub fn note_more_code(&mut self) {
        self.doubts.more_code = true;
    }

    /// Whether the catalog has all functions, operators and casts that were created.
    pub fn knows_all_code(&self) -> bool {
        !self.doubts.more_code && self.known_extensions.len() == self.extensions.len()
    }

    pub fn is_doubtful(&self, relation: Oid) -> bool {
        relation < self.doubts.before || self.doubts.relations.contains(&relation)
    }
}
