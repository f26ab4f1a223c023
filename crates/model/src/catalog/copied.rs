//! Which tables the rows of a table were copied from.

use super::{Catalog, Oid, Relation};
use crate::deployment::Deployment;
use crate::place::Place;
use pgvet_syntax::source::TextRange;
use serde::{Deserialize, Serialize};

/// The last statement that inserted rows which it read from another table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// The table whose rows it read.
    pub from: Oid,
    pub deployment: Option<Deployment>,
    /// Number of its transaction.
    pub transaction: u32,
    /// Whether that transaction already held a lock on the source that blocks writes.
    pub writes_blocked: bool,
    /// Whether it read every row.
    pub is_whole: bool,
    /// The statement of the file.
    pub statement: TextRange,
    /// What copies, in that file.
    pub place: Place,
}

impl Catalog {
    /// Notes a copy, in place of an earlier one from the same table.
    pub fn note_copy(&mut self, into: Oid, copied: Copied) {
        let copies = &mut self.relation_mut(into).copies;
        copies.retain(|other| other.from != copied.from);
        copies.push(copied);
    }

    /// The tables with rows of this one, in the order of their creation, and how they got them.
    pub fn copies_of(&self, table: Oid) -> impl Iterator<Item = (&Relation, &Copied)> {
        let holds_copy = |relation: &Relation| relation.copies.iter().any(|copied| copied.from == table);
        self.relations_where(holds_copy).into_iter().flat_map(move |relation| {
            let of_table = relation.copies.iter().filter(move |copied| copied.from == table);
            of_table.map(move |copied| (&**relation, copied))
        })
    }
}
