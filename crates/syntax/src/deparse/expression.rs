//! Scalar expressions.

use super::{NotKept, Text, list, query, types};
use crate::ast::{BooleanTest, Expr, ExprKind, FunctionCall, IndirectionStep, OperatorForm, SubqueryKind};
use crate::lexer::{quote_function_name, quote_identifier};
use smol_str::SmolStr;

pub(super) fn write(expr: &Expr) -> Text {
    Ok(match &expr.kind {
        ExprKind::Column(parts) => path(parts),
        ExprKind::Star(qualifier) if qualifier.is_empty() => "*".to_owned(),
        ExprKind::Star(qualifier) => format!("{}.*", path(qualifier)),
        ExprKind::Literal(literal) => types::literal(literal),
        ExprKind::Parameter(number) => format!("${number}"),
        ExprKind::Call(call) => write_call(call)?,
        ExprKind::Operator { schema, operator, form, operands } => {
            write_operator(schema.as_deref(), operator, *form, operands)?
        }
        ExprKind::Cast { operand, target } => format!("{}::{}", tight(operand)?, types::write(target)?),
        ExprKind::And(operands) => joined(operands, " AND ")?,
        ExprKind::Or(operands) => joined(operands, " OR ")?,
        ExprKind::Not(operand) => format!("NOT {}", tight(operand)?),
        ExprKind::IsNull { operand, negated: false } => format!("{} IS NULL", tight(operand)?),
        ExprKind::IsNull { operand, negated: true } => format!("{} IS NOT NULL", tight(operand)?),
        ExprKind::BooleanTest { operand, test } => format!("{} IS {}", tight(operand)?, test_words(*test)),
        ExprKind::Case { operand, branches, otherwise } => {
            write_case(operand.as_deref(), branches, otherwise.as_deref())?
        }
        ExprKind::Coalesce(items) => format!("COALESCE({})", list(items, write)?),
        ExprKind::MinMax { least, operands } => {
            format!("{}({})", if *least { "LEAST" } else { "GREATEST" }, list(operands, write)?)
        }
        ExprKind::Array(items) => format!("ARRAY[{}]", list(items, write)?),
        ExprKind::Row(items) => format!("ROW({})", list(items, write)?),
        ExprKind::Subquery { kind, test, query } => {
            let inner = query::write(query)?;
            match (kind, test) {
                (SubqueryKind::Exists, _) => format!("EXISTS ({inner})"),
                (SubqueryKind::Array, _) => format!("ARRAY({inner})"),
                (SubqueryKind::Scalar, _) => format!("({inner})"),
                (SubqueryKind::Any, Some(test)) => format!("{} IN ({inner})", tight(test)?),
                _ => return Err(NotKept("the operator of ANY or ALL with a subquery")),
            }
        }
        ExprKind::Collate { operand, schema, collation } => {
            let schema = schema.as_ref().map_or_else(String::new, |schema| format!("{}.", quote_identifier(schema)));
            format!("{} COLLATE {schema}{}", tight(operand)?, quote_identifier(collation))
        }
        ExprKind::SqlValue(word, None) => word.to_uppercase(),
        ExprKind::SqlValue(word, Some(precision)) => format!("{}({precision})", word.to_uppercase()),
        ExprKind::Indirection { operand, steps } => write_indirection(operand, steps)?,
        ExprKind::Default => "DEFAULT".to_owned(),
        ExprKind::Other(..) => return Err(NotKept("an XML or JSON constructor, or a rare form of expression")),
    })
}

/// In brackets, unless it is one word or call.
fn tight(expr: &Expr) -> Text {
    let text = write(expr)?;
    let is_tight = match &expr.kind {
        ExprKind::Column(_)
        | ExprKind::Star(_)
        | ExprKind::Parameter(_)
        | ExprKind::Call(_)
        | ExprKind::Coalesce(_)
        | ExprKind::MinMax { .. }
        | ExprKind::Array(_)
        | ExprKind::Row(_)
        | ExprKind::SqlValue(..)
        | ExprKind::Default => true,
        ExprKind::Literal(_) => !text.starts_with('-'),
        ExprKind::Subquery { kind, .. } => {
            matches!(kind, SubqueryKind::Exists | SubqueryKind::Array | SubqueryKind::Scalar)
        }
        _ => false,
    };
    Ok(if is_tight { text } else { format!("({text})") })
}

fn path(parts: &[SmolStr]) -> String {
    parts.iter().map(|part| quote_identifier(part)).collect::<Vec<String>>().join(".")
}

fn joined(operands: &[Expr], word: &str) -> Text {
    Ok(operands.iter().map(tight).collect::<Result<Vec<String>, NotKept>>()?.join(word))
}

fn write_call(call: &FunctionCall) -> Text {
    if call.window.is_some() {
        return Err(NotKept("the window of a function"));
    }
    if !call.order_by.is_empty() {
        return Err(NotKept("the order of an aggregate"));
    }
    let name = match &call.schema {
        Some(schema) => format!("{}.{}", quote_identifier(schema), quote_identifier(&call.name)),
        None => quote_function_name(&call.name),
    };
    let last = call.arguments.len().saturating_sub(1);
    let mut arguments = Vec::new();
    for (at, argument) in call.arguments.iter().enumerate() {
        let variadic = if call.variadic && at == last { "VARIADIC " } else { "" };
        let name = argument.name.as_ref().map_or_else(String::new, |name| format!("{} => ", quote_identifier(name)));
        arguments.push(format!("{variadic}{name}{}", write(&argument.value)?));
    }
    let distinct = if call.distinct { "DISTINCT " } else { "" };
    let inside = if call.star { "*".to_owned() } else { arguments.join(", ") };
    let filter = match &call.filter {
        Some(filter) => format!(" FILTER (WHERE {})", write(filter)?),
        None => String::new(),
    };
    Ok(format!("{name}({distinct}{inside}){filter}"))
}

fn write_operator(schema: Option<&str>, operator: &str, form: OperatorForm, operands: &[Expr]) -> Text {
    let symbol = match schema {
        Some(schema) => format!("OPERATOR({}.{operator})", quote_identifier(schema)),
        None => operator.to_owned(),
    };
    let sides = |word: &str, operands: &[Expr]| match operands {
        [left, right] => Ok(format!("{} {word} {}", tight(left)?, tight(right)?)),
        [only] => Ok(format!("{word} {}", tight(only)?)),
        _ => Err(NotKept("an operator with other than one or two operands")),
    };
    match (form, operands) {
        (OperatorForm::Plain, _) => sides(&symbol, operands),
        (OperatorForm::Like, [value, pattern]) => match like_words(operator) {
            Some(words) => sides(words, operands),
            None => write_similar(operator, value, pattern),
        },
        (OperatorForm::Distinct, _) => sides("IS DISTINCT FROM", operands),
        (OperatorForm::NotDistinct, _) => sides("IS NOT DISTINCT FROM", operands),
        (OperatorForm::AnyArray, [left, right]) => Ok(format!("{} {symbol} ANY ({})", tight(left)?, write(right)?)),
        (OperatorForm::AllArray, [left, right]) => Ok(format!("{} {symbol} ALL ({})", tight(left)?, write(right)?)),
        (OperatorForm::NullIf, _) => Ok(format!("NULLIF({})", list(operands, write)?)),
        (OperatorForm::In, [left, items @ ..]) => {
            let word = if operator == "<>" { "NOT IN" } else { "IN" };
            Ok(format!("{} {word} ({})", tight(left)?, list(items, write)?))
        }
        // The operator is the words: BETWEEN, NOT BETWEEN SYMMETRIC and so on.
        (OperatorForm::Between | OperatorForm::NotBetween, [value, from, to]) => {
            Ok(format!("{} {operator} {} AND {}", tight(value)?, tight(from)?, tight(to)?))
        }
        _ => Err(NotKept("an operator with an unusual number of operands")),
    }
}

/// The words for an operator of LIKE.
fn like_words(operator: &str) -> Option<&'static str> {
    Some(match operator {
        "~~" => "LIKE",
        "!~~" => "NOT LIKE",
        "~~*" => "ILIKE",
        "!~~*" => "NOT ILIKE",
        _ => return None,
    })
}

/// SIMILAR TO, whose pattern the parser gives to a function.
fn write_similar(operator: &str, value: &Expr, pattern: &Expr) -> Text {
    let words = if operator == "!~" { "NOT SIMILAR TO" } else { "SIMILAR TO" };
    let ExprKind::Call(call) = &pattern.kind else { return Err(NotKept("SIMILAR TO")) };
    let value = tight(value)?;
    match call.arguments.as_slice() {
        [pattern] => Ok(format!("{value} {words} {}", tight(&pattern.value)?)),
        [pattern, escape] => Ok(format!("{value} {words} {} ESCAPE {}", tight(&pattern.value)?, tight(&escape.value)?)),
        _ => Err(NotKept("SIMILAR TO")),
    }
}

fn write_case(operand: Option<&Expr>, branches: &[(Expr, Expr)], otherwise: Option<&Expr>) -> Text {
    let mut text = String::from("CASE");
    if let Some(operand) = operand {
        text = format!("{text} {}", tight(operand)?);
    }
    for (condition, result) in branches {
        text = format!("{text} WHEN {} THEN {}", write(condition)?, write(result)?);
    }
    if let Some(otherwise) = otherwise {
        text = format!("{text} ELSE {}", write(otherwise)?);
    }
    Ok(format!("{text} END"))
}

fn write_indirection(operand: &Expr, steps: &[IndirectionStep]) -> Text {
    let inner = write(operand)?;
    // `a.b` is a qualified name.
    let is_name = matches!(&operand.kind, ExprKind::Column(_) | ExprKind::Parameter(_));
    let begins_with_subscript =
        matches!(steps.first(), Some(IndirectionStep::Subscript(_) | IndirectionStep::Slice(..)));
    let mut text = if is_name && begins_with_subscript { inner } else { format!("({inner})") };
    let bound = |bound: &Option<Expr>| bound.as_ref().map_or_else(|| Ok(String::new()), write);
    for step in steps {
        match step {
            IndirectionStep::Field(name) => text = format!("{text}.{}", quote_identifier(name)),
            IndirectionStep::AllFields => text = format!("{text}.*"),
            IndirectionStep::Subscript(at) => text = format!("{text}[{}]", bound(at)?),
            IndirectionStep::Slice(from, to) => text = format!("{text}[{}:{}]", bound(from)?, bound(to)?),
        }
    }
    Ok(text)
}

fn test_words(test: BooleanTest) -> &'static str {
    match test {
        BooleanTest::True => "TRUE",
        BooleanTest::NotTrue => "NOT TRUE",
        BooleanTest::False => "FALSE",
        BooleanTest::NotFalse => "NOT FALSE",
        BooleanTest::Unknown => "UNKNOWN",
        BooleanTest::NotUnknown => "NOT UNKNOWN",
    }
}
