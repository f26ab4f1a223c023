//! Checks that the bound of a new partition fits its parent and the existing partitions.
//!
//! Source: PostgreSQL 18, `src/backend/parser/parse_utilcmd.c`, `transformPartitionBound`;
//! `src/backend/partitioning/partbounds.c`, `check_new_partition_bound`.

use crate::catalog::{Constant, Oid, Point};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{Expr, ExprKind, Literal, PartitionBound, PartitionStrategy};
use pgvet_syntax::source::TextRange;
use std::cmp::Ordering;

impl Executor<'_> {
    /// Refuses what certainly does not fit; values that it cannot compare are assumed to be apart.
    pub(super) fn check_bound(&self, parent: Oid, bound: &PartitionBound, range: TextRange) -> Run {
        let relation = self.catalog.relation(parent);
        let Some(key) = &relation.partition_by else { return Ok(()) };
        if let Err(reason) = fits(bound, key.strategy, key.keys.len()) {
            return fail("42P16", reason, range);
        }
        if is_empty(bound) {
            return fail("42P17", "empty range bound specified for the partition", range);
        }
        let near = relation.bounds.near(bound).unwrap_or_else(|| relation.children.iter().copied().collect());
        for sibling in near.iter().filter_map(|child| self.catalog.get_relation(*child)) {
            if sibling.partition_bound.as_deref().is_some_and(|theirs| overlap(bound, theirs)) {
                return fail("42P17", format!("the partition would overlap partition \"{}\"", sibling.name), range);
            }
        }
        Ok(())
    }
}

/// Whether the bound is of the kind that the partition key requires.
fn fits(bound: &PartitionBound, strategy: PartitionStrategy, keys: usize) -> Result<(), &'static str> {
    match (bound, strategy) {
        (PartitionBound::Default, PartitionStrategy::Hash) => {
            Err("a hash-partitioned table may not have a default partition")
        }
        (PartitionBound::Range { from, to }, PartitionStrategy::Range) if from.len() != keys || to.len() != keys => {
            Err("FROM and TO must specify exactly one value per partitioning column")
        }
        (PartitionBound::Hash { modulus, remainder }, PartitionStrategy::Hash) if remainder >= modulus => {
            Err("remainder for hash partition must be less than modulus")
        }
        (PartitionBound::Default, _)
        | (PartitionBound::Range { .. }, PartitionStrategy::Range)
        | (PartitionBound::List(_), PartitionStrategy::List)
        | (PartitionBound::Hash { .. }, PartitionStrategy::Hash) => Ok(()),
        _ => Err("invalid bound specification for the partition"),
    }
}

/// The order of two ends of ranges, key by key; what follows MINVALUE or MAXVALUE does not count.
///
/// Source: PostgreSQL 18, `src/backend/partitioning/partbounds.c`, `partition_rbound_cmp`.
fn order(ours: &[Expr], theirs: &[Expr]) -> Option<Ordering> {
    for (our, their) in ours.iter().zip(theirs) {
        let (our, their) = (Point::of(our), Point::of(their));
        let order = our.order(&their)?;
        if order != Ordering::Equal || !matches!(our, Point::At(_)) {
            return Some(order);
        }
    }
    Some(Ordering::Equal)
}

fn is_empty(bound: &PartitionBound) -> bool {
    let PartitionBound::Range { from, to } = bound else { return false };
    order(from, to).is_some_and(|order| order != Ordering::Less)
}

/// Whether the first range certainly begins before the second one ends. Neither is empty: it also does if it does not
/// begin after the second, or end after it.
fn begins_before_end(one: (&[Expr], &[Expr]), other: (&[Expr], &[Expr])) -> bool {
    let at_most = |one, other| order(one, other).is_some_and(Ordering::is_le);
    order(one.0, other.1) == Some(Ordering::Less) || at_most(one.0, other.0) || at_most(one.1, other.1)
}

fn overlap(ours: &PartitionBound, theirs: &PartitionBound) -> bool {
    match (ours, theirs) {
        (PartitionBound::List(ours), PartitionBound::List(theirs)) => {
            ours.iter().any(|value| theirs.iter().any(|other| same_value(value, other)))
        }
        (PartitionBound::Range { from, to }, PartitionBound::Range { from: their_from, to: their_to }) => {
            let (ours, theirs) = ((&from[..], &to[..]), (&their_from[..], &their_to[..]));
            begins_before_end(ours, theirs) && begins_before_end(theirs, ours)
        }
        (
            PartitionBound::Hash { modulus, remainder },
            PartitionBound::Hash { modulus: their_modulus, remainder: their_remainder },
        ) => {
            let smaller = *modulus.min(their_modulus);
            smaller > 0 && remainder % smaller == their_remainder % smaller
        }
        _ => false,
    }
}

fn same_value(ours: &Expr, theirs: &Expr) -> bool {
    let is_null = |value: &Expr| matches!(value.kind, ExprKind::Literal(Literal::Null));
    if is_null(ours) || is_null(theirs) {
        return is_null(ours) && is_null(theirs);
    }
    Constant::of(ours).order(&Constant::of(theirs)) == Some(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use crate::execute::testing::{effects_on, summary};

    #[test]
    fn bounds_that_do_not_fit_are_refused() {
        let history = "CREATE TABLE p (k int) PARTITION BY RANGE (k);
            CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); CREATE TABLE l (k text) PARTITION BY LIST (k);
            CREATE TABLE l1 PARTITION OF l FOR VALUES IN ('a', NULL);
            CREATE TABLE w (k text, l int) PARTITION BY RANGE (k, l);
            CREATE TABLE w1 PARTITION OF w FOR VALUES FROM ('a', 1) TO ('m', 5);";
        for (bound, sqlstate) in [
            ("p FOR VALUES FROM (9) TO (20)", Some("42P17")),
            ("p FOR VALUES FROM (MINVALUE) TO (1)", Some("42P17")),
            ("p FOR VALUES FROM (20) TO (20)", Some("42P17")),
            ("p FOR VALUES IN (1)", Some("42P16")),
            ("p FOR VALUES FROM (10) TO (MAXVALUE)", None),
            ("l FOR VALUES IN ('b', 'a')", Some("42P17")),
            ("l FOR VALUES IN (NULL)", Some("42P17")),
            ("l FOR VALUES IN ('b')", None),
            ("w FOR VALUES FROM ('a', 1) TO ('b', 1)", Some("42P17")),
            ("w FOR VALUES FROM (MINVALUE, 7) TO ('m', 5)", Some("42P17")),
            ("w FOR VALUES FROM ('m', 4) TO ('m', 6)", Some("42P17")),
            ("w FOR VALUES FROM ('m', 5) TO ('m', MAXVALUE)", None),
            ("w FOR VALUES FROM ('m', 6) TO ('m', 5)", Some("42P17")),
            ("w FOR VALUES FROM (MINVALUE, 1) TO ('a', 1)", None),
        ] {
            let effects = effects_on(17, history, &format!("CREATE TABLE n PARTITION OF {bound}"));
            let failed = sqlstate.map(|sqlstate| format!("fails {sqlstate}"));
            let found = summary(&effects).into_iter().find(|line| line.starts_with("fails"));
            assert_eq!(found, failed, "{bound}");
        }
    }
}
