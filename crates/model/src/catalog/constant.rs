//! Constants of bounds and conditions, as far as their order is known.

use pgvet_syntax::ast::{Expr, ExprKind, Literal};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::cmp::Ordering;

/// A constant, as far as its order is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Constant {
    Integer(i64),
    /// A date or timestamp, zero-padded from the year on, so that its text sorts as it does. Without `00:00:00`.
    Date(SmolStr),
    /// Equal only to the same text.
    Text(SmolStr),
    Other,
}

impl Constant {
    pub fn of(expr: &Expr) -> Self {
        match &expr.kind {
            ExprKind::Literal(Literal::Integer(number)) => Self::Integer(*number),
            ExprKind::Literal(Literal::String(text)) if is_date(text) => {
                Self::Date(SmolStr::new(text.trim_end_matches(MIDNIGHT)))
            }
            // The order of other texts depends on the type and the collation of the column.
            ExprKind::Literal(Literal::String(text)) => Self::Text(text.clone()),
            ExprKind::Literal(Literal::Numeric(text)) => Self::Text(text.clone()),
            ExprKind::Cast { operand, .. } => Self::of(operand),
            ExprKind::Operator { operator, operands, .. } if operator == "-" => match operands.as_slice() {
                [operand] => match Self::of(operand) {
                    Self::Integer(number) => number.checked_neg().map_or(Self::Other, Self::Integer),
                    _ => Self::Other,
                },
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }

    /// The order of two constants, `None` where it is not known.
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(ours), Self::Integer(theirs)) => Some(ours.cmp(theirs)),
            (Self::Date(ours), Self::Date(theirs)) => Some(ours.cmp(theirs)),
            (Self::Text(ours), Self::Text(theirs)) if ours == theirs => Some(Ordering::Equal),
            _ => None,
        }
    }
}

const MIDNIGHT: &str = " 00:00:00";

/// `2024-01-31`, with or without `00:00:00` after it. No time zones: their order is not that of the text.
fn is_date(text: &str) -> bool {
    let day = text.strip_suffix(MIDNIGHT).unwrap_or(text).as_bytes();
    day.len() == 10
        && day
            .iter()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { *byte == b'-' } else { byte.is_ascii_digit() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_ordered_and_other_texts_are_not() {
        let order = |a: &str, b: &str| {
            let constant = |text: &str| {
                Constant::of(&Expr {
                    kind: ExprKind::Literal(Literal::String(text.into())),
                    range: pgvet_syntax::source::TextRange::default(),
                })
            };
            constant(a).order(&constant(b))
        };
        assert_eq!(order("2024-01-31", "2024-02-01"), Some(Ordering::Less));
        assert_eq!(order("2024-01-31", "2024-01-31 00:00:00"), Some(Ordering::Equal));
        assert_eq!(order("a", "b"), None);
        assert_eq!(order("a", "a"), Some(Ordering::Equal));
    }
}
