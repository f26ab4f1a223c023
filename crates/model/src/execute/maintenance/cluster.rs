//! CLUSTER.

use crate::catalog::{Oid, RelationDetail, RelationKind};
use crate::effect::{LockCause, PartitionWorkKind, RewriteCause};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{Cluster, LockMode, Name};
use std::sync::Arc;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/cluster.c`, `cluster`.
    pub(crate) fn cluster(&mut self, cluster: &Cluster) -> Run {
        let Some(name) = &cluster.table else {
            return self.cluster_all(cluster);
        };
        let range = name.range();
        let table = self.open(name, RelationKind::Table, LockMode::AccessExclusive)?;
        let relation = self.catalog.relation(table);
        if matches!(relation.kind, RelationKind::View | RelationKind::Sequence) || relation.kind.is_index() {
            return fail("42809", format!("\"{}\" is not a table or materialized view", relation.name), range);
        }
        let partitioned = relation.kind == RelationKind::PartitionedTable;
        if partitioned && !self.target.at_least(15) {
            return fail("0A000", "cannot cluster a partitioned table", range);
        }
        let index = self.clustering_index(table, cluster.index.as_ref(), cluster)?;
        let is_empty = self.catalog.relation(table).view().is_some_and(|view| !view.populated);
        if is_empty {
            // A materialized view that was never filled is left alone; since 18 its lock, but not that of the index, is given
            // back.
            if self.target.at_least(18) {
                self.effects.locks.retain(|lock| lock.relation.oid != table);
            }
            if let Some(index) = index {
                self.lock(index, LockMode::AccessExclusive, LockCause::Part, range);
            }
            return Ok(());
        }
        if !partitioned {
            self.rewrite(table, RewriteCause::Cluster, range);
            if let Some(index) = index {
                self.mark_clustered(table, Some(index));
            }
            return Ok(());
        }
        self.prevent_in_block("CLUSTER", cluster.keyword)?;
        self.partition_work(table, PartitionWorkKind::Rewrite(RewriteCause::Cluster), range);
        for child in self.descendants(table) {
            if self.catalog.relation(child).kind == RelationKind::Table {
                self.lock(child, LockMode::AccessExclusive, LockCause::Child, range);
                self.rewrite(child, RewriteCause::Cluster, range);
            }
        }
        Ok(())
    }

    /// CLUSTER without a name takes every table that was clustered before.
    fn cluster_all(&mut self, cluster: &Cluster) -> Run {
        self.prevent_in_block("CLUSTER", cluster.keyword)?;
        for table in self.all_with_rows() {
            if self.clustered_index(table).is_some() {
                self.lock(table, LockMode::AccessExclusive, LockCause::Target, cluster.keyword);
                self.rewrite(table, RewriteCause::Cluster, cluster.keyword);
            }
        }
        Ok(())
    }

    fn clustered_index(&self, table: Oid) -> Option<Oid> {
        let indexes = &self.catalog.relation(table).indexes;
        let is_clustered = |oid: &Oid| self.catalog.relation(*oid).index().is_some_and(|index| index.clustered);
        indexes.iter().copied().find(is_clustered)
    }

    fn clustering_index(&self, table: Oid, name: Option<&Name>, cluster: &Cluster) -> Run<Option<Oid>> {
        let relation = self.catalog.relation(table);
        let Some(name) = name else {
            let found = self.clustered_index(table);
            if found.is_none() && relation.known {
                let reason = format!("there is no previously clustered index for table \"{}\"", relation.name);
                return fail("42704", reason, cluster.keyword);
            }
            return Ok(found);
        };
        let found = relation.indexes.iter().copied().find(|oid| self.catalog.relation(*oid).name == name.text);
        if found.is_none() && relation.known {
            let reason = format!("index \"{}\" for table \"{}\" does not exist", name.text, relation.name);
            let of_another = self.catalog.relation_named(&relation.schema, &name.text).is_some();
            return fail(if of_another { "42809" } else { "42704" }, reason, name.range);
        }
        if let Some(index) = found {
            self.check_clusterable(index, name)?;
        }
        Ok(found)
    }

    /// An index has an order that rows can take, and holds all of them.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/cluster.c`, `check_index_is_clusterable`.
    pub(crate) fn check_clusterable(&self, index: Oid, name: &Name) -> Run {
        let Some(index) = self.catalog.relation(index).index() else { return Ok(()) };
        let (sqlstate, reason) = if matches!(index.method.as_str(), "hash" | "gin" | "brin" | "spgist") {
            ("0A000", "because access method does not support clustering")
        } else if index.predicate.is_some() {
            ("0A000", "because it is partial")
        } else if !index.valid {
            ("0A000", "because it is invalid")
        } else {
            return Ok(());
        };
        fail(sqlstate, format!("cannot cluster on index \"{}\" {reason}", name.text), name.range)
    }

    pub(crate) fn mark_clustered(&mut self, table: Oid, clustered: Option<Oid>) {
        for oid in self.catalog.relation(table).indexes.clone() {
            if let RelationDetail::Index(index) = &mut self.catalog.relation_mut(oid).detail {
                Arc::make_mut(index).clustered = Some(oid) == clustered;
            }
        }
    }
}
