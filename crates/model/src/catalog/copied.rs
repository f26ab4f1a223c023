//! Which tables the rows of a table were copied from.

use super::{Catalog, Oid, Relation};
use crate::deployment::Deployment;
use crate::place::Place;
use pgvet_syntax::source::TextRange;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

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
    /// Why it may lack some of the rows; `None` if it has all of them, or if that is not known.
    pub omits: Option<Omitted>,
    /// How many statements of the deployment have copied some of the rows into the table.
    pub parts: u32,
    /// The statement of the file.
    pub statement: TextRange,
    /// What copies, in that file.
    pub place: Place,
}

/// Why a copy lacks rows of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Omitted {
    /// A condition excludes them. `plain`: one on the columns of the table alone.
    Excluded { plain: bool },
    /// No row of another table is joined to them.
    Unjoined { to: SmolStr },
    /// ON CONFLICT DO NOTHING skips them.
    Skipped,
}

impl Catalog {
    /// Notes a copy, in place of an earlier one from the same table.
    pub fn note_copy(&mut self, into: Oid, mut copied: Copied) {
        let copies = &mut self.relation_mut(into).copies;
        if let Some(at) = copies.iter().position(|other| other.from == copied.from) {
            let earlier = copies.remove(at);
            if earlier.deployment == copied.deployment {
                copied.parts += earlier.parts;
            }
        }
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
