//! The objects that a partition gets from its parent: indexes, row triggers and foreign keys.

use super::{Executor, Run, fail};
use crate::catalog::{Constraint, Oid, RelationKind, Trigger, foreign_key_name_addition};
use crate::effect::{LockCause, ScanCause};
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::TextRange;
use std::sync::Arc;

impl Executor<'_> {
    /// Makes all indexes of the parent in a new partition.
    pub(super) fn clone_indexes(&mut self, parent: Oid, child: Oid, range: TextRange) -> Run {
        for index in self.catalog.relation(parent).indexes.clone() {
            if self.is_foreign_without_index(child, index, range)? {
                continue;
            }
            self.define_partition_index(child, index, range)?;
        }
        Ok(())
    }

    /// Finds or builds the parent's indexes in a table that becomes a partition.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `AttachPartitionEnsureIndexes`.
    pub(super) fn attach_indexes(&mut self, parent: Oid, child: Oid, range: TextRange) -> Run {
        for index in self.catalog.relation(parent).indexes.clone() {
            if self.is_foreign_without_index(child, index, range)? {
                continue;
            }
            if !self.attach_matching_index(child, index, LockMode::AccessShare, range) {
                let primary = self.catalog.relation(index).index().is_some_and(|index| index.primary);
                let relation = self.catalog.relation(child);
                if primary && relation.primary_key().is_some() {
                    let reason = format!("multiple primary keys for table \"{}\" are not allowed", relation.name);
                    return fail("42P16", reason, range);
                }
                self.define_partition_index(child, index, range)?;
            }
        }
        Ok(())
    }

    /// Whether a foreign table gets no index, because it cannot be indexed: plain indexes are skipped, unique ones are
    /// refused.
    fn is_foreign_without_index(&self, child: Oid, index: Oid, range: TextRange) -> Run<bool> {
        let relation = self.catalog.relation(child);
        if relation.kind != RelationKind::ForeignTable {
            return Ok(false);
        }
        match self.catalog.relation(index).index() {
            Some(index) if index.unique => {
                let reason = format!(
                    "the foreign table \"{}\" cannot be a partition: its parent has a unique index",
                    relation.name
                );
                fail("42809", reason, range)
            }
            _ => Ok(true),
        }
    }

    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `CloneRowTriggersToPartition`.
    pub(super) fn clone_triggers(&mut self, parent: Oid, child: Oid, range: TextRange) -> Run {
        let triggers = self.catalog.relation(parent).triggers.iter().filter(|trigger| trigger.for_each_row);
        let triggers: Vec<Arc<Trigger>> = triggers.cloned().collect();
        for partition in std::iter::once(child).chain(self.descendants(child)) {
            for trigger in &triggers {
                let relation = self.catalog.relation(partition);
                if relation.triggers.contains(&trigger.name) {
                    let reason =
                        format!("trigger \"{}\" for relation \"{}\" already exists", trigger.name, relation.name);
                    return fail("42710", reason, range);
                }
                self.catalog.add_trigger(partition, Trigger { inherited: true, ..Trigger::clone(trigger) });
            }
        }
        Ok(())
    }

    /// Gives a partition the foreign keys of its parent, and makes it part of what foreign keys to its parent reference.
    /// Rows of a table that had some are checked.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `CloneForeignKeyConstraints`.
    pub(super) fn clone_foreign_keys(&mut self, parent: Oid, child: Oid, range: TextRange) {
        // The stronger lock came with a correction of ATTACH and DETACH that 14 did not get.
        for (referencing, key) in self.foreign_keys_to_family(parent) {
            // The keys of partitions follow those of their parents.
            if key.inherited_from > 0 {
                continue;
            }
            let strong = self.target.at_least(15);
            let mode = if strong { LockMode::ShareRowExclusive } else { LockMode::AccessShare };
            self.lock(referencing, mode, LockCause::ForeignKey, range);
        }
        for constraint in &self.catalog.relation(parent).constraints.clone() {
            if constraint.foreign_key().is_some() {
                self.clone_foreign_key(child, constraint, range);
            }
        }
    }

    fn clone_foreign_key(&mut self, child: Oid, constraint: &Constraint, range: TextRange) {
        let Some(key) = constraint.foreign_key() else { return };
        if self.catalog.get_relation(key.referenced).is_some() {
            let mode = LockMode::ShareRowExclusive;
            self.lock(key.referenced, mode, LockCause::ForeignKeyAdded, range);
            for partition in self.descendants_if_partitioned(key.referenced) {
                self.lock(partition, mode, LockCause::ForeignKeyAdded, range);
            }
        }
        let relation = self.catalog.relation(child);
        let same = |own: &&Arc<Constraint>| {
            own.inherited_from == 0
                && own.valid
                && own.foreign_key().is_some_and(|own| {
                    own.referenced == key.referenced
                        && own.columns == key.columns
                        && own.referenced_columns == key.referenced_columns
                        && (own.on_delete, own.on_update, own.match_full)
                            == (key.on_delete, key.on_update, key.match_full)
                })
        };
        if let Some(own) = relation.constraints.iter().find(same) {
            let name = own.name.clone();
            // Its triggers on the referenced table make way for those of the parent's.
            if self.catalog.get_relation(key.referenced).is_some() {
                self.lock(key.referenced, LockMode::AccessExclusive, LockCause::ForeignKeyDropped, range);
            }
            self.inherit_constraint(child, &name, true);
            return;
        }
        let name = if relation.constraint(&constraint.name).is_none() {
            constraint.name.clone()
        } else {
            let addition = foreign_key_name_addition(&key.columns);
            self.catalog.choose_constraint_name(&relation.name, Some(&addition), "fkey", &relation.schema, &[])
        };
        let clone = Constraint { name, is_local: false, inherited_from: 1, ..constraint.clone() };
        if constraint.valid && constraint.enforced && self.catalog.relation(child).kind == RelationKind::Table {
            let cause = ScanCause::ForeignKey { constraint: Some(clone.name.clone()) };
            self.scan(child, cause, range);
        }
        self.catalog.add_constraint(child, clone.clone());
        for partition in self.catalog.relation(child).children.clone() {
            self.clone_foreign_key(partition, &clone, range);
        }
    }
}
