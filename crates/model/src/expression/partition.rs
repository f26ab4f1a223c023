//! The constraint that a partition's bound puts on its rows.

use crate::catalog::PartitionKey;
use pgvet_syntax::ast::{Expr, ExprKind, OperatorForm, PartitionBound};

/// The constraint of a partition with one key column, as `get_qual_from_partbound` (src/backend/partitioning/partbounds.c)
/// makes it; `None` for several key columns, hash partitions and DEFAULT, whose constraint depends on the others.
///
/// For rows of the DEFAULT partition the constraint of a new partition must hold negated.
pub fn partition_constraint(key: &PartitionKey, bound: &PartitionBound) -> Option<Expr> {
    let [subject] = key.keys.as_slice() else { return None };
    let range = subject.range;
    let expr = |kind| Expr { kind, range };
    let is_null = |negated| expr(ExprKind::IsNull { operand: Box::new(subject.clone()), negated });
    let operator =
        |name: &str, form, operands| expr(ExprKind::Operator { schema: None, operator: name.into(), form, operands });
    match bound {
        PartitionBound::List(values) => {
            let (nulls, values): (Vec<_>, Vec<_>) = values.iter().cloned().partition(is_null_literal);
            let list = operator("=", OperatorForm::In, std::iter::once(subject.clone()).chain(values).collect());
            Some(expr(if nulls.is_empty() {
                ExprKind::And(vec![is_null(true), list])
            } else {
                ExprKind::Or(vec![is_null(false), list])
            }))
        }
        PartitionBound::Range { from, to } => {
            let ([from], [to]) = (from.as_slice(), to.as_slice()) else { return None };
            let mut parts = vec![is_null(true)];
            for (name, value) in [(">=", from), ("<", to)] {
                // MINVALUE and MAXVALUE are no bounds.
                if !matches!(value.kind, ExprKind::Column(_)) {
                    parts.push(operator(name, OperatorForm::Plain, vec![subject.clone(), value.clone()]));
                }
            }
            Some(expr(ExprKind::And(parts)))
        }
        PartitionBound::Default | PartitionBound::Hash { .. } => None,
    }
}

fn is_null_literal(expression: &Expr) -> bool {
    matches!(expression.kind, ExprKind::Literal(pgvet_syntax::ast::Literal::Null))
}
