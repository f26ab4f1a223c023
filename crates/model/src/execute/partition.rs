//! Partitions: made, attached and detached.

mod bound;
mod clone;
mod condition;
mod detach;
mod proof;
mod valid_bound;

use super::{Executor, Run, fail};
use crate::catalog::{ConstraintKind, Oid, RelationKind};
use crate::effect::{Demand, LockCause, PartitionRows, ScanCause};
use pgvet_syntax::ast::{LockMode, ObjectName, PartitionBound};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;

impl Executor<'_> {
    /// The DEFAULT partition of a table.
    pub(super) fn default_partition(&self, parent: Oid) -> Option<Oid> {
        self.catalog.relation(parent).bounds.default_partition()
    }

    /// Makes a new, empty table a partition of its parent, which is locked.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `DefineRelation`.
    pub(super) fn store_partition(&mut self, parent: Oid, child: Oid, bound: &PartitionBound, range: TextRange) -> Run {
        if let Some(default) = self.default_partition(parent) {
            self.lock(default, LockMode::AccessExclusive, LockCause::DefaultPartition, range);
            if *bound == PartitionBound::Default {
                return self.fail_second_default(default, child, range);
            }
            self.check_bound(parent, bound, range)?;
            self.verify_default(parent, default, bound, range);
        }
        self.check_bound(parent, bound, range)?;
        self.catalog.set_partition_bound(parent, child, bound);
        self.clone_indexes(parent, child, range)?;
        self.clone_triggers(parent, child, range)?;
        self.clone_foreign_keys(parent, child, range);
        Ok(())
    }

    fn fail_second_default(&self, default: Oid, child: Oid, range: TextRange) -> Run {
        let (default, child) = (&self.catalog.relation(default).name, &self.catalog.relation(child).name);
        let reason = format!("partition \"{child}\" conflicts with existing default partition \"{default}\"");
        fail("42P17", reason, range)
    }

    /// ALTER TABLE ... ATTACH PARTITION; the parent is locked `ShareUpdateExclusive`.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATExecAttachPartition`.
    pub(crate) fn attach_partition(
        &mut self,
        parent: Oid,
        partition: &ObjectName,
        bound: Option<&PartitionBound>,
        range: TextRange,
    ) -> Run {
        let Some(bound) = bound else { return Ok(()) };
        self.check_is_partitioned(parent, range)?;
        let default = self.default_partition(parent);
        if let Some(default) = default {
            self.lock(default, LockMode::AccessExclusive, LockCause::DefaultPartition, range);
        }
        let child = self.open(partition, RelationKind::Table, LockMode::AccessExclusive)?;
        self.check_attach(parent, child, partition)?;
        self.lock_descendants(child, LockMode::AccessExclusive, range);
        if let Some(default) = default
            && *bound == PartitionBound::Default
        {
            return self.fail_second_default(default, child, range);
        }
        self.check_bound(parent, bound, range)?;
        // Decided before the constraints of the parent become the child's.
        let constraint = self.partition_constraint(parent, bound);
        let demand = Demand::Bound(PartitionRows {
            parent,
            bound: bound.clone(),
            condition: self.bound_condition(parent, bound),
        });
        self.inherit_from(parent, child, partition)?;
        // A partition has no columns of its own.
        for column in &mut self.catalog.relation_mut(child).columns {
            column.is_local = false;
        }
        self.catalog.set_partition_bound(parent, child, bound);
        self.attach_indexes(parent, child, range)?;
        self.clone_triggers(parent, child, range)?;
        self.clone_foreign_keys(parent, child, range);
        self.verify_bound(child, constraint.as_ref(), &ScanCause::PartitionBound, &demand, range);
        if let Some(default) = default {
            self.verify_default(parent, default, bound, range);
        }
        Ok(())
    }

    fn check_attach(&self, parent: Oid, child: Oid, name: &ObjectName) -> Run {
        let (parent, relation) = (self.catalog.relation(parent), self.catalog.relation(child));
        let wrong = |reason: String| fail("42809", reason, name.range());
        if !relation.kind.is_table() {
            return wrong(format!("\"{name}\" is not a table or foreign table"));
        }
        if relation.is_partition() {
            return wrong(format!("\"{name}\" is already a partition"));
        }
        if relation.of_type.is_some() {
            return wrong("cannot attach a typed table as partition".into());
        }
        if !relation.parents.is_empty() {
            return wrong("cannot attach inheritance child as partition".into());
        }
        if !relation.children.is_empty() && relation.kind == RelationKind::Table {
            return wrong("cannot attach inheritance parent as partition".into());
        }
        if child == parent.oid || self.descendants(child).contains(&parent.oid) {
            return fail("42P07", "circular inheritance not allowed", name.range());
        }
        if parent.is_temporary() != relation.is_temporary() {
            return wrong("a temporary and a permanent relation cannot be parent and partition".into());
        }
        for column in &relation.columns {
            if column.identity.is_some() && self.target.at_least(17) {
                let reason = format!("table \"{name}\" being attached contains an identity column \"{}\"", column.name);
                return fail("55000", reason, name.range());
            }
            if parent.known && parent.column(&column.name).is_none() {
                let reason = format!("table \"{name}\" contains column \"{}\" not found in parent", column.name);
                return fail("42804", reason, name.range());
            }
        }
        self.check_triggers_of_child(child, name)
    }

    /// The rows of a transition table would be those of a parent, too.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/trigger.c`, `FindTriggerIncompatibleWithInheritance`.
    pub(super) fn check_triggers_of_child(&self, child: Oid, name: &ObjectName) -> Run {
        let mut triggers = self.catalog.relation(child).triggers.iter();
        match triggers.find(|trigger| trigger.for_each_row && !trigger.transitions.is_empty()) {
            Some(trigger) => {
                let reason = format!("trigger \"{}\" prevents the table from becoming a child", trigger.name);
                fail("0A000", reason, name.range())
            }
            None => Ok(()),
        }
    }

    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `MergeAttributesIntoExisting` and
    /// `MergeConstraintsIntoExisting`.
    pub(super) fn inherit_from(&mut self, parent: Oid, child: Oid, name: &ObjectName) -> Run {
        let parents = self.catalog.relation(parent).clone();
        let relation = self.catalog.relation(child);
        for column in &parents.columns {
            let Some(ours) = relation.column(&column.name) else {
                if !relation.known {
                    continue;
                }
                let reason = format!("child table is missing column \"{}\"", column.name);
                return fail("42804", reason, name.range());
            };
            if ours.sql_type.is_known() && column.sql_type.is_known() && ours.sql_type != column.sql_type {
                let reason = format!("child table \"{name}\" has different type for column \"{}\"", column.name);
                return fail("42804", reason, name.range());
            }
            if relation.known && ours.generated.is_some() != column.generated.is_some() {
                let must = if column.generated.is_some() { "must" } else { "must not" };
                let reason = format!("column \"{}\" in child table {must} be a generated column", column.name);
                let refused = column.generated.is_some() || self.target.at_least(16);
                if refused {
                    return fail("42804", reason, name.range());
                }
            }
            if relation.known && column.not_null && !ours.not_null {
                let reason = format!("column \"{}\" in child table must be marked NOT NULL", column.name);
                return fail("42804", reason, name.range());
            }
        }
        let mut inherited = Vec::new();
        for theirs in parents.constraints.iter().filter(|constraint| !constraint.no_inherit) {
            let ours = match &theirs.kind {
                ConstraintKind::Check { .. } => relation.constraint(&theirs.name),
                ConstraintKind::NotNull { column } if self.target.at_least(18) => {
                    self.not_null_constraint(child, column).and_then(|name| relation.constraint(&name))
                }
                _ => continue,
            };
            match ours {
                Some(ours) if ours.no_inherit => {
                    let reason = format!("constraint \"{}\" conflicts with non-inherited constraint", ours.name);
                    return fail("42P17", reason, name.range());
                }
                Some(ours) => inherited.push(ours.name.clone()),
                None if relation.known && matches!(theirs.kind, ConstraintKind::Check { .. }) => {
                    let reason = format!("child table is missing constraint \"{}\"", theirs.name);
                    return fail("42804", reason, name.range());
                }
                None => {}
            }
        }
        for constraint in inherited {
            self.inherit_constraint(child, &constraint, parents.kind == RelationKind::PartitionedTable);
        }
        let relation = self.catalog.relation_mut(child);
        relation.parents.push(parent);
        for column in relation.columns.iter_mut().filter(|column| parents.column(&column.name).is_some()) {
            column.inherited_from += 1;
        }
        self.catalog.add_child(parent, child);
        Ok(())
    }

    /// ALTER INDEX ... ATTACH PARTITION; the parent index is locked `ShareUpdateExclusive`.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATExecAttachPartitionIdx`.
    pub(crate) fn attach_index(&mut self, parent_index: Oid, index: &ObjectName) -> Run {
        let range = index.range();
        let parent = self.catalog.relation(parent_index);
        if parent.kind == RelationKind::Index && parent.known {
            return fail("42809", format!("\"{}\" is not a partitioned index", parent.name), range);
        }
        let child_index = self.open(index, RelationKind::Index, LockMode::AccessExclusive)?;
        let parents = self.catalog.relation(parent_index).index().cloned();
        let Some(ours) = self.catalog.relation(child_index).index().cloned() else {
            if self.catalog.relation(child_index).known {
                return fail("42P17", format!("\"{index}\" is not an index"), index.range());
            }
            return Ok(());
        };
        self.lock(ours.table, LockMode::AccessShare, LockCause::Target, range);
        // A parent index that no statement has shown.
        let Some(parents) = parents else { return Ok(()) };
        self.lock(parents.table, LockMode::AccessShare, LockCause::Parent, range);
        if ours.parent != Some(parent_index) {
            let cannot = |code, why: &str| {
                fail(code, format!("cannot attach index \"{index}\" as a partition: {why}"), index.range())
            };
            if self.parts_of_index(parent_index).iter().any(|(table, _)| *table == ours.table) {
                return cannot("55000", "another index is already attached for its table");
            }
            if ours.parent.is_some() {
                return cannot("55000", "it is already attached to another index");
            }
            let parent_table = self.catalog.relation(parents.table);
            if parent_table.known && !parent_table.children.contains(&ours.table) {
                return cannot("55000", "it is not an index on a partition of the table");
            }
            if !self.is_counterpart(ours.table, child_index, parent_index) {
                return cannot("42P17", "the index definitions do not match");
            }
            self.set_index_parent(child_index, Some(parent_index));
            if self.constraint_of_index(parents.table, parent_index).is_some()
                && let Some(constraint) = self.constraint_of_index(ours.table, child_index)
            {
                self.inherit_constraint(ours.table, &constraint, true);
            }
        }
        self.validate_partitioned_index(parent_index);
        Ok(())
    }

    /// An index of ON ONLY becomes valid, and with it its own parent, when every partition has its valid part.
    fn validate_partitioned_index(&mut self, index_oid: Oid) {
        let Some(index) = self.catalog.relation(index_oid).index().cloned() else { return };
        if index.valid {
            return;
        }
        let is_valid = |part: &Oid| self.catalog.relation(*part).index().is_some_and(|part| part.valid);
        let parts = self.parts_of_index(index_oid).into_iter().filter(|(_, part)| is_valid(part));
        let with_part: FxHashSet<Oid> = parts.map(|(table, _)| table).collect();
        if self.catalog.relation(index.table).children.iter().all(|partition| with_part.contains(partition)) {
            self.set_index_valid(index_oid, true);
            if let Some(parent) = index.parent {
                self.validate_partitioned_index(parent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::execute::testing::{check, effects_on, summary};

    const PARTITIONED: &str = "CREATE TABLE p (id int, k int) PARTITION BY RANGE (k);
        CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); CREATE TABLE pd PARTITION OF p DEFAULT; ";

    #[test]
    fn a_new_partition_locks_its_parent_and_reads_the_default_partition() {
        let sql = "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)";
        let locks = ["create public.p2", "lock public.p AccessExclusive", "lock public.pd AccessExclusive"];
        check(PARTITIONED, sql, &[&locks[..], &["scan public.pd"]].concat());
        let proven = format!("{PARTITIONED} ALTER TABLE pd ADD CHECK (k < 10 OR k >= 20);");
        check(&proven, sql, &locks);
    }

    #[test]
    fn references_to_the_parent_lock_the_referencing_table_weakly_only_on_14() {
        let history = "CREATE TABLE p (k int PRIMARY KEY) PARTITION BY RANGE (k); CREATE TABLE u (k int REFERENCES p);";
        let sql = "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)";
        for (version, line) in [(14, "lock public.u AccessShare"), (15, "lock public.u ShareRowExclusive")] {
            assert!(summary(&effects_on(version, history, sql)).contains(&line.to_owned()), "{version}");
        }
    }

    #[test]
    fn detaching_concurrently_is_refused_beside_a_default_partition() {
        let sql = "ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY";
        check(PARTITIONED, sql, &["fails 55000", "lock public.p ShareUpdateExclusive"]);
        let history = format!("{PARTITIONED} DROP TABLE pd;");
        let expected = ["lock public.p ShareUpdateExclusive", "lock public.p1 AccessExclusive"];
        check(&history, sql, &expected);
        let effects = effects_on(17, &history, &format!("BEGIN; {sql}"));
        assert!(summary(&effects).contains(&"fails 25001".to_owned()));
    }

    #[test]
    fn a_detached_partition_is_a_table_of_its_own() {
        let history = format!("{PARTITIONED} ALTER TABLE p DETACH PARTITION p1;");
        check(&history, "DROP TABLE p1", &["drop public.p1", "lock public.p1 AccessExclusive"]);
    }
}
