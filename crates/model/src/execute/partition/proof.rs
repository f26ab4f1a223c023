//! Proofs that one condition on a row implies another. A small part of PostgreSQL's `predicate_implied_by`: comparisons
//! of columns with constants, joined by AND, OR and NOT. It claims only what it can prove.
//!
//! Implication is PostgreSQL's weak one, as between CHECKs: where the premise is not false, the conclusion is not.
//!
//! Source: PostgreSQL 18, `src/backend/optimizer/util/predtest.c`.

use crate::catalog::Constant;
use pgvet_syntax::ast::{Expr, ExprKind, OperatorForm};
use smol_str::SmolStr;
use std::cmp::Ordering;

/// A condition with its negations pushed down to the leaves.
#[derive(Debug, Clone)]
pub(crate) enum Predicate {
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    IsNull {
        column: SmolStr,
        negated: bool,
    },
    Compare {
        column: SmolStr,
        comparison: Comparison,
        value: Constant,
    },
    Other {
        expr: Expr,
        negated: bool,
    },
    /// Implies nothing and is implied by nothing.
    Unknown,
}

/// The comparison of a column, on the left, with a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparison {
    fn parse(operator: &str) -> Option<Self> {
        Some(match operator {
            "=" => Self::Equal,
            "<>" | "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterEqual,
            _ => return None,
        })
    }

    fn negated(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterEqual,
            Self::LessEqual => Self::Greater,
            Self::Greater => Self::LessEqual,
            Self::GreaterEqual => Self::Less,
        }
    }

    /// The same comparison with its sides exchanged.
    fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            same => same,
        }
    }

    /// Whether `x self a` implies `x goal b`, where `order` is that of a to b.
    fn implies(self, goal: Self, order: Ordering) -> bool {
        use Ordering::{Equal, Greater, Less};
        match (self, goal) {
            (Self::Equal, Self::Equal) | (Self::NotEqual, Self::NotEqual) => order == Equal,
            (Self::Equal, Self::NotEqual) => order != Equal,
            (Self::Equal, Self::Less) => order == Less,
            (Self::Equal, Self::LessEqual) => order != Greater,
            (Self::Equal, Self::Greater) => order == Greater,
            (Self::Equal, Self::GreaterEqual) => order != Less,
            (Self::Greater, Self::Greater | Self::GreaterEqual | Self::NotEqual) => order != Less,
            (Self::GreaterEqual, Self::GreaterEqual) => order != Less,
            (Self::GreaterEqual, Self::Greater | Self::NotEqual) => order == Greater,
            (Self::Less, Self::Less | Self::LessEqual | Self::NotEqual) => order != Greater,
            (Self::LessEqual, Self::LessEqual) => order != Greater,
            (Self::LessEqual, Self::Less | Self::NotEqual) => order == Less,
            _ => false,
        }
    }
}

impl Predicate {
    pub(crate) fn of(expr: &Expr) -> Self {
        let all = |list: &[Expr]| list.iter().map(Self::of).collect();
        match &expr.kind {
            ExprKind::And(list) => Self::And(all(list)),
            ExprKind::Or(list) => Self::Or(all(list)),
            ExprKind::Not(operand) => Self::of(operand).negated(),
            ExprKind::IsNull { operand, negated } => match column(operand) {
                Some(column) => Self::IsNull { column: column.clone(), negated: *negated },
                None => Self::Other { expr: expr.clone(), negated: false },
            },
            ExprKind::Operator { operator, form, operands, .. } => Self::of_operator(operator, *form, operands)
                .unwrap_or_else(|| Self::Other { expr: expr.clone(), negated: false }),
            _ => Self::Other { expr: expr.clone(), negated: false },
        }
    }

    fn of_operator(operator: &str, form: OperatorForm, operands: &[Expr]) -> Option<Self> {
        let compare = |left: &Expr, comparison: Comparison, right: &Expr| match (column(left), column(right)) {
            (Some(column), None) => Some(Self::compare(column, comparison, Constant::of(right))),
            (None, Some(column)) => Some(Self::compare(column, comparison.mirrored(), Constant::of(left))),
            _ => None,
        };
        match (form, operands) {
            (OperatorForm::Plain, [left, right]) => compare(left, Comparison::parse(operator)?, right),
            (OperatorForm::In, [test, values @ ..]) => {
                let comparison = Comparison::parse(operator)?;
                let parts = values.iter().map(|value| compare(test, comparison, value)).collect::<Option<Vec<_>>>()?;
                Some(if comparison == Comparison::Equal { Self::Or(parts) } else { Self::And(parts) })
            }
            (OperatorForm::AnyArray, [test, array]) => {
                let ExprKind::Array(values) = &array.kind else { return None };
                let comparison = Comparison::parse(operator)?;
                values.iter().map(|value| compare(test, comparison, value)).collect::<Option<Vec<_>>>().map(Self::Or)
            }
            (OperatorForm::Between | OperatorForm::NotBetween, [test, low, high]) => {
                let low = compare(test, Comparison::GreaterEqual, low)?;
                let between = Self::And(vec![low, compare(test, Comparison::LessEqual, high)?]);
                Some(if form == OperatorForm::Between { between } else { between.negated() })
            }
            _ => None,
        }
    }

    pub(crate) fn not_null(column: &SmolStr) -> Self {
        Self::IsNull { column: column.clone(), negated: true }
    }

    pub(crate) fn compare(column: &SmolStr, comparison: Comparison, value: Constant) -> Self {
        match value {
            Constant::Other => Self::Unknown,
            value => Self::Compare { column: column.clone(), comparison, value },
        }
    }

    pub(crate) fn negated(self) -> Self {
        let all = |list: Vec<Self>| list.into_iter().map(Self::negated).collect();
        match self {
            Self::And(list) => Self::Or(all(list)),
            Self::Or(list) => Self::And(all(list)),
            Self::IsNull { column, negated } => Self::IsNull { column, negated: !negated },
            Self::Compare { column, comparison, value } => {
                Self::Compare { column, comparison: comparison.negated(), value }
            }
            Self::Other { expr, negated } => Self::Other { expr, negated: !negated },
            Self::Unknown => Self::Unknown,
        }
    }

    pub(crate) fn implies(&self, goal: &Self) -> bool {
        match (self, goal) {
            (_, Self::And(goals)) => goals.iter().all(|goal| self.implies(goal)),
            (Self::Or(arms), _) => arms.iter().all(|arm| arm.implies(goal)),
            (Self::And(parts), _) if parts.iter().any(|part| part.implies(goal)) => true,
            (_, Self::Or(goals)) => goals.iter().any(|goal| self.implies(goal)),
            (Self::IsNull { column, negated }, Self::IsNull { column: theirs, negated: their_negated }) => {
                (column, negated) == (theirs, their_negated)
            }
            (
                Self::Compare { column, comparison, value },
                Self::Compare { column: theirs, comparison: goal, value: bound },
            ) => column == theirs && value.order(bound).is_some_and(|order| comparison.implies(*goal, order)),
            (Self::Other { expr, negated }, Self::Other { expr: theirs, negated: their_negated }) => {
                negated == their_negated && expr.is_same(theirs)
            }
            _ => false,
        }
    }
}

/// The last part of a column's name, or of a cast of it.
fn column(expr: &Expr) -> Option<&SmolStr> {
    match &expr.kind {
        ExprKind::Column(parts) => parts.last(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(from: i64, to: i64) -> Predicate {
        let column = SmolStr::new("k");
        Predicate::And(vec![
            Predicate::compare(&column, Comparison::GreaterEqual, Constant::Integer(from)),
            Predicate::compare(&column, Comparison::Less, Constant::Integer(to)),
        ])
    }

    #[test]
    fn a_narrower_range_implies_a_wider_one() {
        assert!(between(10, 20).implies(&between(0, 20)));
        assert!(!between(0, 20).implies(&between(10, 20)));
    }

    #[test]
    fn a_disjoint_range_implies_the_negation() {
        let below = Predicate::compare(&"k".into(), Comparison::Less, Constant::Integer(10));
        let above = Predicate::compare(&"k".into(), Comparison::GreaterEqual, Constant::Integer(20));
        assert!(Predicate::Or(vec![below.clone(), above]).implies(&between(10, 20).negated()));
        assert!(!Predicate::Or(vec![below]).implies(&between(5, 20).negated()));
    }

    #[test]
    fn a_comparison_does_not_imply_not_null() {
        assert!(!between(10, 20).implies(&Predicate::not_null(&"k".into())));
    }
}
