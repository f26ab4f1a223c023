//! Proofs from valid CHECK constraints, so that a scan can be skipped.
//!
//! `ConstraintImpliedByRelConstraint` (src/backend/commands/tablecmds.c) asks `predicate_implied_by`
//! (src/backend/optimizer/util/predtest.c) for weak implication: where the one is not false, the other is not false.
//! So `a > 0` proves nothing about null, for it is null itself when `a` is. What is not recognized is not proved.

use super::condition::{Comparison, Condition, is_same};
use super::{Analyzer, Scope};
use crate::builtin::oid;
use crate::catalog::SqlType;
use pgvet_syntax::ast::{Expr, ExprKind, Literal, OperatorForm};
use std::cell::Cell;
use std::cmp::Ordering;

/// Whether a valid CHECK proves that the column has no nulls. (SET NOT NULL uses such a proof from PostgreSQL 12 on.)
pub fn check_implies_not_null(check: &Expr, column: &str) -> bool {
    proves_not_null(&Condition::of(check), column)
}

fn proves_not_null(condition: &Condition, column: &str) -> bool {
    match condition {
        Condition::And(items) => items.iter().any(|item| proves_not_null(item, column)),
        Condition::Or(items) => !items.is_empty() && items.iter().all(|item| proves_not_null(item, column)),
        Condition::NullTest { subject, is_null: false } => is_column(subject, column),
        _ => false,
    }
}

fn is_column(expression: &Expr, name: &str) -> bool {
    matches!(&expression.kind, ExprKind::Column(path) if path.last().is_some_and(|column| column == name))
}

impl Analyzer<'_> {
    /// Whether the valid CHECKs of a table, together with its NOT NULL columns, prove a partition constraint.
    /// `scope` is the table. Constants are assumed to be read in one time zone.
    pub fn checks_imply(&self, scope: &Scope, existing: &[&Expr], not_null: &[&str], required: &Expr) -> bool {
        let proof = Proof { analyzer: self, scope, not_null, steps: Cell::new(0) };
        let known: Vec<Condition> = existing.iter().map(|check| Condition::of(check)).collect();
        proof.implies(&Condition::And(known), &Condition::of(required))
    }
}

struct Proof<'a> {
    analyzer: &'a Analyzer<'a>,
    scope: &'a Scope,
    not_null: &'a [&'a str],
    steps: Cell<u32>,
}

/// Maximum number of comparisons of a proof: alternating AND and OR can need exponentially many.
const MAX_STEPS: u32 = 1 << 18;

impl Proof<'_> {
    /// `predicate_implied_by_recurse`. What takes too many steps is not proved.
    fn implies(&self, known: &Condition, wanted: &Condition) -> bool {
        self.steps.update(|steps| steps.saturating_add(1));
        if self.steps.get() > MAX_STEPS {
            return false;
        }
        match (known, wanted) {
            // An OR is tried case by case before the wanted condition is taken apart, as PostgreSQL does.
            (Condition::Or(cases), _) if !matches!(wanted, Condition::And(_)) => {
                cases.iter().all(|case| self.implies(case, wanted))
            }
            (_, Condition::And(parts)) => parts.iter().all(|part| self.implies(known, part)),
            (Condition::And(items), Condition::Or(parts)) => {
                parts.iter().any(|part| self.implies(known, part))
                    || items.iter().any(|item| self.implies(item, wanted))
            }
            (Condition::And(items), _) => {
                self.holds_anyway(wanted) || items.iter().any(|item| self.implies(item, wanted))
            }
            (_, Condition::Or(parts)) => parts.iter().any(|part| self.implies(known, part)),
            _ => self.holds_anyway(wanted) || self.implies_simply(known, wanted),
        }
    }

    fn holds_anyway(&self, wanted: &Condition) -> bool {
        match wanted {
            Condition::NullTest { subject, is_null: false } => {
                self.not_null.iter().any(|column| is_column(subject, column))
            }
            _ => false,
        }
    }

    fn implies_simply(&self, known: &Condition, wanted: &Condition) -> bool {
        match (known, wanted) {
            (
                Condition::Compare { subject, comparison, value },
                Condition::Compare { subject: wanted_subject, comparison: wanted_comparison, value: wanted_value },
            ) if is_same(subject, wanted_subject) => {
                (*comparison, *wanted_comparison) == (Comparison::Equal, Comparison::NotEqual)
                    && self.differ(subject, value, wanted_value)
                    || self
                        .order(subject, value, wanted_value)
                        .is_some_and(|order| comparison_implies(*comparison, *wanted_comparison, order))
            }
            (Condition::NullTest { subject, is_null }, Condition::NullTest { subject: other, is_null: wanted }) => {
                is_null == wanted && is_same(subject, other)
            }
            (Condition::Other { expression, negated }, Condition::Other { expression: other, negated: wanted }) => {
                negated == wanted && is_same(expression, other)
            }
            _ => false,
        }
    }

    /// Whether two constants differ. Different texts are never equal: nondeterministic collations are ignored.
    fn differ(&self, subject: &Expr, left: &Expr, right: &Expr) -> bool {
        let subject_type = self.analyzer.type_of(subject, self.scope);
        let is_text = matches!(subject_type.oid.0, oid::TEXT | oid::VARCHAR);
        match (self.constant(subject_type, left), self.constant(subject_type, right)) {
            (Some(Constant::Text(left)), Some(Constant::Text(right))) => is_text && left != right,
            _ => false,
        }
    }

    /// How two constants compare that are compared with `subject`; `None` where that is not known for sure.
    fn order(&self, subject: &Expr, left: &Expr, right: &Expr) -> Option<Ordering> {
        let subject_type = self.analyzer.type_of(subject, self.scope);
        let (left, right) = (self.constant(subject_type, left)?, self.constant(subject_type, right)?);
        match (&left, &right) {
            (Constant::Integer(left), Constant::Integer(right)) => Some(left.cmp(right)),
            (Constant::Boolean(left), Constant::Boolean(right)) => Some(left.cmp(right)),
            (Constant::Text(left), Constant::Text(right)) if left == right => Some(Ordering::Equal),
            (Constant::Text(left), Constant::Text(right)) => {
                let is_date = matches!(subject_type.oid.0, oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ);
                (is_date && is_iso_date(left) && is_iso_date(right)).then(|| left.cmp(right))
            }
            _ => None,
        }
    }

    /// A constant as it is after its coercion to the subject's type.
    fn constant<'e>(&self, subject: SqlType, value: &'e Expr) -> Option<Constant<'e>> {
        match &value.kind {
            ExprKind::Literal(literal) => constant(subject, literal),
            ExprKind::Cast { operand, target } => {
                let target = self.analyzer.resolve_type(target);
                if target.oid != subject.oid || !target.is_known() || target.typmod != -1 {
                    return None;
                }
                self.constant(subject, operand)
            }
            ExprKind::Operator { operator, operands, form: OperatorForm::Plain, .. } if operator == "-" => {
                let [operand] = operands.as_slice() else { return None };
                match self.constant(subject, operand)? {
                    Constant::Integer(number) => Some(Constant::Integer(-number)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// A constant whose order among others of its kind is known.
enum Constant<'a> {
    Integer(i128),
    Boolean(bool),
    Text(&'a str),
}

/// A number next to a subject of another type would change the subject's side of the comparison.
fn constant(subject: SqlType, literal: &Literal) -> Option<Constant<'_>> {
    let is_integer = matches!(subject.oid.0, oid::INT2 | oid::INT4 | oid::INT8);
    let is_number = is_integer || matches!(subject.oid.0, oid::NUMERIC | oid::FLOAT4 | oid::FLOAT8);
    match literal {
        Literal::Integer(number) if is_number => Some(Constant::Integer(i128::from(*number))),
        Literal::Boolean(value) if subject.oid.0 == oid::BOOL => Some(Constant::Boolean(*value)),
        Literal::String(text) if is_integer => text.trim().parse().ok().map(Constant::Integer),
        Literal::String(text) if subject.is_known() => Some(Constant::Text(text)),
        _ => None,
    }
}

/// Dates of this form sort as texts.
fn is_iso_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(
            |(position, byte)| {
                if matches!(position, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() }
            },
        )
}

/// `BT_implic_table` of predtest.c: `subject known left` implies `subject wanted right`, where `order` is that of left
/// to right.
fn comparison_implies(known: Comparison, wanted: Comparison, order: Ordering) -> bool {
    use Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    match (known, wanted) {
        (Equal, Less) | (LessEqual, Less | NotEqual) => order.is_lt(),
        (Equal | LessEqual, LessEqual) | (Less, Less | LessEqual | NotEqual) => order.is_le(),
        (Equal, Equal) | (NotEqual, NotEqual) => order.is_eq(),
        (Equal | GreaterEqual, GreaterEqual) | (Greater, Greater | GreaterEqual | NotEqual) => order.is_ge(),
        (Equal, Greater) | (GreaterEqual, Greater | NotEqual) => order.is_gt(),
        (Equal, NotEqual) => order.is_ne(),
        _ => false,
    }
}
