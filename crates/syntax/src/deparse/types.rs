//! Data types.

use super::{NotKept, Text, string};
use crate::ast::{Literal, TypeName};
use crate::lexer::{quote_function_name, quote_identifier};

/// The mask of `interval` without fields.
///
/// Source: PostgreSQL 18, `src/include/utils/timestamp.h`, `INTERVAL_FULL_RANGE`.
const ALL_FIELDS: i64 = 0x7FFF;

pub(super) fn write(name: &TypeName) -> Text {
    if name.percent_type.is_some() {
        return Err(NotKept("%TYPE"));
    }
    let mut modifiers = name.modifiers.as_slice();
    let is_own = name.schema.as_deref().is_some_and(|schema| schema != "pg_catalog");
    if !is_own && name.name == "interval" {
        modifiers = match modifiers {
            [] => &[],
            [Literal::Integer(ALL_FIELDS), rest @ ..] => rest,
            _ => return Err(NotKept("the fields of an interval")),
        };
    }
    // `character` is `character(1)`.
    let is_unlimited = name.name == "bpchar" && modifiers.is_empty();
    let modifiers = if modifiers.is_empty() { String::new() } else { format!("({})", self::modifiers(modifiers)) };
    let (before, after) = match (is_own, name.name.as_str()) {
        (false, internal) => match usual(internal).filter(|_| !is_unlimited) {
            Some((before, after)) => (before.to_owned(), after),
            None => (qualified(name), ""),
        },
        (true, _) => (qualified(name), ""),
    };
    let array = if name.is_array { "[]" } else { "" };
    let set = if name.setof { "SETOF " } else { "" };
    Ok(format!("{set}{before}{modifiers}{after}{array}"))
}

pub(super) fn modifiers(modifiers: &[Literal]) -> String {
    let modifiers: Vec<String> = modifiers.iter().map(literal).collect();
    modifiers.join(", ")
}

fn qualified(name: &TypeName) -> String {
    match &name.schema {
        Some(schema) => format!("{}.{}", quote_identifier(schema), quote_identifier(&name.name)),
        // `"char"` is not `char`.
        None => quote_function_name(&name.name),
    }
}

pub(super) fn literal(literal: &Literal) -> String {
    match literal {
        Literal::Integer(number) => number.to_string(),
        Literal::Numeric(digits) => digits.to_string(),
        Literal::Boolean(value) => value.to_string(),
        Literal::String(text) => string(text),
        // It begins with the letter of its base: `b101`, `x1F`.
        Literal::BitString(text) => {
            let (base, digits) = text.split_at_checked(1).unwrap_or(("b", ""));
            format!("{base}'{digits}'")
        }
        Literal::Null => "NULL".to_owned(),
    }
}

/// The words for a built-in type, before and after its modifiers.
///
/// Source: PostgreSQL 18, `src/backend/utils/adt/format_type.c`, `format_type_extended`.
fn usual(internal: &str) -> Option<(&'static str, &'static str)> {
    Some(match internal {
        "bool" => ("boolean", ""),
        "int2" => ("smallint", ""),
        "int4" => ("integer", ""),
        "int8" => ("bigint", ""),
        "float4" => ("real", ""),
        "float8" => ("double precision", ""),
        "bpchar" => ("character", ""),
        "varchar" => ("character varying", ""),
        "varbit" => ("bit varying", ""),
        "time" => ("time", " without time zone"),
        "timetz" => ("time", " with time zone"),
        "timestamp" => ("timestamp", " without time zone"),
        "timestamptz" => ("timestamp", " with time zone"),
        "bit" => ("bit", ""),
        "numeric" => ("numeric", ""),
        "interval" => ("interval", ""),
        "text" => ("text", ""),
        "date" => ("date", ""),
        "uuid" => ("uuid", ""),
        "json" => ("json", ""),
        "jsonb" => ("jsonb", ""),
        "bytea" => ("bytea", ""),
        "regclass" => ("regclass", ""),
        _ => return None,
    })
}
