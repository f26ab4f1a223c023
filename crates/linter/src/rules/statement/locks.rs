//! Locks that make queries of tables in use wait.

use crate::report::Finding;
use crate::rule::RuleContext;
use crate::rules::text::enumerate;
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

/// How many locks of a transaction are looked at: one may lock tens of thousands of tables.
const LOOKED_AT: usize = 100;

/// Shows which other tables earlier statements of the transaction have locked so that their writes wait as well: a new
/// foreign key also locks the table that it references. `named` are the tables that the finding names itself.
pub(crate) fn show_other_locks<'r, 'a>(
    finding: Finding<'r, 'a>,
    context: &RuleContext<'_>,
    named: &[Oid],
) -> Finding<'r, 'a> {
    let mut others: Vec<&HeldLock> = Vec::new();
    for lock in strong_locks(context.session).take(LOOKED_AT) {
        let table = context.before.get_relation(lock.relation);
        let is_in_use = table.is_some_and(|table| !table.birth.is_of(context.deployment()));
        let is_named = || named.contains(&lock.relation) || others.iter().any(|other| other.relation == lock.relation);
        if is_in_use && !is_named() {
            others.push(lock);
        }
    }
    let Some(first) = others.first() else { return finding };
    let names = enumerate(others.iter().map(|lock| lock.unqualified_name()));
    let label = format!("writes to {names} also wait until the end of the transaction");
    finding.label_in(first.place.file, first.place.range, label)
}

/// Whether queries name relations of this kind, so that they wait for its locks.
pub(crate) fn stops_queries(kind: RelationKind) -> bool {
    kind.is_table() || matches!(kind, RelationKind::View | RelationKind::MaterializedView)
}
