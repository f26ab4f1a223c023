//! Locks that make queries of tables in use wait.

use pgvet_model::catalog::RelationKind;
use pgvet_model::session::{HeldLock, Session};

/// The locks of earlier statements of the transaction that make queries of tables in use wait.
pub(crate) fn strong_locks(session: &Session) -> impl Iterator<Item = &HeldLock> {
    let held = session.block.iter().flat_map(|block| block.locks.strong());
    held.filter(|lock| stops_queries(lock.kind))
}

/// Whether queries name relations of this kind, so that they wait for its locks.
pub(crate) fn stops_queries(kind: RelationKind) -> bool {
    kind.is_table() || matches!(kind, RelationKind::View | RelationKind::MaterializedView)
}
