//! Indexes of partitions, and the indexes of parents that they are attached to.

use super::Executor;
use crate::catalog::{Index, Oid, RelationDetail};
use std::sync::Arc;

impl Executor<'_> {
    /// Attaches the index of a partition to that of its parent, or detaches it.
    pub(in crate::execute) fn set_index_parent(&mut self, index: Oid, parent: Option<Oid>) {
        let Some(table) = self.catalog.relation(index).index().map(|index| index.table) else { return };
        self.link_index(index, parent);
        let unattached = &mut self.catalog.relation_mut(table).unattached_indexes;
        unattached.retain(|other| *other != index);
        if parent.is_none() {
            unattached.push(index);
        }
    }

    /// Detaches all indexes of a table that is no longer a partition.
    pub(in crate::execute) fn detach_indexes(&mut self, table: Oid) {
        let indexes = self.catalog.relation(table).indexes.clone();
        indexes.iter().for_each(|index| self.link_index(*index, None));
        self.catalog.relation_mut(table).unattached_indexes = indexes;
    }

    fn link_index(&mut self, index: Oid, parent: Option<Oid>) {
        let mut old = None;
        self.change_index(index, |index| old = std::mem::replace(&mut index.parent, parent));
        if old == parent {
            return;
        }
        self.forget_part(old, index);
        if let Some(parent) = parent {
            self.change_index(parent, |parent| {
                parent.parts.insert(index);
            });
        }
    }

    /// Removes an index from those that are attached to its parent's, which may be gone.
    pub(in crate::execute) fn forget_part(&mut self, parent: Option<Oid>, index: Oid) {
        if let Some(parent) = parent.filter(|parent| self.catalog.get_relation(*parent).is_some()) {
            self.change_index(parent, |parent| {
                parent.parts.remove(&index);
            });
        }
    }

    pub(in crate::execute) fn set_index_valid(&mut self, index: Oid, valid: bool) {
        self.change_index(index, |index| index.valid = valid);
    }

    fn change_index(&mut self, index: Oid, change: impl FnOnce(&mut Index)) {
        if let RelationDetail::Index(index) = &mut self.catalog.relation_mut(index).detail {
            change(Arc::make_mut(index));
        }
    }

    /// The indexes that are attached to this one, each after its table, in the order of the tables.
    pub(in crate::execute) fn parts_of_index(&self, index: Oid) -> Vec<(Oid, Oid)> {
        let parts = self.catalog.relation(index).index().into_iter().flat_map(|index| &index.parts);
        let with_table = |part: &Oid| Some((self.catalog.get_relation(*part)?.index()?.table, *part));
        let mut parts: Vec<(Oid, Oid)> = parts.filter_map(with_table).collect();
        parts.sort_unstable();
        parts
    }
}
