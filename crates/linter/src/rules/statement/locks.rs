//! Locks that make queries of tables in use wait.

use crate::report::Finding;
use pgvet_model::catalog::{Oid, RelationKind};
use pgvet_model::session::{HeldLock, Session};

/// The locks of earlier statements of the transaction that make queries of tables in use wait.
pub(crate) fn strong_locks(session: &Session) -> impl Iterator<Item = &HeldLock> {
    let held = session.block.iter().flat_map(|block| block.locks.strong());
    held.filter(|lock| stops_queries(lock.kind))
}

/// The lock of an earlier statement of the transaction that already blocks reads of a table in use.
pub(crate) fn lock_on_reads(session: &Session, table: Oid) -> Option<&HeldLock> {
    let mut held = session.block.as_ref()?.locks.of(table);
    held.find(|lock| lock.exposed && lock.mode.blocks_reads())
}

/// Shows where the transaction took a lock.
pub(crate) fn show_lock<'r, 'a>(finding: Finding<'r, 'a>, lock: &HeldLock) -> Finding<'r, 'a> {
    let label = format!("`{}` is locked here, until the end of the transaction", lock.unqualified_name());
    finding.label_in(lock.place.file, lock.place.range, label)
}

/// Whether queries name relations of this kind, so that they wait for its locks.
pub(crate) fn stops_queries(kind: RelationKind) -> bool {
    kind.is_table() || matches!(kind, RelationKind::View | RelationKind::MaterializedView)
}
