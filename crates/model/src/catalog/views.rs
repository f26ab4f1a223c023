//! Views, which rules compare before and after each migration.

use super::{Catalog, Oid, Relation, RelationKind};
use std::sync::Arc;

impl Catalog {
    /// The views, in the order of their creation.
    pub fn views(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.views.iter().filter_map(|oid| self.relations.get(oid))
    }

    /// The relation as a view, to be changed: one that no statement created may have been treated as a table.
    pub(crate) fn view_mut(&mut self, oid: Oid) -> &mut Relation {
        self.views.insert(oid);
        let relation = self.relation_mut(oid);
        relation.kind = RelationKind::View;
        relation
    }
}
