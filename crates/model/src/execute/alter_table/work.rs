//! The last phase of ALTER TABLE: rewriting tables, or reading them to check constraints.
//!
//! Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATRewriteTables`.

use crate::catalog::{Oid, RelationKind};
use crate::effect::{PartitionWorkKind, RewriteCause, ScanCause};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::source::TextRange;

/// The work queue of one ALTER TABLE.
#[derive(Debug, Default)]
pub(super) struct Work {
    tables: Vec<TableWork>,
    /// Tables whose foreign keys are checked last, when all rewrites are done.
    foreign_keys: Vec<(Oid, ScanCause, TextRange)>,
}

#[derive(Debug)]
struct TableWork {
    table: Oid,
    rewrites: Vec<(RewriteCause, TextRange)>,
    /// SET TABLESPACE: its files are copied as they are, unless the table is rewritten anyway.
    moved: Option<TextRange>,
    /// A column gets new values, in the rows or in the catalog.
    gives_values: Option<TextRange>,
    checks: Vec<(ScanCause, TextRange)>,
}

impl Work {
    fn of(&mut self, table: Oid) -> &mut TableWork {
        let at = self.tables.iter().position(|work| work.table == table).unwrap_or_else(|| {
            let (rewrites, checks) = (Vec::new(), Vec::new());
            self.tables.push(TableWork { table, rewrites, moved: None, gives_values: None, checks });
            self.tables.len() - 1
        });
        &mut self.tables[at]
    }

    /// The table will be rewritten.
    pub(super) fn rewrite(&mut self, table: Oid, cause: RewriteCause, range: TextRange) {
        self.of(table).rewrites.push((cause, range));
    }

    /// The table moves to another tablespace.
    pub(super) fn move_to_tablespace(&mut self, table: Oid, range: TextRange) {
        self.of(table).moved = Some(range);
    }

    /// A column gets new values, though not always by a rewrite.
    pub(super) fn gives_values(&mut self, table: Oid, range: TextRange) {
        self.of(table).gives_values.get_or_insert(range);
    }

    /// All rows must be examined, unless the table is rewritten anyway.
    pub(super) fn check(&mut self, table: Oid, cause: ScanCause, range: TextRange) {
        self.of(table).checks.push((cause, range));
    }

    /// All rows must be looked up in another table.
    pub(super) fn check_foreign_key(&mut self, table: Oid, cause: ScanCause, range: TextRange) {
        self.foreign_keys.push((table, cause, range));
    }

    pub(super) fn is_rewritten(&self, table: Oid) -> bool {
        self.tables.iter().any(|work| work.table == table && !work.rewrites.is_empty())
    }
}

impl Executor<'_> {
    /// Does the work. Relations without rows of their own are not touched, and ONLY (`recurse` is false) skips partitions.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATRewriteTables`.
    pub(super) fn finish(&mut self, work: Work, recurse: bool) -> Run {
        for TableWork { table, rewrites, moved, gives_values, checks } in work.tables {
            if let Some(range) = moved.filter(|_| rewrites.is_empty()) {
                self.copy_storage(table, RewriteCause::Tablespace, range);
            }
            let kind = self.catalog.relation(table).kind;
            if kind == RelationKind::PartitionedTable {
                if recurse {
                    self.finish_partitions(table, rewrites, checks);
                }
                continue;
            }
            if !matches!(kind, RelationKind::Table | RelationKind::MaterializedView) {
                continue;
            }
            let rewritten = !rewrites.is_empty();
            if let Some(range) = gives_values.or_else(|| rewrites.first().map(|(_, range)| *range)) {
                self.check_row_type_unused(table, range)?;
            }
            let relation = self.catalog.relation(table);
            if let Some((_, range)) = rewrites.first()
                && relation.is_user_catalog()
            {
                let reason = format!("cannot rewrite table \"{}\" used as a catalog table", relation.name);
                return fail("0A000", reason, *range);
            }
            for (cause, range) in rewrites {
                self.rewrite(table, cause, range);
            }
            for (cause, range) in checks {
                self.demand_of_check(table, &cause, range);
                if !rewritten {
                    self.scan(table, cause, range);
                }
            }
        }
        for (table, cause, range) in work.foreign_keys {
            if self.catalog.relation(table).kind == RelationKind::Table {
                self.scan(table, cause, range);
            } else if recurse {
                self.check_partitions(table, cause, range);
            }
        }
        Ok(())
    }

    /// Notes what is done to partitions that the migrations do not show. A rewrite checks the rows as well.
    fn finish_partitions(
        &mut self,
        table: Oid,
        rewrites: Vec<(RewriteCause, TextRange)>,
        checks: Vec<(ScanCause, TextRange)>,
    ) {
        if !rewrites.is_empty() {
            for (cause, range) in rewrites {
                self.partition_work(table, PartitionWorkKind::Rewrite(cause), range);
            }
            return;
        }
        for (cause, range) in checks {
            self.check_partitions(table, cause, range);
        }
    }
}
