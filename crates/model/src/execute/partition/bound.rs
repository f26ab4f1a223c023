//! The condition that the bound of a partition puts on its rows, and whether they must be read to check it.

use super::Executor;
use super::proof::Predicate;
use crate::catalog::{Constraint, ConstraintKind, Oid, RelationKind};
use crate::effect::{Demand, LockCause, PartitionRows, ScanCause};
use crate::execute::expressions::columns_of;
use pgvet_syntax::ast::{Expr, ExprKind, LockMode, OperatorForm, PartitionBound};
use pgvet_syntax::source::TextRange;
use std::iter;
use std::sync::Arc;

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

    /// The condition that the rows of all partitions but the DEFAULT meet.
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
        match relation.partition_by.as_ref().map(|by| by.keys.as_slice()) {
            Some([key]) if key.as_column().is_some() => demand(std::slice::from_ref(key), bound)
                .map_or(Predicate::Unknown, |expression| Predicate::of(&expression)),
            _ => Predicate::Unknown,
        }
    }

    /// The CHECK that takes the place of the bounds when a partition becomes a table of its own while others use it.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `DetachAddConstraintIfNeeded`.
    pub(super) fn keep_bound_as_check(&mut self, parent: Oid, partition: Oid) {
        let Some(bound) = self.catalog.relation(partition).partition_bound.clone() else { return };
        let goal = self.partition_constraint(parent, &bound).unwrap_or(Predicate::Unknown);
        let Some(expression) = self.bound_expression(parent, &bound).filter(|_| !self.is_implied(partition, &goal))
        else {
            return;
        };
        let columns = columns_of(&expression);
        let name = self.choose_check_name(partition, &columns);
        let expression = Arc::new(expression);
        for table in iter::once(partition).chain(self.descendants(partition)) {
            let inherited = table != partition;
            let kind = ConstraintKind::Check { expression: Arc::clone(&expression), columns: columns.clone() };
            let constraint = Constraint {
                is_local: !inherited,
                inherited_from: u16::from(inherited),
                ..Constraint::new(name.clone(), kind)
            };
            self.catalog.add_constraint(table, constraint);
        }
    }

    /// The condition of a bound and those above it, as SQL. A parent that is partitioned by hash adds nothing.
    fn bound_expression(&self, parent: Oid, bound: &PartitionBound) -> Option<Expr> {
        let relation = self.catalog.relation(parent);
        let keys = &relation.partition_by.as_ref()?.keys;
        let own = match bound {
            PartitionBound::Default => {
                let children = relation.children.iter().filter_map(|child| self.catalog.get_relation(*child));
                let bounds = children.filter_map(|child| demand(keys, child.partition_bound.as_ref()?));
                expr(ExprKind::Not(Box::new(expr(ExprKind::Or(bounds.collect())))))
            }
            _ => demand(keys, bound)?,
        };
        let grandparent = relation.parents.first().zip(relation.partition_bound.as_ref());
        let above = grandparent.and_then(|(grandparent, bound)| self.bound_expression(*grandparent, bound));
        Some(expr(ExprKind::And(iter::once(own).chain(above).collect())))
    }

    /// Reads a table and its partitions, where their CHECKs and NOT NULLs do not imply the constraint.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `QueuePartitionConstraintValidation`.
    pub(super) fn verify_bound(
        &mut self,
        table: Oid,
        constraint: Option<&Predicate>,
        cause: &ScanCause,
        demand: &Demand,
        range: TextRange,
    ) {
        let Some(constraint) = constraint else { return };
        if self.is_implied(table, constraint) {
            return;
        }
        match self.catalog.relation(table).kind {
            RelationKind::Table => {
                self.demand_of_bound(table, demand, range);
                self.scan(table, cause.clone(), range);
            }
            RelationKind::PartitionedTable => {
                for partition in self.catalog.relation(table).children.clone() {
                    self.lock(partition, LockMode::AccessExclusive, LockCause::Child, range);
                    self.verify_bound(partition, Some(constraint), cause, demand, range);
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
        let condition = self.own_condition(self.catalog.relation(parent), bound);
        let demand = Demand::DefaultPartition(PartitionRows { parent, bound: bound.clone(), condition });
        self.verify_bound(default, Some(&constraint), &ScanCause::DefaultPartition, &demand, range);
    }

    fn is_implied(&self, table: Oid, goal: &Predicate) -> bool {
        let relation = self.catalog.relation(table);
        let not_null =
            relation.columns.iter().filter(|column| column.not_null).map(|column| Predicate::not_null(&column.name));
        let checks = relation.constraints.iter().filter(|constraint| constraint.holds()).filter_map(|constraint| {
            match &constraint.kind {
                ConstraintKind::Check { expression, .. } => Some(Predicate::of(expression)),
                _ => None,
            }
        });
        Predicate::And(not_null.chain(checks).collect()).implies(goal)
    }
}

/// The condition of a bound on the keys, of several keys only that on the first; `None` for hashes and DEFAULT.
fn demand(keys: &[Expr], bound: &PartitionBound) -> Option<Expr> {
    let first = keys.first()?;
    match bound {
        PartitionBound::List(values) => Some(list_demand(first, values)),
        PartitionBound::Range { from, to } => Some(range_demand(keys, from.first()?, to.first()?)),
        PartitionBound::Hash { .. } | PartitionBound::Default => None,
    }
}

fn list_demand(key: &Expr, values: &[Expr]) -> Expr {
    let is_null = |value: &&Expr| matches!(value.kind, ExprKind::Literal(pgvet_syntax::ast::Literal::Null));
    let equal = values.iter().filter(|value| !is_null(value)).map(|value| compare(key, "=", value)).collect();
    let equal = expr(ExprKind::Or(equal));
    if values.iter().any(|value| is_null(&value)) {
        expr(ExprKind::Or(vec![null_test(key, false), equal]))
    } else {
        expr(ExprKind::And(vec![null_test(key, true), equal]))
    }
}

fn range_demand(keys: &[Expr], from: &Expr, to: &Expr) -> Expr {
    let mut parts: Vec<Expr> = keys.iter().map(|key| null_test(key, true)).collect();
    let below = if keys.len() == 1 { "<" } else { "<=" };
    for (value, unlimited, operator) in [(from, "minvalue", ">="), (to, "maxvalue", below)] {
        if !value.as_column().is_some_and(|word| word.eq_ignore_ascii_case(unlimited)) {
            parts.push(compare(&keys[0], operator, value));
        }
    }
    expr(ExprKind::And(parts))
}

fn null_test(key: &Expr, negated: bool) -> Expr {
    expr(ExprKind::IsNull { operand: Box::new(key.clone()), negated })
}

fn compare(key: &Expr, operator: &str, value: &Expr) -> Expr {
    let operands = vec![key.clone(), value.clone()];
    expr(ExprKind::Operator { schema: None, operator: operator.into(), form: OperatorForm::Plain, operands })
}

/// An expression that no file has.
fn expr(kind: ExprKind) -> Expr {
    Expr { kind, range: TextRange::default() }
}
