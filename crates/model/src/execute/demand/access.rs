//! Whether an index finds the rows that do not meet a demand.

use crate::builtin::oid;
use crate::catalog::{Catalog, ConstraintKind, Relation};
use crate::effect::{Access, Conversion, Demand, PartitionRows, RowDemand, Using};
use crate::execute::Executor;
use pgvet_syntax::ast::{Expr, ExprKind, OperatorForm};
use smol_str::SmolStr;

impl Executor<'_> {
    /// Returns how the query finds the rows, with the indexes that the table has before the statement.
    pub(super) fn access(&self, demand: &RowDemand, before: &Catalog) -> Access {
        let column = match &demand.demand {
            Demand::NoRows { .. } | Demand::OneRow { .. } => return Access::FirstRows,
            Demand::NotNull { column } => Some(column.clone()),
            Demand::Check { constraint, .. } => self.compared_column(demand, constraint),
            Demand::Bound(rows) | Demand::DefaultPartition(rows) => self.single_key(rows),
            Demand::Type(conversion) if is_narrower_integer(conversion) => Some(conversion.column.clone()),
            _ => None,
        };
        let relation = before.get_relation(demand.relation.oid);
        let index = column.zip(relation).and_then(|(column, relation)| index_on(before, relation, &column));
        index.map_or(Access::Table, |index| Access::Index { index })
    }

    /// The column that a CHECK compares with a constant: the planner negates the operator.
    ///
    /// Source: PostgreSQL 18, `src/backend/optimizer/prep/prepqual.c`, `negate_clause`.
    fn compared_column(&self, demand: &RowDemand, constraint: &str) -> Option<SmolStr> {
        let relation = self.catalog.get_relation(demand.relation.oid)?;
        let ConstraintKind::Check { expression, .. } = &relation.constraint(constraint)?.kind else { return None };
        match &expression.kind {
            ExprKind::Operator { schema: None, operator, form: OperatorForm::Plain, operands } => {
                let is_ordered = matches!(operator.as_str(), "<" | "<=" | ">" | ">=" | "<>");
                let is_constant = |operand: &Expr| matches!(operand.kind, ExprKind::Literal(_));
                match operands.as_slice() {
                    [left, right] if is_ordered && is_constant(right) => left.as_column().cloned(),
                    [left, right] if is_ordered && is_constant(left) => right.as_column().cloned(),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn single_key(&self, rows: &PartitionRows) -> Option<SmolStr> {
        match self.catalog.get_relation(rows.parent)?.partition_by.as_ref()?.keys.as_slice() {
            [key] => key.as_column().cloned(),
            _ => None,
        }
    }
}

/// A change that asks whether the column itself is between two numbers.
fn is_narrower_integer(conversion: &Conversion) -> bool {
    let is_integer = |oid: u32| matches!(oid, oid::INT2 | oid::INT4 | oid::INT8);
    is_integer(conversion.from.oid.0) && is_integer(conversion.to.oid.0) && conversion.using != Using::Computed
}

/// The index that finds rows by a column.
fn index_on(catalog: &Catalog, relation: &Relation, column: &str) -> Option<SmolStr> {
    let indexes = relation.indexes.iter().filter_map(|oid| catalog.get_relation(*oid));
    let mut usable = indexes.filter(|built| {
        built.index().is_some_and(|index| {
            let leading = index.elements.first().and_then(|part| part.key.as_column());
            index.valid
                && index.method == "btree"
                && index.predicate.is_none()
                && leading.is_some_and(|name| name == column)
        })
    });
    usable.next().map(|built| built.name.clone())
}
