//! REINDEX.

use crate::catalog::{Oid, RelationKind};
use crate::effect::{IndexBuildCause, LockCause, ScanCause};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{LockMode, ObjectName, Reindex, ReindexTarget};
use pgvet_syntax::source::TextRange;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/indexcmds.c`, `ExecReindex`.
    pub(crate) fn reindex(&mut self, reindex: &Reindex) -> Run {
        if reindex.concurrently {
            self.prevent_in_block("REINDEX CONCURRENTLY", reindex.keyword)?;
            self.effects.waits_for_transactions = true;
        }
        match &reindex.target {
            ReindexTarget::Index(name) => self.reindex_index(name, reindex),
            ReindexTarget::Table(name) => self.reindex_table(name, reindex),
            ReindexTarget::Schema(schema) => {
                self.prevent_in_block("REINDEX SCHEMA", reindex.keyword)?;
                self.check_schema(schema)?;
                self.reindex_all(Some(&schema.text), schema.range, reindex);
                Ok(())
            }
            ReindexTarget::Database => {
                self.prevent_in_block("REINDEX DATABASE", reindex.keyword)?;
                self.reindex_all(None, reindex.keyword, reindex);
                Ok(())
            }
            ReindexTarget::System => self.prevent_in_block("REINDEX SYSTEM", reindex.keyword),
        }
    }

    /// The lock on the table whose indexes are built.
    fn reindex_mode(reindex: &Reindex) -> LockMode {
        if reindex.concurrently { LockMode::ShareUpdateExclusive } else { LockMode::Share }
    }

    /// On a temporary table, which nobody else sees, CONCURRENTLY means nothing.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/indexcmds.c`, `ReindexIndex` and `ReindexTable`.
    fn is_concurrent(&self, table: Oid, reindex: &Reindex) -> bool {
        reindex.concurrently && !self.catalog.relation(table).is_temporary()
    }

    fn reindex_index(&mut self, name: &ObjectName, reindex: &Reindex) -> Run {
        let range = name.range();
        let Some(index) = self.find(name) else {
            // Which table an unknown index belongs to cannot be told.
            let index = self.open(name, RelationKind::Index, LockMode::AccessExclusive)?;
            self.unknown(format!("the table of index `{}` is not known", self.catalog.relation(index).name));
            return Ok(());
        };
        let Some(definition) = self.catalog.relation(index).index().cloned() else {
            let relation = self.catalog.relation(index);
            if relation.known {
                return fail("42809", format!("\"{}\" is not an index", relation.name), range);
            }
            self.lock(index, LockMode::AccessExclusive, LockCause::Target, range);
            return Ok(());
        };
        if definition.exclusion && self.is_concurrent(definition.table, reindex) {
            return fail("0A000", "concurrent index creation for exclusion constraints is not supported", range);
        }
        self.lock(definition.table, Self::reindex_mode(reindex), LockCause::Parent, range);
        if self.catalog.relation(index).kind != RelationKind::PartitionedIndex {
            self.rebuild(definition.table, index, reindex, range);
            return Ok(());
        }
        self.prevent_in_block("REINDEX INDEX of a partitioned index", reindex.keyword)?;
        self.lock(index, Self::reindex_mode(reindex), LockCause::Target, range);
        for part in self.index_parts(index) {
            self.lock(part, LockMode::Share, LockCause::Child, range);
            if self.catalog.relation(part).kind == RelationKind::Index
                && let Some(table) = self.catalog.relation(part).index().map(|index| index.table)
            {
                self.lock(table, Self::reindex_mode(reindex), LockCause::Child, range);
                self.rebuild(table, part, reindex, range);
            }
        }
        Ok(())
    }

    /// The indexes that are attached to a partitioned index, directly and indirectly.
    fn index_parts(&self, index: Oid) -> Vec<Oid> {
        let (mut parts, mut at) = (vec![index], 0);
        while let Some(index) = parts.get(at) {
            parts.extend(self.parts_of_index(*index).into_iter().map(|(_, part)| part));
            at += 1;
        }
        parts.remove(0);
        parts
    }

    fn reindex_table(&mut self, name: &ObjectName, reindex: &Reindex) -> Run {
        let range = name.range();
        let table = self.open(name, RelationKind::Table, Self::reindex_mode(reindex))?;
        let relation = self.catalog.relation(table);
        if !relation.kind.is_table() && relation.kind != RelationKind::MaterializedView && relation.known {
            return fail("42809", format!("\"{}\" is not a table or materialized view", relation.name), range);
        }
        if self.catalog.relation(table).kind != RelationKind::PartitionedTable {
            self.reindex_relation(table, reindex, range);
            return Ok(());
        }
        self.prevent_in_block("REINDEX TABLE of a partitioned table", reindex.keyword)?;
        // Even CONCURRENTLY lists the partitions under Share.
        for child in self.lock_descendants(table, LockMode::Share, range) {
            if self.catalog.relation(child).kind == RelationKind::Table {
                self.reindex_relation(child, reindex, range);
            }
        }
        Ok(())
    }

    fn reindex_all(&mut self, schema: Option<&str>, range: TextRange, reindex: &Reindex) {
        for table in self.all_with_rows() {
            let relation = self.catalog.relation(table);
            let wanted = schema.is_none_or(|schema| relation.schema == schema);
            if wanted && relation.kind != RelationKind::PartitionedTable {
                self.lock(table, Self::reindex_mode(reindex), LockCause::Target, range);
                self.reindex_relation(table, reindex, range);
            }
        }
    }

    fn reindex_relation(&mut self, table: Oid, reindex: &Reindex, range: TextRange) {
        for index in self.catalog.relation(table).indexes.clone() {
            let Some(definition) = self.catalog.relation(index).index() else { continue };
            // CONCURRENTLY passes over these with a warning.
            if self.is_concurrent(table, reindex) && (definition.exclusion || !definition.valid) {
                continue;
            }
            self.rebuild(table, index, reindex, range);
        }
    }

    fn rebuild(&mut self, table: Oid, index: Oid, reindex: &Reindex, range: TextRange) {
        if reindex.concurrently && !self.is_concurrent(table, reindex) {
            self.lock(table, LockMode::Share, LockCause::Target, range);
        }
        // CONCURRENTLY needs AccessExclusive only to drop the old index at the end.
        self.lock(index, LockMode::AccessExclusive, LockCause::Part, range);
        self.scan(table, ScanCause::IndexBuild, range);
        self.build_index(index, IndexBuildCause::Reindex, reindex.concurrently, range);
        if let crate::catalog::RelationDetail::Index(index) = &mut self.catalog.relation_mut(index).detail {
            std::sync::Arc::make_mut(index).valid = true;
        }
    }
}
