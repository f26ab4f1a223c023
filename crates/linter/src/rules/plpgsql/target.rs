//! The object of DDL in a function, and how strongly it is locked.

use pgvet_syntax::ast::{AlterTableAction, Ast, LockMode, ObjectKind, ObjectName};

/// DDL, TRUNCATE, LOCK or REFRESH, as a function may run it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) name: &'a ObjectName,
    /// `ALTER TABLE`.
    pub(super) verb: &'static str,
    /// What it does to queries of other sessions.
    pub(super) blocks: &'static str,
}

const EVERYTHING: &str = "blocks all reads and writes of";
const EVERYTHING_OF_TABLE: &str = "blocks all reads and writes of the table of";
const WRITES: &str = "blocks all writes to";

/// The relation that a statement locks strongly; `None` for statements that do not, and for those that only create
/// an object.
pub(super) fn of(ast: &Ast) -> Option<Target<'_>> {
    let target = |name, verb, blocks| Some(Target { name, verb, blocks });
    match ast {
        Ast::AlterTable(alter) if alter.kind == ObjectKind::Table => {
            let detaches_concurrently = alter.commands.iter().all(|command| {
                matches!(
                    &command.action,
                    AlterTableAction::DetachPartition { concurrently: true, .. }
                        | AlterTableAction::AttachPartition { .. }
                        | AlterTableAction::SetStatistics { .. }
                        | AlterTableAction::ValidateConstraint { .. }
                        | AlterTableAction::SetOptions(_)
                        | AlterTableAction::ResetOptions(_)
                )
            });
            if detaches_concurrently { None } else { target(&alter.name, "ALTER TABLE", EVERYTHING) }
        }
        Ast::Drop(drop) => {
            let verb = match drop.kind {
                ObjectKind::Table => "DROP TABLE",
                ObjectKind::MaterializedView => "DROP MATERIALIZED VIEW",
                ObjectKind::Index if !drop.concurrently => "DROP INDEX",
                _ => return None,
            };
            let blocks = if drop.kind == ObjectKind::Index { EVERYTHING_OF_TABLE } else { EVERYTHING };
            target(&drop.objects.first()?.name, verb, blocks)
        }
        Ast::Truncate(truncate) => target(&truncate.tables.first()?.0, "TRUNCATE", EVERYTHING),
        Ast::LockTable(lock) if lock.mode == LockMode::AccessExclusive => {
            target(&lock.tables.first()?.0, "LOCK TABLE", EVERYTHING)
        }
        Ast::LockTable(lock) if lock.mode >= LockMode::ShareRowExclusive => {
            target(&lock.tables.first()?.0, "LOCK TABLE", WRITES)
        }
        Ast::RefreshMaterializedView(refresh) if !refresh.concurrently => {
            target(&refresh.name, "REFRESH MATERIALIZED VIEW", EVERYTHING)
        }
        Ast::CreateIndex(index) if !index.concurrently => target(&index.table, "CREATE INDEX", WRITES),
        Ast::CreateTrigger(trigger) => target(&trigger.table, "CREATE TRIGGER", WRITES),
        Ast::Rename(rename) if rename.kind == ObjectKind::Table => target(&rename.object, "ALTER TABLE", EVERYTHING),
        Ast::Cluster(_) => None,
        _ => None,
    }
}
