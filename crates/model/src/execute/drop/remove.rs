//! The removal of one object, and the locks that it takes.

use super::dependency::Object;
use super::{Deletion, Executor};
use crate::catalog::{ConstraintKind, DroppedRule, Oid, RelationDetail, RelationKind};
use crate::effect::LockCause;
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/catalog/dependency.c`, `doDeletion`.
    pub(super) fn remove(&mut self, object: &Object, deletion: &Deletion) {
        let range = deletion.range;
        if object.relation().is_some_and(|relation| self.catalog.get_relation(relation).is_none()) {
            return;
        }
        match object {
            Object::Relation(oid) => self.remove_relation(*oid, deletion),
            Object::Column(table, column) => {
                self.lock_dependent(*table, range);
                self.catalog.remove_column(*table, column);
            }
            Object::Default(table, column) => {
                self.lock_dependent(*table, range);
                if let Some(column) = self.catalog.relation_mut(*table).column_mut(column) {
                    column.default = None;
                }
            }
            Object::Constraint(table, name) => self.remove_constraint(*table, name, range),
            Object::Trigger(table, name) => {
                self.lock_dependent(*table, range);
                self.catalog.remove_trigger(*table, name);
            }
            Object::Policy(table, name) => {
                self.lock_dependent(*table, range);
                self.catalog.relation_mut(*table).policies.remove(name);
            }
            Object::Rule(table, name) => {
                self.lock_dependent(*table, range);
                self.catalog.relation_mut(*table).rules.retain(|rule| rule != name);
            }
            Object::Statistics((schema, name)) => {
                if let Some(table) = self.catalog.statistics_named(schema, name)
                    && self.catalog.get_relation(table).is_some()
                {
                    self.lock(table, LockMode::ShareUpdateExclusive, LockCause::Target, range);
                }
                self.catalog.remove_statistics(schema, name);
            }
            Object::Type(oid) => self.catalog.remove_type(*oid),
            Object::Function(oid) => {
                self.catalog.remove_function(*oid);
            }
            Object::Schema(name) => self.catalog.remove_schema(name),
            Object::Extension(name) => self.catalog.remove_extension(name),
        }
    }

    fn lock_dependent(&mut self, table: Oid, range: TextRange) {
        self.lock(table, LockMode::AccessExclusive, LockCause::Dependent, range);
    }

    /// Source: PostgreSQL 18, `src/backend/catalog/heap.c`, `heap_drop_with_catalog`; `index.c`, `index_drop`.
    fn remove_relation(&mut self, oid: Oid, deletion: &Deletion) {
        let Some(relation) = self.catalog.get_relation(oid).cloned() else { return };
        let range = deletion.range;
        if let Some(index) = relation.index()
            && self.catalog.get_relation(index.table).is_some()
        {
            let cause = match deletion.found.first().map(|first| &first.object) {
                Some(Object::Relation(first)) if *first == oid => LockCause::Target,
                _ => LockCause::Dependent,
            };
            self.lock(index.table, deletion.mode, cause, range);
            let owner = self.catalog.relation_mut(index.table);
            owner.indexes.retain(|other| *other != oid);
            owner.unique_indexes.retain(|other| *other != oid);
            owner.unattached_indexes.retain(|other| *other != oid);
            self.forget_part(index.parent, oid);
            if let RelationDetail::Index(index) = &relation.detail
                && index.unique
                && index.valid
            {
                self.note_dropped(index.table, DroppedRule::Index(Arc::clone(index)));
            }
        }
        for parent in &relation.parents {
            if self.catalog.get_relation(*parent).is_none() {
                continue;
            }
            if relation.is_partition() {
                self.lock(*parent, LockMode::AccessExclusive, LockCause::Parent, range);
                if let Some(default) = self.default_partition(*parent).filter(|default| *default != oid) {
                    self.lock(default, LockMode::AccessExclusive, LockCause::DefaultPartition, range);
                }
            }
            self.catalog.remove_child(*parent, oid);
        }
        if let Some((table, _)) = relation.sequence().and_then(|sequence| sequence.owned_by.clone())
            && self.catalog.get_relation(table).is_some()
        {
            self.catalog.relation_mut(table).owned_sequences.retain(|sequence| *sequence != oid);
        }
        if let RelationDetail::View(view) = &relation.detail {
            for (read, _) in &view.references {
                if self.catalog.get_relation(*read).is_some() {
                    self.catalog.relation_mut(*read).viewed_by.retain(|viewer| *viewer != oid);
                }
            }
        }
        self.leave_publications(oid);
        if relation.kind != RelationKind::CompositeType {
            let name = self.relation_name(oid);
            self.effects.drops.push(name);
        }
        self.catalog.remove_relation(oid);
    }

    fn leave_publications(&mut self, oid: Oid) {
        let publications: Vec<_> =
            self.catalog.publications().filter(|publication| publication.tables.contains_key(&oid)).cloned().collect();
        for mut publication in publications {
            Arc::make_mut(&mut publication).tables.remove(&oid);
            self.catalog.set_publication(Arc::unwrap_or_clone(publication));
        }
    }

    /// A foreign key has triggers on both tables, and dropping a trigger locks its table; the clone that a partition has
    /// of its parent's has none of its own on the referenced table.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/pg_constraint.c`, `RemoveConstraintById`; `trigger.c`,
    /// `RemoveTriggerById`.
    fn remove_constraint(&mut self, table: Oid, name: &SmolStr, range: TextRange) {
        let Some(constraint) = self.catalog.remove_constraint(table, name) else { return };
        self.lock_dependent(table, range);
        if matches!(constraint.kind, ConstraintKind::Check { .. } | ConstraintKind::ForeignKey(_)) {
            self.note_dropped(table, DroppedRule::Constraint(Arc::clone(&constraint)));
        }
        let Some(key) = constraint.foreign_key() else { return };
        if constraint.inherited_from > 0 || self.catalog.get_relation(key.referenced).is_none() {
            return;
        }
        let referenced = std::iter::once(key.referenced).chain(self.descendants_if_partitioned(key.referenced));
        for oid in referenced.filter(|oid| self.has_foreign_key_triggers(*oid)).collect::<Vec<_>>() {
            self.lock(oid, LockMode::AccessExclusive, LockCause::ForeignKeyDropped, range);
        }
    }

    /// Before 15 only the leaves of a partitioned table have the triggers of a foreign key to it.
    pub(in crate::execute) fn has_foreign_key_triggers(&self, referenced: Oid) -> bool {
        self.target.at_least(15) || self.catalog.relation(referenced).kind != RelationKind::PartitionedTable
    }
}
