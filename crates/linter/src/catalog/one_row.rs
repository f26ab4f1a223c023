//! Tables that cannot hold more than one row.

use super::{Catalog, ConstraintKind, Relation};
use crate::ast::{BooleanTest, Expr, ExprKind, OperatorForm};
use smol_str::SmolStr;

impl Catalog {
    /// Can the table hold one row at most, because a column with a unique index is always the same constant? Tables of
    /// settings and of positions are made so: `lock char(1) NOT NULL DEFAULT 'X' UNIQUE CHECK (lock = 'X')`.
    pub fn has_one_row(&self, table: &Relation) -> bool {
        let constant = table.constraints.iter().filter(|constraint| constraint.valid && constraint.enforced);
        let mut constant = constant.filter_map(|constraint| match &constraint.kind {
            ConstraintKind::Check { expression, .. } => constant_column(expression),
            _ => None,
        });
        constant.any(|name| table.column(name).is_some_and(|column| column.not_null) && self.is_unique(table, name))
    }

    fn is_unique(&self, table: &Relation, column: &SmolStr) -> bool {
        let indexes = table.indexes.iter().filter_map(|oid| self.relation(*oid).index());
        indexes
            .filter(|index| index.unique && index.valid && index.predicate.is_none())
            .any(|index| matches!(index.plain_columns().as_deref(), Some([only]) if only == column))
    }
}

/// The column of `column = constant`, or of a condition that is just a boolean column.
fn constant_column(condition: &Expr) -> Option<&SmolStr> {
    let is_constant = |expr: &Expr| match &expr.kind {
        ExprKind::Literal(_) => true,
        ExprKind::Cast { operand, .. } => matches!(operand.kind, ExprKind::Literal(_)),
        _ => false,
    };
    match &condition.kind {
        ExprKind::Column(path) => path.last(),
        ExprKind::Operator { operator, form: OperatorForm::Plain, operands, .. } if operator == "=" => {
            match operands.as_slice() {
                [left, right] if is_constant(right) => column_of(left),
                [left, right] if is_constant(left) => column_of(right),
                _ => None,
            }
        }
        // A column that is not null, and true or false.
        ExprKind::BooleanTest { operand, test: BooleanTest::True | BooleanTest::False } => column_of(operand),
        _ => None,
    }
}

fn column_of(expr: &Expr) -> Option<&SmolStr> {
    match &expr.kind {
        ExprKind::Column(path) => path.last(),
        _ => None,
    }
}
