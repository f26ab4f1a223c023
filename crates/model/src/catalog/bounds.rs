//! The bounds of the partitions of a table, sorted: which of them can be in the way of a new one.

use super::constant::Constant;
use super::{Catalog, HashMap, Oid};
use imbl::{OrdMap, OrdSet};
use pgvet_syntax::ast::{Expr, ExprKind, Literal, PartitionBound};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::sync::Arc;

/// The end of a range in one key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Point {
    Minimum,
    At(Constant),
    Maximum,
}

impl Point {
    pub fn of(value: &Expr) -> Self {
        match value.as_column() {
            Some(word) if word.eq_ignore_ascii_case("minvalue") => Self::Minimum,
            Some(word) if word.eq_ignore_ascii_case("maxvalue") => Self::Maximum,
            _ => Self::At(Constant::of(value)),
        }
    }

    /// The order of two ends, `None` where it is not known.
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::At(ours), Self::At(theirs)) => ours.order(theirs),
            (ours, theirs) => Some(ours.cmp(theirs)),
        }
    }
}

/// The end of a range, up to the first MINVALUE or MAXVALUE: what follows does not count.
type End = Vec<Point>;

/// The constants of a key that have an order among themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Sort {
    Integer,
    Date,
}

/// A value of a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Value {
    Null,
    Constant(Constant),
}

/// The bounds of the partitions of a table.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Bounds {
    default: Option<Oid>,
    lists: HashMap<Value, Oid>,
    /// By modulus and remainder.
    hashes: OrdMap<(u32, u32), Oid>,
    /// By their beginning. They are apart from each other, because one that is not is refused.
    ranges: OrdMap<End, (End, Oid)>,
    /// The sort of constants of each key in `ranges`, as far as there are any.
    sorts: Vec<Option<Sort>>,
    /// The partitions whose ranges cannot be sorted.
    unsorted: OrdSet<Oid>,
}

impl Bounds {
    /// The DEFAULT partition.
    pub fn default_partition(&self) -> Option<Oid> {
        self.default
    }

    /// The partitions whose bounds may overlap with this one, in the order of their creation; `None`: each of them.
    pub fn near(&self, bound: &PartitionBound) -> Option<Vec<Oid>> {
        let mut found: Vec<Oid> = match bound {
            PartitionBound::Default => Vec::new(),
            PartitionBound::List(values) => {
                values.iter().filter_map(value).filter_map(|value| self.lists.get(&value)).copied().collect()
            }
            PartitionBound::Hash { modulus, remainder } => self.hashes_near(*modulus, *remainder),
            PartitionBound::Range { from, to } => {
                self.sorts_with(from, to)?;
                let (from, to) = (end(from), end(to));
                let before = self.ranges.range(..=from.clone()).next_back();
                let after = self.ranges.range(from..).take_while(|(begin, _)| **begin < to);
                before.into_iter().chain(after).map(|(_, (_, oid))| *oid).chain(self.unsorted.iter().copied()).collect()
            }
        };
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    /// Remainders of a larger modulus are divided by the smaller one.
    fn hashes_near(&self, modulus: u32, remainder: u32) -> Vec<Oid> {
        let smaller = self.moduli().filter(|other| *other > 0 && *other <= modulus);
        let of_smaller = smaller.filter_map(|other| self.hashes.get(&(other, remainder % other)));
        let of_larger = self
            .hashes
            .range((modulus.saturating_add(1), 0)..)
            .filter(|((_, theirs), _)| modulus > 0 && theirs % modulus == remainder % modulus);
        of_smaller.chain(of_larger.map(|(_, oid)| oid)).copied().collect()
    }

    fn moduli(&self) -> impl Iterator<Item = u32> {
        let next = |from: (u32, u32)| self.hashes.range(from..).next().map(|((modulus, _), _)| *modulus);
        std::iter::successors(next((0, 0)), move |modulus| next((modulus.checked_add(1)?, 0)))
    }

    fn insert(&mut self, partition: Oid, bound: &PartitionBound) {
        match bound {
            PartitionBound::Default => self.default = Some(partition),
            PartitionBound::List(values) => values.iter().filter_map(value).for_each(|value| {
                self.lists.insert(value, partition);
            }),
            PartitionBound::Hash { modulus, remainder } => {
                self.hashes.insert((*modulus, *remainder), partition);
            }
            PartitionBound::Range { from, to } => match self.sorts_with(from, to) {
                Some(sorts) => {
                    self.sorts = sorts;
                    self.ranges.insert(end(from), (end(to), partition));
                }
                None => drop(self.unsorted.insert(partition)),
            },
        }
    }

    fn remove(&mut self, partition: Oid, bound: &PartitionBound) {
        match bound {
            PartitionBound::Default => self.default = None,
            PartitionBound::List(values) => values.iter().filter_map(value).for_each(|value| {
                self.lists.remove(&value);
            }),
            PartitionBound::Hash { modulus, remainder } => {
                self.hashes.remove(&(*modulus, *remainder));
            }
            PartitionBound::Range { from, .. } => {
                if self.unsorted.remove(&partition).is_none() {
                    self.ranges.remove(&end(from));
                }
            }
        }
    }

    /// The sorts of constants in each key with those of one range more; `None` if they have no order among themselves.
    fn sorts_with(&self, from: &[Expr], to: &[Expr]) -> Option<Vec<Option<Sort>>> {
        let mut sorts = self.sorts.clone();
        sorts.resize(sorts.len().max(from.len()).max(to.len()), None);
        for (key, value) in from.iter().enumerate().chain(to.iter().enumerate()) {
            let sort = match Point::of(value) {
                Point::Minimum | Point::Maximum => continue,
                Point::At(Constant::Integer(_)) => Sort::Integer,
                Point::At(Constant::Date(_)) => Sort::Date,
                Point::At(_) => return None,
            };
            if *sorts[key].get_or_insert(sort) != sort {
                return None;
            }
        }
        Some(sorts)
    }
}

/// A value of a list, `None` where it is not known to be equal to any.
fn value(expr: &Expr) -> Option<Value> {
    match (&expr.kind, Constant::of(expr)) {
        (ExprKind::Literal(Literal::Null), _) => Some(Value::Null),
        (_, Constant::Other) => None,
        (_, constant) => Some(Value::Constant(constant)),
    }
}

fn end(values: &[Expr]) -> End {
    let mut end: End = values.iter().map(Point::of).collect();
    let unlimited = end.iter().position(|point| !matches!(point, Point::At(_)));
    end.truncate(unlimited.map_or(end.len(), |at| at + 1));
    end
}

impl Catalog {
    pub fn add_child(&mut self, parent: Oid, child: Oid) {
        self.relation_mut(parent).children.insert(child);
    }

    /// Removes a child from those of its parent, with the bound that it may have there.
    pub fn remove_child(&mut self, parent: Oid, child: Oid) {
        let bound = self.get_relation(child).and_then(|child| child.partition_bound.clone());
        let parent = self.relation_mut(parent);
        let was_child = parent.children.remove(&child).is_some();
        if let Some(bound) = bound.filter(|_| was_child) {
            parent.bounds.remove(child, &bound);
        }
    }

    /// Gives a child of a table its bound as a partition; that it fits is the caller's business.
    pub fn set_partition_bound(&mut self, parent: Oid, child: Oid, bound: &PartitionBound) {
        self.relation_mut(child).partition_bound = Some(Arc::new(bound.clone()));
        self.relation_mut(parent).bounds.insert(child, bound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_syntax::ast::Ast;
    use pgvet_syntax::ast::from_pg::parse_sql;

    fn bound(text: &str) -> PartitionBound {
        let statement = parse_sql(&format!("CREATE TABLE c PARTITION OF p {text}")).unwrap().remove(0);
        let Ast::CreateTable(create) = &statement else { panic!("{text}") };
        create.partition_of.clone().unwrap().1
    }

    /// The numbers of those of the bounds that may overlap with the new one.
    fn near(bounds: &[&str], new: &str) -> Option<Vec<u32>> {
        let mut sorted = Bounds::default();
        for (at, text) in (0..).zip(bounds) {
            sorted.insert(Oid(at), &bound(text));
        }
        sorted.near(&bound(new)).map(|found| found.iter().map(|oid| oid.0).collect())
    }

    #[test]
    fn only_neighbours_can_overlap() {
        let tens: Vec<String> =
            (0..20).map(|at| format!("FOR VALUES FROM ({}) TO ({})", at * 10, at * 10 + 10)).collect();
        let tens: Vec<&str> = tens.iter().map(String::as_str).collect();
        assert_eq!(near(&tens, "FOR VALUES FROM (200) TO (300)"), Some(vec![19]));
        assert_eq!(near(&tens, "FOR VALUES FROM (95) TO (115)"), Some(vec![9, 10, 11]));
        assert_eq!(near(&tens, "FOR VALUES FROM (MINVALUE) TO (MAXVALUE)").unwrap().len(), 20);
        assert_eq!(near(&tens, "FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')"), None, "no order among these");
        assert_eq!(near(&["FOR VALUES FROM ('a') TO ('b')"], "FOR VALUES FROM (1) TO (2)"), Some(vec![0]));
    }

    #[test]
    fn what_follows_minvalue_does_not_count() {
        let known = ["FOR VALUES FROM (1, MINVALUE) TO (2, MINVALUE)", "FOR VALUES FROM (2, 5) TO (3, 5)"];
        assert_eq!(near(&known, "FOR VALUES FROM (1, 7) TO (1, 8)"), Some(vec![0]));
        assert_eq!(near(&known, "FOR VALUES FROM (2, 0) TO (2, 5)"), Some(vec![0]));
        assert_eq!(near(&known, "FOR VALUES FROM (2, 0) TO (2, 6)"), Some(vec![0, 1]));
    }

    #[test]
    fn lists_and_hashes_meet_in_their_values() {
        let lists = ["FOR VALUES IN (1, 2)", "FOR VALUES IN (NULL)", "FOR VALUES IN ('2024-01-31')", "DEFAULT"];
        assert_eq!(near(&lists, "FOR VALUES IN (2, 3)"), Some(vec![0]));
        assert_eq!(near(&lists, "FOR VALUES IN ('2024-01-31 00:00:00', NULL)"), Some(vec![1, 2]));
        assert_eq!(near(&lists, "FOR VALUES IN ('2')"), Some(vec![]));
        let hash = |modulus, remainder| format!("FOR VALUES WITH (MODULUS {modulus}, REMAINDER {remainder})");
        let (four, eight) = (hash(4, 1), hash(8, 3));
        let hashes = [four.as_str(), eight.as_str()];
        assert_eq!(near(&hashes, &hash(8, 5)), Some(vec![0]));
        assert_eq!(near(&hashes, &hash(4, 3)), Some(vec![1]));
        assert_eq!(near(&hashes, &hash(2, 1)), Some(vec![0, 1]));
        assert_eq!(near(&hashes, &hash(8, 7)), Some(vec![]));
    }

    #[test]
    fn what_is_removed_is_not_near() {
        let mut bounds = Bounds::default();
        for (at, text) in (0..).zip(["FOR VALUES FROM (1) TO (2)", "FOR VALUES FROM ('a') TO ('b')", "DEFAULT"]) {
            bounds.insert(Oid(at), &bound(text));
        }
        assert_eq!(bounds.default_partition(), Some(Oid(2)));
        for (at, text) in (0..).zip(["FOR VALUES FROM (1) TO (2)", "FOR VALUES FROM ('a') TO ('b')", "DEFAULT"]) {
            bounds.remove(Oid(at), &bound(text));
        }
        assert_eq!(bounds.default_partition(), None);
        assert_eq!(bounds.near(&bound("FOR VALUES FROM (1) TO (2)")), Some(vec![]));
    }
}
