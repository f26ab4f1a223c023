//! Commands on whole tables: TRUNCATE, LOCK, VACUUM, ANALYZE, CLUSTER, REINDEX.

mod cluster;
mod reindex;
mod truncate;
mod vacuum;

use super::{Executor, Run, fail};
use crate::catalog::{Oid, RelationKind};
use crate::effect::LockCause;
use pgvet_syntax::ast::{LockMode, LockTable};
use pgvet_syntax::source::TextRange;

impl Executor<'_> {
    /// Refuses a command that PostgreSQL does not run inside a transaction block.
    pub(crate) fn prevent_in_block(&self, command: &str, range: TextRange) -> Run {
        if self.in_block {
            return fail("25001", format!("{command} cannot run inside a transaction block"), range);
        }
        Ok(())
    }

    /// Source: PostgreSQL 18, `src/backend/commands/lockcmds.c`, `LockTableCommand`.
    pub(super) fn lock_table(&mut self, lock: &LockTable) -> Run {
        if !self.in_block {
            return fail("25P01", "LOCK TABLE can only be used in transaction blocks", lock.keyword);
        }
        let before = self.effects.locks.len();
        for (name, only) in &lock.tables {
            if self.is_system_relation(name) {
                continue;
            }
            let oid = self.open(name, RelationKind::Table, lock.mode)?;
            let relation = self.catalog.relation(oid);
            match relation.kind {
                RelationKind::View => self.lock_view(oid, lock.mode, name.range(), &mut Vec::new()),
                RelationKind::Table | RelationKind::PartitionedTable => {
                    if !only {
                        self.lock_descendants(oid, lock.mode, name.range());
                    }
                }
                RelationKind::ForeignTable => {}
                _ if relation.known => {
                    return fail("42809", format!("cannot lock relation \"{}\"", relation.name), name.range());
                }
                _ => {}
            }
        }
        if lock.nowait {
            self.effects.locks.are_nowait(before);
        }
        Ok(())
    }

    /// Locks what a view reads, in the same mode.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/lockcmds.c`, `LockViewRecurse`.
    fn lock_view(&mut self, view: Oid, mode: LockMode, range: TextRange, seen: &mut Vec<Oid>) {
        if seen.contains(&view) {
            return;
        }
        seen.push(view);
        let Some(definition) = self.catalog.relation(view).view().cloned() else { return };
        for (oid, _) in &definition.references {
            let Some(kind) = self.catalog.get_relation(*oid).map(|relation| relation.kind) else { continue };
            if !matches!(kind, RelationKind::Table | RelationKind::PartitionedTable | RelationKind::View) {
                continue;
            }
            self.lock(*oid, mode, LockCause::Dependent, range);
            if kind == RelationKind::View {
                self.lock_view(*oid, mode, range, seen);
            } else {
                self.lock_descendants(*oid, mode, range);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_failure, check_locks};

    const TREE: &str = "CREATE TABLE t(id int); CREATE UNIQUE INDEX i ON t(id);
        CREATE TABLE u(t_id int REFERENCES t(id)); CREATE VIEW v AS SELECT * FROM t;";

    #[test]
    fn truncate_follows_foreign_keys_only_with_cascade() {
        check_failure(TREE, "TRUNCATE t", "0A000");
        check_failure(TREE, "TRUNCATE t, u", "");
        check_locks(TREE, "TRUNCATE t CASCADE", &["t AccessExclusive", "u AccessExclusive", "i AccessExclusive"]);
    }

    #[test]
    fn some_commands_need_a_block_and_some_refuse_one() {
        check_failure(TREE, "LOCK TABLE t", "25P01");
        check_locks(TREE, "BEGIN; LOCK TABLE v IN SHARE MODE", &["v Share", "t Share"]);
        check_failure(TREE, "BEGIN; VACUUM t", "25001");
        check_failure(TREE, "BEGIN; REINDEX INDEX CONCURRENTLY i", "25001");
        check_failure(TREE, "CLUSTER t", "42704");
        check_locks(TREE, "REINDEX INDEX i", &["t Share", "i AccessExclusive"]);
    }
}
