//! Locks that make queries of tables in use wait.

use crate::assumption::Assumption;
use crate::confidence::Confidence;
use crate::report::Finding;
use crate::rule::RuleContext;
use crate::rules::text::enumerate;
use pgvet_model::catalog::{Oid, RelationKind};
use pgvet_model::place::Place;
use pgvet_model::session::{HeldLock, Session};
use pgvet_syntax::ast::LockMode;

/// The locks of earlier statements of the transaction that make queries of tables in use wait.
pub(crate) fn strong_locks(session: &Session) -> impl Iterator<Item = &HeldLock> {
    let held = session.block.iter().flat_map(|block| block.locks.strong());
    held.filter(|lock| stops_queries(lock.kind))
}

/// Whether a lock blocks only writes of a lookup table, which deployed code probably does not write to.
pub(crate) fn blocks_only_writes_of_lookup(context: &RuleContext<'_>, relation: Oid, mode: LockMode) -> bool {
    if mode.blocks_reads() {
        return false;
    }
    let Some(relation) = context.before.get_relation(relation) else { return false };
    context.before.lookup_rows(relation).is_some()
        && !context.settings.application.inserts_into(&relation.schema, &relation.name)
}

/// The lock of an earlier statement that already blocks reads of a table in use, if both statements are at least likely to
/// share a transaction.
pub(crate) fn lock_on_reads<'a>(context: &RuleContext<'a>, table: Oid) -> Option<&'a HeldLock> {
    let mut held = context.session.block.as_ref()?.locks.of(table);
    let lock = held.find(|lock| lock.exposed && lock.mode.blocks_reads())?;
    let assumption = assumed_transaction(context, lock.place);
    assumption.is_none_or(|assumption| assumption.confidence() >= Confidence::Likely).then_some(lock)
}

/// What is assumed if a statement is reported because it runs in the transaction of an earlier one: nothing if the file
/// itself has a BEGIN, or if both run in the code of one statement.
pub(crate) fn assumed_transaction(context: &RuleContext<'_>, earlier: Place) -> Option<Assumption> {
    context.session.block.as_ref().filter(|block| !block.explicit)?;
    let is_same_statement = earlier.file == context.file && context.outer().contains(earlier.range);
    if is_same_statement { None } else { Assumption::of_transaction(context.migration) }
}

/// Shows where the transaction took a lock.
pub(crate) fn show_lock<'r, 'a>(finding: Finding<'r, 'a>, lock: &HeldLock) -> Finding<'r, 'a> {
    let label = format!("`{}` is locked here, until the end of the transaction", lock.unqualified_name());
    finding.label_in(lock.place.file, lock.place.range, label)
}

/// How many locks of a transaction are looked at: one may lock tens of thousands of tables.
const LOOKED_AT: usize = 100;

/// Shows which other tables earlier statements of the transaction have locked so that their queries wait as well: a new
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
    let (unreadable, unwritable): (Vec<_>, Vec<_>) = others.into_iter().partition(|lock| lock.mode.blocks_reads());
    let groups = [(unreadable, "reads and writes of"), (unwritable, "writes to")];
    groups.into_iter().fold(finding, |finding, (locks, access)| {
        let Some(first) = locks.first() else { return finding };
        let names = enumerate(locks.iter().map(|lock| lock.unqualified_name()));
        let label = format!("{access} {names} also wait until the end of the transaction");
        finding.label_in(first.place.file, first.place.range, label)
    })
}

/// Whether queries name relations of this kind, so that they wait for its locks.
pub(crate) fn stops_queries(kind: RelationKind) -> bool {
    kind.is_table() || matches!(kind, RelationKind::View | RelationKind::MaterializedView)
}
