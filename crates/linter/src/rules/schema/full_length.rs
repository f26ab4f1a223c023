//! CHECKs that only allow values of `n` characters in a column of type `char(n)`, so that no blanks are added.

use pgvet_model::catalog::{Column, ConstraintKind, Relation};
use pgvet_syntax::ast::{Expr, ExprKind, Literal};

pub(super) fn has_full_length(table: &Relation, column: &Column) -> bool {
    let Ok(length) = usize::try_from(column.sql_type.typmod - 4) else { return false };
    let checks = table.constraints.iter().filter(|constraint| constraint.holds());
    checks
        .filter_map(|constraint| match &constraint.kind {
            ConstraintKind::Check { expression, .. } => Some(expression),
            _ => None,
        })
        .any(|expression| demands(expression, column, length))
}

/// Whether a condition is true only for values of full length.
fn demands(condition: &Expr, column: &Column, length: usize) -> bool {
    match &condition.kind {
        ExprKind::And(list) => list.iter().any(|part| demands(part, column, length)),
        ExprKind::Operator { schema: None, operator, operands, .. } => match (operator.as_str(), operands.as_slice()) {
            ("=", [Expr { kind: ExprKind::Call(call), .. }, number]) => {
                // `char_length` does not count the blanks at the end of a `char(n)`.
                let is_length = matches!(call.name.as_str(), "char_length" | "character_length" | "length");
                let is_column = matches!(&call.arguments[..], [only] if is_column(&only.value, column));
                is_length
                    && is_column
                    && matches!(number.kind, ExprKind::Literal(Literal::Integer(known)) if usize::try_from(known) == Ok(length))
            }
            ("~", [value, pattern]) => {
                let pattern = match &pattern.kind {
                    ExprKind::Literal(Literal::String(pattern)) => width(pattern),
                    _ => None,
                };
                is_column(value, column) && pattern == Some(length)
            }
            _ => false,
        },
        _ => false,
    }
}

fn is_column(value: &Expr, column: &Column) -> bool {
    match &value.kind {
        ExprKind::Cast { operand, .. } => is_column(operand, column),
        _ => value.as_column() == Some(&column.name),
    }
}

/// How many characters an anchored pattern matches, if that is always the same number and none of them is a blank. Only
/// what patterns of codes consist of is read: `^[A-Z]{2}\d{9}X$`.
fn width(pattern: &str) -> Option<usize> {
    let mut rest = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let mut width: usize = 0;
    while !rest.is_empty() {
        rest = after_atom(rest)?;
        let (times, after) = match rest.strip_prefix('{') {
            Some(bound) => {
                let (number, after) = bound.split_once('}')?;
                (number.parse().ok()?, after)
            }
            None => (1, rest),
        };
        width = width.checked_add(times)?;
        rest = after;
    }
    Some(width)
}

/// What follows a digit class, a bracket of characters, or a letter or digit.
fn after_atom(pattern: &str) -> Option<&str> {
    if let Some(bracket) = pattern.strip_prefix('[') {
        let (inside, after) = bracket.split_once(']')?;
        let plain = inside.replace("\\d", "");
        let is_plain = |character: char| character.is_ascii_alphanumeric() || character == '-';
        return (!inside.is_empty() && plain.chars().all(is_plain)).then_some(after);
    }
    pattern.strip_prefix("\\d").or_else(|| pattern.strip_prefix(|first: char| first.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::width;

    #[test]
    fn patterns_of_codes_have_a_width() {
        for (pattern, expected) in [
            (r"^\d{15}[\dX]$", Some(16)),
            ("^[A-Z]{2}[A-Z0-9]{10}$", Some(12)),
            ("^AB[0-9]$", Some(3)),
            (r"\d{16}", None),
            (r"^\d{1,16}$", None),
            (r"^\d+$", None),
            ("^.{16}$", None),
            ("^[^X]{16}$", None),
            ("^[A-Z ]{16}$", None),
            ("^[A-Z]{16}|X$", None),
            (r"^\s{16}$", None),
            ("^[[:alpha:]]{16}$", None),
            ("^(AB){8}$", None),
            ("", None),
        ] {
            assert_eq!(width(pattern), expected, "{pattern}");
        }
    }
}
