//! Which locks were held longer than they may be.

use crate::observation::{Blocked, MigrationTrace, Relation, TransactionTrace};
use pgvet_workspace::config::{HeldLimits, Limit};

/// A lock that was held too long.
#[derive(Debug, Clone)]
pub struct Exceeded<'a> {
    pub limit: Limit,
    pub blocked: &'a Blocked,
}

/// Locks that exceeded a limit: of each relation the strongest mode, and no index whose table is included. A lock is
/// held to the limit of the strongest mode that it reaches.
pub fn exceeded<'a>(trace: &'a MigrationTrace, limits: &HeldLimits) -> Vec<Exceeded<'a>> {
    let in_transaction = |transaction: &'a TransactionTrace| {
        let over: Vec<Exceeded<'a>> =
            transaction.blocked.iter().filter_map(|blocked| over_limit(blocked, transaction, limits)).collect();
        let is_said = |one: &Exceeded<'a>| {
            over.iter().any(|other| {
                let stronger = other.blocked.relation == one.blocked.relation && other.blocked.mode > one.blocked.mode;
                stronger || one.blocked.relation.table == Some(other.blocked.relation.oid)
            })
        };
        over.iter().filter(|one| !is_said(one)).cloned().collect::<Vec<_>>()
    };
    trace.transactions.iter().flat_map(in_transaction).collect()
}

fn over_limit<'a>(blocked: &'a Blocked, transaction: &TransactionTrace, limits: &HeldLimits) -> Option<Exceeded<'a>> {
    let table = table(&blocked.relation, transaction);
    let limit = limits.of(&table.schema, &table.name, blocked.mode)?;
    (blocked.held.best > limit.held).then_some(Exceeded { limit, blocked })
}

/// The table of an index, which is locked as well.
fn table<'a>(relation: &'a Relation, transaction: &'a TransactionTrace) -> &'a Relation {
    let mut locked = transaction.blocked.iter().map(|blocked| &blocked.relation);
    locked.find(|table| Some(table.oid) == relation.table).unwrap_or(relation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Held;
    use pgvet_syntax::ast::LockMode;
    use std::time::Duration;

    #[test]
    fn the_strongest_mode_of_a_relation_is_reported() {
        let blocked = |mode, milliseconds| Blocked {
            relation: Relation::default(),
            mode,
            held: Held { best: Duration::from_millis(milliseconds), ..Held::default() },
        };
        let blocked = vec![blocked(LockMode::Share, 900), blocked(LockMode::AccessExclusive, 900)];
        let transactions = vec![TransactionTrace { blocked, ..TransactionTrace::default() }];
        let trace = MigrationTrace { transactions, ..MigrationTrace::default() };
        let mut limits = HeldLimits::default();
        for text in ["share=500ms", "access-exclusive=500ms"] {
            limits.set(Limit::parse(text).unwrap());
        }
        let over = exceeded(&trace, &limits);
        assert_eq!(over.len(), 1);
        assert_eq!(over[0].blocked.mode, LockMode::AccessExclusive);
    }
}
