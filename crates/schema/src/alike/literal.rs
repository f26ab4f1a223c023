//! Constants, which PostgreSQL writes with their type and in its own spelling.

use super::Verdict;
use pgvet_model::builtin;
use pgvet_syntax::ast::{Expr, ExprKind, Literal};

/// Compares two constants; `None` if one is something else.
pub(super) fn compare(before: &Expr, after: &Expr) -> Option<Verdict> {
    let (ours, our_type) = constant(before)?;
    let (theirs, their_type) = constant(after)?;
    if ours == theirs {
        return Some(Verdict::Same);
    }
    let type_name = our_type.or(their_type);
    if type_name == Some("regclass") {
        return Some(Verdict::of(same_relation(&spelling(ours), &spelling(theirs))));
    }
    if let (Some(ours), Some(theirs)) = (truth(ours), truth(theirs))
        && [our_type, their_type].iter().all(|name| name.is_none_or(|name| name == "bool"))
    {
        return Some(Verdict::of(ours == theirs));
    }
    let (ours, theirs) = (spelling(ours), spelling(theirs));
    if ours == theirs {
        return Some(Verdict::Same);
    }
    if type_name == Some("jsonb")
        && let (Some(ours), Some(theirs)) = (json(&ours), json(&theirs))
    {
        return Some(Verdict::of(ours == theirs));
    }
    if let (Ok(ours), Ok(theirs)) = (ours.parse::<f64>(), theirs.parse::<f64>()) {
        // Two spellings of a number, such as 1e3 and 1000; as text they differ.
        return Some(if (ours - theirs).abs() > 0.0 || is_text(type_name) {
            Verdict::Different
        } else {
            Verdict::Same
        });
    }
    Some(if is_text(type_name) { Verdict::Different } else { Verdict::Unsure })
}

/// The constant within casts, and the innermost type that it has.
fn constant(expr: &Expr) -> Option<(&Literal, Option<&str>)> {
    match &expr.kind {
        ExprKind::Literal(literal) => Some((literal, None)),
        ExprKind::Cast { operand, target } => {
            let (literal, inner) = constant(operand)?;
            Some((literal, inner.or(Some(target.name.as_str()).filter(|_| !target.is_array))))
        }
        _ => None,
    }
}

/// Types whose constants PostgreSQL writes as they were given: texts, and those that are not built in, which are enums
/// and texts of extensions. Without a type, nobody knows.
fn is_text(type_name: Option<&str>) -> bool {
    let texts = ["text", "varchar", "bpchar", "name", "char", "bool", "int2", "int4", "int8"];
    type_name.is_some_and(|name| texts.contains(&name) || builtin::type_by_name(name).is_none())
}

fn json(text: &str) -> Option<serde_json::Value> {
    serde_json::from_str(text).ok()
}

fn spelling(literal: &Literal) -> String {
    match literal {
        Literal::Integer(number) => number.to_string(),
        Literal::Numeric(digits) => digits.to_string(),
        Literal::Boolean(value) => value.to_string(),
        Literal::String(text) => text.to_string(),
        Literal::BitString(bits) => bits.trim_start_matches('b').to_owned(),
        Literal::Null => "NULL".to_owned(),
    }
}

/// The value of a constant that a boolean column takes.
fn truth(literal: &Literal) -> Option<bool> {
    match literal {
        Literal::Boolean(value) => Some(*value),
        Literal::String(text) => match text.to_ascii_lowercase().as_str() {
            "t" | "true" | "yes" | "y" | "on" | "1" => Some(true),
            "f" | "false" | "no" | "n" | "off" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Whether two names mean one relation, if a name without a schema does.
fn same_relation(ours: &str, theirs: &str) -> bool {
    let parts = |name: &str| -> Vec<String> { name.split('.').map(|part| part.trim_matches('"').to_owned()).collect() };
    let (ours, theirs) = (parts(ours), parts(theirs));
    let is_open = ours.len() == 1 || theirs.len() == 1;
    if is_open { ours.last() == theirs.last() } else { ours == theirs }
}
