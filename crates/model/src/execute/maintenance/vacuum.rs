//! VACUUM and ANALYZE.

use crate::catalog::{Oid, RelationKind};
use crate::effect::{LockCause, PartitionWorkKind, RewriteCause};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{LockMode, Vacuum};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/vacuum.c`, `ExecVacuum`.
    pub(crate) fn vacuum(&mut self, vacuum: &Vacuum) -> Run {
        self.check_vacuum_options(vacuum)?;
        if vacuum.vacuum {
            self.prevent_in_block("VACUUM", vacuum.keyword)?;
        }
        let option =
            |name: &str| vacuum.options.iter().any(|option| option.name == name && option.as_bool() == Some(true));
        if option("only_database_stats") {
            return Ok(());
        }
        let full = vacuum.full || option("full");
        let mode = if vacuum.vacuum && full { LockMode::AccessExclusive } else { LockMode::ShareUpdateExclusive };
        if vacuum.tables.is_empty() {
            for table in self.all_with_rows() {
                self.lock(table, mode, LockCause::Target, vacuum.keyword);
                self.vacuum_table(table, vacuum, full, vacuum.keyword);
            }
        }
        for (at, name) in vacuum.tables.iter().enumerate() {
            if self.is_system_relation(name) {
                continue;
            }
            let range = name.range();
            let table = self.open(name, RelationKind::Table, mode)?;
            let relation = self.catalog.relation(table);
            let is_missing = |(of, column): &&(usize, SmolStr)| *of == at && relation.column(column).is_none();
            if let Some((_, column)) = vacuum.columns.iter().find(is_missing).filter(|_| relation.known) {
                let reason = format!("column \"{column}\" of relation \"{}\" does not exist", relation.name);
                return fail("42703", reason, range);
            }
            let partitioned = relation.kind == RelationKind::PartitionedTable;
            let mut tables = vec![table];
            // Since 18 the children of an inheritance tree are processed, too.
            let recurses =
                partitioned || (!self.catalog.relation(table).children.is_empty() && self.target.at_least(18));
            if recurses && !vacuum.only.contains(name) {
                tables.extend(self.lock_descendants(table, mode, range));
            }
            for table in tables {
                self.vacuum_table(table, vacuum, full, range);
            }
        }
        Ok(())
    }

    /// Refuses options and forms that this version does not have.
    fn check_vacuum_options(&self, vacuum: &Vacuum) -> Run {
        if let Some(name) = vacuum.only.first().filter(|_| !self.target.at_least(18)) {
            return fail("42601", "syntax error at or near \"ONLY\"", name.range());
        }
        for option in &vacuum.options {
            let known = match option.name.as_str() {
                "verbose" | "skip_locked" => true,
                "buffer_usage_limit" => self.target.at_least(16),
                "process_main" | "skip_database_stats" | "only_database_stats" => {
                    vacuum.vacuum && self.target.at_least(16)
                }
                "analyze"
                | "freeze"
                | "full"
                | "disable_page_skipping"
                | "index_cleanup"
                | "process_toast"
                | "truncate"
                | "parallel" => vacuum.vacuum,
                _ => false,
            };
            if !known {
                let reason = format!("unrecognized VACUUM or ANALYZE option \"{}\"", option.name);
                return fail("42601", reason, vacuum.keyword);
            }
        }
        if vacuum.vacuum && !vacuum.columns.is_empty() && !vacuum.analyze {
            let reason = "ANALYZE option must be specified when a column list is provided";
            return fail("0A000", reason, vacuum.keyword);
        }
        Ok(())
    }

    fn vacuum_table(&mut self, table: Oid, vacuum: &Vacuum, full: bool, range: TextRange) {
        let kind = self.catalog.relation(table).kind;
        let has_storage = matches!(kind, RelationKind::Table | RelationKind::MaterializedView);
        if vacuum.vacuum && full {
            if has_storage {
                self.rewrite(table, RewriteCause::VacuumFull, range);
            } else {
                self.partition_work(table, PartitionWorkKind::Rewrite(RewriteCause::VacuumFull), range);
            }
        } else if vacuum.vacuum && has_storage {
            self.lock_indexes(table, LockMode::RowExclusive, range);
            self.truncate_tail(table, vacuum, range);
        }
        if vacuum.analyze || !vacuum.vacuum {
            self.lock_indexes(table, LockMode::AccessShare, range);
            if kind == RelationKind::Table {
                self.lock_descendants(table, LockMode::AccessShare, range);
            }
        }
    }

    /// Empty pages at the end of a table are given back under ACCESS EXCLUSIVE, which is only asked for without waiting.
    ///
    /// Source: PostgreSQL 18, `src/backend/access/heap/vacuumlazy.c`, `lazy_truncate_heap`.
    fn truncate_tail(&mut self, table: Oid, vacuum: &Vacuum, range: TextRange) {
        let off = |option: &pgvet_syntax::ast::DefElem| option.name == "truncate" && option.as_bool() == Some(false);
        if self.catalog.relation(table).tail_emptied && !vacuum.options.iter().any(off) {
            self.lock(table, LockMode::AccessExclusive, LockCause::WithoutWaiting, range);
            self.catalog.relation_mut(table).tail_emptied = false;
        }
    }

    /// Every table and materialized view, in the order of creation.
    pub(super) fn all_with_rows(&self) -> Vec<Oid> {
        let all = self.catalog.relations_in_order();
        let is_wanted = |kind| {
            matches!(kind, RelationKind::Table | RelationKind::PartitionedTable | RelationKind::MaterializedView)
        };
        all.into_iter().filter(|relation| is_wanted(relation.kind)).map(|relation| relation.oid).collect()
    }
}
