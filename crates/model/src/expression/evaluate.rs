//! The value of an expression for one row, as far as integers, texts and booleans decide it.

use pgvet_syntax::ast::{BooleanTest, Expr, ExprKind, FunctionCall, Literal, OperatorForm, TypeName};
use smol_str::SmolStr;
use std::cmp::Ordering;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Boolean(bool),
    Integer(i128),
    Text(SmolStr),
}

impl Value {
    /// As SQL has it, where NULL is the inner `None`; the outer one is a value of another type.
    #[expect(clippy::option_option, reason = "SQL has three values, and this may be none of them")]
    fn truth(&self) -> Option<Option<bool>> {
        match self {
            Self::Null => Some(None),
            Self::Boolean(value) => Some(Some(*value)),
            _ => None,
        }
    }

    /// How two values compare that are not NULL. The order of texts is that of a collation, which is not known.
    fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => Some(one.cmp(other)),
            (Self::Boolean(one), Self::Boolean(other)) => Some(one.cmp(other)),
            (Self::Integer(one), Self::Text(text)) => Some(one.cmp(&text.trim().parse().ok()?)),
            (Self::Text(text), Self::Integer(other)) => Some(text.trim().parse::<i128>().ok()?.cmp(other)),
            _ => None,
        }
    }

    fn is_equal(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => Some(one == other),
            _ => Some(self.order(other)? == Ordering::Equal),
        }
    }
}

/// Returns the value of an expression for the values of columns; `None` if it is not known.
pub fn evaluate(expression: &Expr, row: &dyn Fn(&str) -> Option<Value>) -> Option<Value> {
    let value = |expression: &Expr| evaluate(expression, row);
    match &expression.kind {
        ExprKind::Column(path) => row(path.last()?),
        ExprKind::Literal(literal) => match literal {
            Literal::Integer(number) => Some(Value::Integer(i128::from(*number))),
            Literal::Boolean(value) => Some(Value::Boolean(*value)),
            Literal::String(text) => Some(Value::Text(text.clone())),
            Literal::Null => Some(Value::Null),
            Literal::Numeric(_) | Literal::BitString(_) => None,
        },
        // The types that are known hold all texts.
        ExprKind::Cast { operand, target } if holds_texts(target) && !target.is_array => {
            value(operand).filter(|value| matches!(value, Value::Text(_) | Value::Null))
        }
        ExprKind::And(items) => truth(items, row, false),
        ExprKind::Or(items) => truth(items, row, true),
        ExprKind::Not(operand) => Some(value(operand)?.truth()?.map_or(Value::Null, |value| Value::Boolean(!value))),
        ExprKind::IsNull { operand, negated } => Some(Value::Boolean((value(operand)? == Value::Null) != *negated)),
        ExprKind::BooleanTest { operand, test } => {
            let truth = value(operand)?.truth()?;
            Some(Value::Boolean(match test {
                BooleanTest::True => truth == Some(true),
                BooleanTest::NotTrue => truth != Some(true),
                BooleanTest::False => truth == Some(false),
                BooleanTest::NotFalse => truth != Some(false),
                BooleanTest::Unknown => truth.is_none(),
                BooleanTest::NotUnknown => truth.is_some(),
            }))
        }
        ExprKind::Coalesce(items) => {
            for item in items {
                match value(item)? {
                    Value::Null => {}
                    found => return Some(found),
                }
            }
            Some(Value::Null)
        }
        ExprKind::Operator { schema: None, operator, form, operands } => operated(operator, *form, operands, row),
        ExprKind::Call(call) => called(call, row),
        _ => None,
    }
}

/// AND and OR: one operand decides it, `decisive`, or all are known.
fn truth(items: &[Expr], row: &dyn Fn(&str) -> Option<Value>, decisive: bool) -> Option<Value> {
    let values: Vec<Option<Option<bool>>> =
        items.iter().map(|item| evaluate(item, row).and_then(|value| value.truth())).collect();
    if values.contains(&Some(Some(decisive))) {
        return Some(Value::Boolean(decisive));
    }
    let values: Vec<Option<bool>> = values.into_iter().collect::<Option<_>>()?;
    Some(if values.contains(&None) { Value::Null } else { Value::Boolean(!decisive) })
}

fn operated(
    operator: &str,
    form: OperatorForm,
    operands: &[Expr],
    row: &dyn Fn(&str) -> Option<Value>,
) -> Option<Value> {
    let value = |expression: &Expr| evaluate(expression, row);
    match (form, operands) {
        (OperatorForm::Plain, [operand]) if operator == "-" => match value(operand)? {
            Value::Integer(number) => Some(Value::Integer(-number)),
            Value::Null => Some(Value::Null),
            _ => None,
        },
        (OperatorForm::Plain, [left, right]) => compared(operator, &value(left)?, &value(right)?),
        (OperatorForm::In, [left, items @ ..]) => {
            let left = value(left)?;
            let equal = items.iter().map(|item| compared("=", &left, &value(item)?)).collect::<Option<Vec<_>>>()?;
            let is_in = if equal.contains(&Value::Boolean(true)) {
                Some(true)
            } else {
                (!equal.contains(&Value::Null)).then_some(false)
            };
            Some(is_in.map_or(Value::Null, |is_in| Value::Boolean(is_in != (operator == "<>"))))
        }
        // `x = ANY (ARRAY[...])`
        (OperatorForm::AnyArray, [left, array]) if operator == "=" => {
            let operands: Vec<Expr> = std::iter::once(left).chain(elements(array)?).cloned().collect();
            operated("=", OperatorForm::In, &operands, row)
        }
        (OperatorForm::Between | OperatorForm::NotBetween, [middle, from, to]) if !operator.contains("SYMMETRIC") => {
            let (middle, from, to) = (value(middle)?, value(from)?, value(to)?);
            let above = compared(">=", &middle, &from)?.truth()?;
            let below = compared("<=", &middle, &to)?.truth()?;
            let is_between = match (above, below) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            let is_meant = form == OperatorForm::Between;
            Some(is_between.map_or(Value::Null, |is_between| Value::Boolean(is_between == is_meant)))
        }
        _ => None,
    }
}

/// Whether the type holds all texts.
fn holds_texts(target: &TypeName) -> bool {
    matches!(target.name.as_str(), "text" | "varchar") && target.modifiers.is_empty()
}

/// The elements of an array that is written out, with or without a cast to an array of texts.
fn elements(array: &Expr) -> Option<&[Expr]> {
    match &array.kind {
        ExprKind::Array(items) => Some(items),
        ExprKind::Cast { operand, target } if holds_texts(target) && target.is_array => elements(operand),
        _ => None,
    }
}

fn compared(operator: &str, left: &Value, right: &Value) -> Option<Value> {
    let is_comparison = matches!(operator, "=" | "<>" | "<" | "<=" | ">" | ">=");
    if !is_comparison {
        return None;
    }
    if *left == Value::Null || *right == Value::Null {
        return Some(Value::Null);
    }
    Some(Value::Boolean(match operator {
        "=" => left.is_equal(right)?,
        "<>" => !left.is_equal(right)?,
        "<" => left.order(right)?.is_lt(),
        "<=" => left.order(right)?.is_le(),
        ">" => left.order(right)?.is_gt(),
        _ => left.order(right)?.is_ge(),
    }))
}

/// A call of a built-in function on a text.
fn called(call: &FunctionCall, row: &dyn Fn(&str) -> Option<Value>) -> Option<Value> {
    let is_system = call.schema.as_deref().is_none_or(|schema| schema == "pg_catalog");
    let [argument] = call.arguments.as_slice() else { return None };
    let text = match evaluate(&argument.value, row)? {
        Value::Null if is_system => return Some(Value::Null),
        Value::Text(text) if is_system => text,
        _ => return None,
    };
    Some(match call.name.as_str() {
        "length" | "char_length" | "character_length" => Value::Integer(text.chars().count().try_into().ok()?),
        "lower" if text.is_ascii() => Value::Text(text.to_ascii_lowercase().into()),
        "upper" if text.is_ascii() => Value::Text(text.to_ascii_uppercase().into()),
        "btrim" => Value::Text(text.trim_matches(' ').into()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_syntax::ast::{Ast, from_pg::parse_sql};

    fn value(condition: &str) -> Option<Value> {
        let parsed = parse_sql(&format!("ALTER TABLE t ADD CHECK ({condition})")).unwrap();
        let [Ast::AlterTable(altered)] = parsed.as_slice() else { panic!("{condition}") };
        let mut checks = Vec::new();
        for command in &altered.commands {
            if let pgvet_syntax::ast::AlterTableAction::AddConstraint(constraint) = &command.action
                && let pgvet_syntax::ast::ConstraintKind::Check(check) = &constraint.kind
            {
                checks.push(check.clone());
            }
        }
        let row = |name: &str| match name {
            "five" => Some(Value::Integer(5)),
            "word" => Some(Value::Text("word".into())),
            "nothing" => Some(Value::Null),
            _ => None,
        };
        evaluate(&checks[0], &row)
    }

    #[test]
    fn conditions_have_the_values_that_postgresql_gives_them() {
        let (yes, no, null) = (Some(Value::Boolean(true)), Some(Value::Boolean(false)), Some(Value::Null));
        for (condition, expected) in [
            ("five > 4", &yes),
            ("five BETWEEN 6 AND 7", &no),
            ("five NOT BETWEEN 6 AND 7", &yes),
            ("five <> -five", &yes),
            ("five = '5'", &yes),
            ("nothing > 4", &null),
            ("nothing IN (1, 2)", &null),
            ("word IN ('a', 'word')", &yes),
            ("word NOT IN ('a', NULL)", &null),
            ("word = ANY (ARRAY['a', 'b'])", &no),
            ("word::text = ANY ((ARRAY['a'::character varying, 'word'::character varying])::text[])", &yes),
            ("word = 'word'::varchar(2)", &None),
            ("length(word) <= 3", &no),
            ("upper(word) = 'WORD'", &yes),
            ("nothing IS NULL AND five > 9", &no),
            ("unknown > 4 AND five > 9", &no),
            ("unknown > 4 OR five > 9", &None),
            ("nothing > 4 OR five > 4", &yes),
            ("NOT (nothing > 4)", &null),
            ("coalesce(nothing, five) = 5", &yes),
            ("(nothing > 4) IS NOT TRUE", &yes),
            // The order of texts is that of a collation.
            ("word > 'a'", &None),
            ("word ~ 'x'", &None),
        ] {
            assert_eq!(value(condition), *expected, "{condition}");
        }
    }
}
