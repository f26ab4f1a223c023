//! Tables that cannot hold more than one row.

use super::{Catalog, ConstraintKind, Index, Relation};
use pgvet_syntax::ast::{BooleanTest, Expr, ExprKind, Literal, OperatorForm};
use smol_str::SmolStr;
use std::sync::Arc;

impl Catalog {
    /// Whether the table can hold at most one row, because the key of a unique index is always the same constant.
    /// Tables of settings and of positions are often created this way: `lock char(1) NOT NULL DEFAULT 'X' UNIQUE CHECK
    /// (lock = 'X')`, or `CREATE UNIQUE INDEX ON site ((true))`.
    ///
    /// Rows of tables that inherit from it are rows of it as well, and indexes do not see them.
    pub fn has_one_row(&self, table: &Relation) -> bool {
        if !table.children.is_empty() {
            return false;
        }
        let constant = table.constraints.iter().filter(|constraint| constraint.holds());
        let mut constant = constant.filter_map(|constraint| match &constraint.kind {
            ConstraintKind::Check { expression, .. } => constant_column(expression),
            _ => None,
        });
        let is_filled = |name: &SmolStr| table.column(name).is_some_and(|column| column.not_null);
        let is_same = |key: &Expr| match &key.kind {
            // Of a column that is never null it is always true.
            ExprKind::IsNull { operand, .. } => column_of(operand).is_some_and(is_filled),
            _ => is_constant(key),
        };
        constant.any(|name| is_filled(name) && self.is_unique(table, name))
            || self.unique_indexes(table).any(|index| index.elements.iter().all(|element| is_same(&element.key)))
    }

    fn is_unique(&self, table: &Relation, column: &SmolStr) -> bool {
        self.unique_indexes(table)
            .any(|index| matches!(index.plain_columns().as_deref(), Some([only]) if only == column))
    }

    /// The unique indexes that all rows are in.
    pub(crate) fn unique_indexes<'a>(&'a self, table: &'a Relation) -> impl Iterator<Item = &'a Arc<Index>> {
        let indexes = table.unique_indexes.iter().filter_map(|oid| self.relation(*oid).index());
        indexes.filter(|index| index.valid && index.predicate.is_none())
    }
}

/// The column of `column = constant`, or of a condition that is just a boolean column.
fn constant_column(condition: &Expr) -> Option<&SmolStr> {
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

/// NULL is none: a CHECK that compares with it holds for every row.
pub(super) fn is_constant(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(literal) => !matches!(literal, Literal::Null),
        ExprKind::Cast { operand, .. } => is_constant(operand),
        _ => false,
    }
}

pub(super) fn column_of(expr: &Expr) -> Option<&SmolStr> {
    match &expr.kind {
        ExprKind::Column(path) => path.last(),
        _ => None,
    }
}
