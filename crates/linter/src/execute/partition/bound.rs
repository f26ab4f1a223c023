//! What the bound of a partition demands of its rows, and whether they must be read to know that they obey.

use super::Executor;
use super::proof::{Comparison, Predicate, Value};
use crate::ast::{Expr, ExprKind, PartitionBound};
use crate::catalog::{ConstraintKind, Oid};
use crate::effect::{LockCause, LockMode, RelationKind, ScanCause};
use crate::source::TextRange;
use smol_str::SmolStr;

impl Executor<'_> {
    /// The constraint that a bound puts on a partition, with those of the parent's own bounds. `None`: no row can break
    /// it.
    ///
    /// Source: PostgreSQL 18, `src/backend/partitioning/partbounds.c`, `get_qual_from_partbound`.
    pub(super) fn partition_constraint(&self, parent: Oid, bound: &PartitionBound) -> Option<Predicate> {
        let own = match bound {
            PartitionBound::Default => self.others_constraint(parent).map(Predicate::negated),
            _ => Some(self.bound_predicate(parent, bound)),
        };
        let relation = self.catalog.relation(parent);
        let above = match (&relation.partition_bound, relation.parents.first()) {
            (Some(bound), Some(grandparent)) => self.partition_constraint(*grandparent, bound),
            _ => None,
        };
        match (own, above) {
            (Some(own), Some(above)) => Some(Predicate::And(vec![own, above])),
            (own, above) => own.or(above),
        }
    }

    /// What the rows of all partitions but the DEFAULT obey.
    fn others_constraint(&self, parent: Oid) -> Option<Predicate> {
        let relation = self.catalog.relation(parent);
        if !relation.known {
            return Some(Predicate::Unknown);
        }
        let bounds: Vec<_> = relation
            .children
            .iter()
            .filter_map(|child| self.catalog.relation(*child).partition_bound.as_deref())
            .filter(|bound| **bound != PartitionBound::Default)
            .map(|bound| self.bound_predicate(parent, bound))
            .collect();
        (!bounds.is_empty()).then_some(Predicate::Or(bounds))
    }

    fn bound_predicate(&self, parent: Oid, bound: &PartitionBound) -> Predicate {
        let relation = self.catalog.relation(parent);
        let keys = relation.partition_by.as_ref().map_or(&[][..], |by| by.keys.as_slice());
        let [key] = keys else { return Predicate::Unknown };
        let Some(column) = key.as_column() else { return Predicate::Unknown };
        match bound {
            PartitionBound::List(values) => list_predicate(column, values),
            PartitionBound::Range { from, to } => range_predicate(column, from, to),
            PartitionBound::Hash { .. } | PartitionBound::Default => Predicate::Unknown,
        }
    }

    /// Reads a table and its partitions, where their CHECKs and NOT NULLs do not imply the constraint.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `QueuePartitionConstraintValidation`.
    pub(super) fn verify_bound(
        &mut self,
        table: Oid,
        constraint: Option<&Predicate>,
        cause: &ScanCause,
        range: TextRange,
    ) {
        let Some(constraint) = constraint else { return };
        if self.is_implied(table, constraint) {
            return;
        }
        match self.catalog.relation(table).kind {
            RelationKind::Table => self.scan(table, cause.clone(), range),
            RelationKind::PartitionedTable => {
                for partition in self.catalog.relation(table).children.clone() {
                    self.lock(partition, LockMode::AccessExclusive, LockCause::Child, range);
                    self.verify_bound(partition, Some(constraint), cause, range);
                }
            }
            _ => {}
        }
    }

    /// Checks that no row of the DEFAULT partition belongs to the new one.
    ///
    /// Source: PostgreSQL 18, `src/backend/partitioning/partbounds.c`, `check_default_partition_contents`.
    pub(super) fn verify_default(&mut self, parent: Oid, default: Oid, bound: &PartitionBound, range: TextRange) {
        let constraint = self.bound_predicate(parent, bound).negated();
        self.verify_bound(default, Some(&constraint), &ScanCause::DefaultPartition, range);
    }

    fn is_implied(&self, table: Oid, goal: &Predicate) -> bool {
        let relation = self.catalog.relation(table);
        let not_null =
            relation.columns.iter().filter(|column| column.not_null).map(|column| Predicate::not_null(&column.name));
        let checks =
            relation.constraints.iter().filter(|constraint| constraint.valid && constraint.enforced).filter_map(
                |constraint| match &constraint.kind {
                    ConstraintKind::Check { expression, .. } => Some(Predicate::of(expression)),
                    _ => None,
                },
            );
        Predicate::And(not_null.chain(checks).collect()).implies(goal)
    }
}

fn list_predicate(column: &SmolStr, values: &[Expr]) -> Predicate {
    let is_null = |value: &&Expr| matches!(value.kind, ExprKind::Literal(crate::ast::Literal::Null));
    let equal = values
        .iter()
        .filter(|value| !is_null(value))
        .map(|value| Predicate::compare(column, Comparison::Equal, Value::of(value)))
        .collect();
    if values.iter().any(|value| is_null(&value)) {
        Predicate::Or(vec![Predicate::null(column), Predicate::Or(equal)])
    } else {
        Predicate::And(vec![Predicate::not_null(column), Predicate::Or(equal)])
    }
}

fn range_predicate(column: &SmolStr, from: &[Expr], to: &[Expr]) -> Predicate {
    let mut parts = vec![Predicate::not_null(column)];
    let limits = [(from, "minvalue", Comparison::GreaterEqual), (to, "maxvalue", Comparison::Less)];
    for (values, unlimited, comparison) in limits {
        let [value] = values else { return Predicate::Unknown };
        if !value.as_column().is_some_and(|word| word.eq_ignore_ascii_case(unlimited)) {
            parts.push(Predicate::compare(column, comparison, Value::of(value)));
        }
    }
    Predicate::And(parts)
}
