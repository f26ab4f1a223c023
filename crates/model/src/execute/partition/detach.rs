//! ALTER TABLE ... DETACH PARTITION.

use super::{Executor, Run, fail};
use crate::catalog::{Constraint, Oid, RelationKind};
use crate::effect::{LockCause, ScanCause};
use pgvet_syntax::ast::{LockMode, ObjectName};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

impl Executor<'_> {
    /// ALTER TABLE ... DETACH PARTITION; the caller has locked the parent `AccessExclusive`, or
    /// `ShareUpdateExclusive` for CONCURRENTLY and FINALIZE.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATExecDetachPartition`.
    pub(crate) fn detach_partition(
        &mut self,
        parent: Oid,
        partition: &ObjectName,
        concurrently: bool,
        finalize: bool,
        range: TextRange,
    ) -> Run {
        if concurrently && self.in_block {
            let reason = "ALTER TABLE ... DETACH CONCURRENTLY cannot run inside a transaction block";
            return fail("25001", reason, range);
        }
        let relation = self.catalog.relation(parent);
        if relation.known && relation.kind != RelationKind::PartitionedTable {
            let sqlstate = if self.target.at_least(18) { "42809" } else { "42P17" };
            return fail(sqlstate, format!("table \"{}\" is not partitioned", relation.name), range);
        }
        let default = self.default_partition(parent).filter(|_| !finalize);
        if let Some(default) = default {
            if concurrently {
                let reason = "cannot detach partitions concurrently when a default partition exists";
                return fail("55000", reason, range);
            }
            self.lock(default, LockMode::AccessExclusive, LockCause::DefaultPartition, range);
        }
        // Before 14 a weaker lock, which left plans with a partition that is none.
        let strong = concurrently || finalize || self.target.at_least(14);
        let mode = if strong { LockMode::AccessExclusive } else { LockMode::ShareUpdateExclusive };
        let child = self.open(partition, RelationKind::Table, mode)?;
        let relation = self.catalog.relation(child);
        let is_partition = relation.parents.contains(&parent);
        if !is_partition && self.catalog.relation(parent).known && relation.known {
            let reason = format!("relation \"{partition}\" is not a partition of the table");
            return fail("42P01", reason, partition.range());
        }
        if is_partition && finalize && relation.known && !relation.detach_pending {
            let reason = format!("partition \"{partition}\" is not pending detach");
            return fail("55000", reason, partition.range());
        }
        self.effects.waits_for_transactions |= concurrently || finalize;
        self.detach_references(parent, child, finalize, range);
        self.detach_foreign_keys(child, range);
        for index in self.catalog.relation(child).indexes.clone() {
            if self.catalog.relation(index).index().is_some_and(|index| index.parent.is_some()) {
                self.lock(index, LockMode::AccessExclusive, LockCause::Part, range);
            }
        }
        self.lock_descendants(child, mode, range);
        if concurrently && is_partition {
            self.keep_bound_as_check(parent, child);
        }
        self.forget_parent(parent, child);
        Ok(())
    }

    /// Foreign keys to the parent no longer reference the partition: each is checked and loses its part for it.
    fn detach_references(&mut self, parent: Oid, child: Oid, finalize: bool, range: TextRange) {
        let mut ancestors = vec![parent];
        while let Some(above) = ancestors.last().and_then(|oid| self.catalog.get_relation(*oid)?.parents.first()) {
            ancestors.push(*above);
        }
        let keys: Vec<_> = ancestors.into_iter().flat_map(|oid| self.catalog.foreign_keys_to(oid)).collect();
        for (referencing, constraint) in keys {
            self.lock(referencing, LockMode::AccessExclusive, LockCause::ForeignKey, range);
            if !finalize {
                let cause = ScanCause::ForeignKey { constraint: Some(constraint.name.clone()) };
                // A join of the referencing table with the partition.
                self.scan(referencing, cause.clone(), range);
                self.scan(child, cause, range);
            }
        }
    }

    /// Its own foreign keys get triggers of their own on the referenced tables.
    fn detach_foreign_keys(&mut self, child: Oid, range: TextRange) {
        for constraint in &self.catalog.relation(child).constraints.clone() {
            let Some(key) = constraint.foreign_key().filter(|_| constraint.inherited_from > 0) else { continue };
            if self.catalog.get_relation(key.referenced).is_none() {
                continue;
            }
            self.lock(key.referenced, LockMode::ShareRowExclusive, LockCause::ForeignKey, range);
            let partitions = self.descendants(key.referenced);
            if !partitions.is_empty() && self.target.at_least(15) {
                for partition in partitions {
                    self.lock(partition, LockMode::ShareRowExclusive, LockCause::ForeignKey, range);
                }
            }
        }
    }

    /// Removes a table from the children of another; it keeps what it inherited.
    pub(in crate::execute) fn forget_inheritance(&mut self, parent: Oid, child: Oid) {
        let columns = self.catalog.get_relation(parent).map(|parent| parent.columns.clone());
        let constraints = self.catalog.get_relation(parent).map(|parent| parent.constraints.clone());
        let relation = self.catalog.relation_mut(child);
        relation.parents.retain(|other| *other != parent);
        let from_parent =
            |name: &SmolStr| columns.as_ref().is_none_or(|columns| columns.iter().any(|column| column.name == *name));
        for column in relation.columns.iter_mut().filter(|column| from_parent(&column.name)) {
            column.inherited_from = column.inherited_from.saturating_sub(1);
            column.is_local |= column.inherited_from == 0;
        }
        let has_counterpart = |constraint: &Constraint| {
            constraints.as_ref().is_none_or(|parents| parents.iter().any(|theirs| theirs.is_counterpart(constraint)))
        };
        let is_meant = |constraint: &Constraint| constraint.inherited_from > 0 && has_counterpart(constraint);
        relation.constraints.update_where(is_meant, |constraint| {
            constraint.inherited_from -= 1;
            constraint.is_local |= constraint.inherited_from == 0;
        });
        if self.catalog.get_relation(parent).is_some() {
            self.catalog.remove_child(parent, child);
        }
    }

    /// Makes a partition a table of its own.
    pub(in crate::execute) fn forget_parent(&mut self, parent: Oid, child: Oid) {
        self.forget_inheritance(parent, child);
        let relation = self.catalog.relation_mut(child);
        relation.partition_bound = None;
        relation.detach_pending = false;
        let inherited = self.catalog.relation(child).triggers.iter().filter(|trigger| trigger.inherited);
        let inherited: Vec<SmolStr> = inherited.map(|trigger| trigger.name.clone()).collect();
        inherited.iter().for_each(|name| self.catalog.remove_trigger(child, name));
        self.detach_indexes(child);
    }
}
