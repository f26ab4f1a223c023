//! The types of generated columns, and values of them.

use crate::measure::random::Random;
use pgvet_model::builtin;
use pgvet_model::catalog::{Catalog, SqlType, TypeKind};

/// Types with the same values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Integer,
    Number,
    Text,
    Date,
    Time,
    Boolean,
    Uuid,
    Json,
    Array,
    Range,
    Enum,
    Other,
}

const TYPES: &[&str] = &[
    "int",
    "int",
    "int",
    "bigint",
    "smallint",
    "integer",
    "text",
    "text",
    "varchar(10)",
    "varchar(20)",
    "varchar",
    "char(5)",
    "numeric",
    "numeric(8,2)",
    "numeric(10,2)",
    "numeric(10,4)",
    "real",
    "double precision",
    "boolean",
    "date",
    "timestamp",
    "timestamptz",
    "timestamp(3)",
    "timestamptz(0)",
    "time",
    "interval",
    "uuid",
    "json",
    "jsonb",
    "bytea",
    "int[]",
    "text[]",
    "varchar(10)[]",
    "int4range",
    "inet",
    "bit(4)",
    "varbit(8)",
    "name",
    "oid",
    "\"char\"",
];

/// Types, and those to which they are often changed.
const CHANGES: &[(&str, &[&str])] = &[
    ("int2", &["int", "bigint", "numeric", "text"]),
    ("int4", &["bigint", "smallint", "numeric", "text", "int", "oid", "double precision", "numeric(10,2)"]),
    ("int8", &["int", "numeric", "text", "bigint"]),
    ("text", &["varchar", "varchar(20)", "text", "varchar(5)", "char(5)", "int", "text COLLATE \"C\"", "name", "xml"]),
    ("varchar", &["varchar(5)", "varchar(10)", "varchar(20)", "varchar(40)", "varchar", "text", "char(10)", "name"]),
    ("bpchar", &["char(4)", "char(10)", "text", "varchar(10)", "varchar"]),
    ("numeric", &["numeric", "numeric(8,2)", "numeric(10,2)", "numeric(12,2)", "numeric(10,4)", "int", "text", "real"]),
    ("float4", &["double precision", "numeric", "real"]),
    ("float8", &["real", "numeric", "double precision"]),
    ("timestamp", &["timestamptz", "timestamp(3)", "timestamp(6)", "timestamp", "date", "text"]),
    ("timestamptz", &["timestamp", "timestamptz(3)", "timestamptz(6)", "timestamptz", "date"]),
    ("date", &["timestamp", "timestamptz", "text", "date"]),
    ("time", &["time(3)", "time(6)", "interval", "timetz"]),
    ("interval", &["interval(3)", "interval(6)", "interval day to second", "time", "text"]),
    ("json", &["jsonb", "text"]),
    ("jsonb", &["json", "text"]),
    ("bool", &["int", "text", "boolean"]),
    ("uuid", &["text", "uuid", "bytea"]),
    ("bit", &["bit(8)", "varbit", "varbit(4)", "bit(4)"]),
    ("varbit", &["varbit", "varbit(4)", "varbit(16)", "bit(8)"]),
    ("inet", &["cidr", "text", "inet"]),
    ("name", &["text", "varchar", "varchar(64)"]),
    ("oid", &["int", "bigint", "oid", "regclass"]),
    ("_int4", &["bigint[]", "int[]", "text[]"]),
    ("_text", &["varchar[]", "text[]", "varchar(10)[]", "text"]),
    ("_varchar", &["varchar(20)[]", "text[]", "varchar[]", "varchar(5)[]"]),
];

/// A type for a new column: built in, or one that the schema has.
pub(super) fn any(random: &mut Random, catalog: &Catalog) -> String {
    let own = user_types(catalog);
    match random.one_of(&own) {
        Some(own) if random.percent(15) => own.clone(),
        _ => (*random.one_of(TYPES).unwrap_or(&"int")).to_owned(),
    }
}

/// The domains and enums of the schema, as SQL writes them.
pub(super) fn user_types(catalog: &Catalog) -> Vec<String> {
    let own = |kind: &TypeKind| matches!(kind, TypeKind::Domain(_) | TypeKind::Enum { .. });
    let types = catalog.types().filter(|definition| own(&definition.kind));
    let mut names: Vec<String> = types.map(|one| super::scene::qualified(&one.schema, &one.name)).collect();
    names.sort();
    names
}

/// A type that a column of this type may be changed to.
pub(super) fn change_of(random: &mut Random, catalog: &Catalog, sql_type: SqlType) -> String {
    let name = builtin::type_by_oid(sql_type.oid.0).map_or("", |known| known.name);
    let usual = CHANGES.iter().find(|(from, _)| *from == name).map(|(_, to)| *to);
    match usual.and_then(|usual| random.one_of(usual)) {
        Some(usual) if random.percent(85) => (*usual).to_owned(),
        _ => any(random, catalog),
    }
}

pub(super) fn family(catalog: &Catalog, sql_type: SqlType) -> Family {
    if let Some(definition) = catalog.get_type(sql_type.oid) {
        return match &definition.kind {
            TypeKind::Domain(domain) => family(catalog, domain.base),
            TypeKind::Enum { .. } => Family::Enum,
            TypeKind::Array { .. } => Family::Array,
            _ => Family::Other,
        };
    }
    family_of_name(builtin::type_by_oid(sql_type.oid.0).map_or("", |known| known.name))
}

fn family_of_name(name: &str) -> Family {
    match name {
        "int2" | "int4" | "int8" | "oid" => Family::Integer,
        "numeric" | "float4" | "float8" => Family::Number,
        "text" | "varchar" | "bpchar" | "name" => Family::Text,
        "date" => Family::Date,
        "timestamp" | "timestamptz" => Family::Time,
        "bool" => Family::Boolean,
        "uuid" => Family::Uuid,
        "json" | "jsonb" => Family::Json,
        "int4range" => Family::Range,
        name if name.starts_with('_') => Family::Array,
        _ => Family::Other,
    }
}

/// The family of a type as [`any`] writes it.
pub(super) fn family_of_sql(catalog: &Catalog, sql: &str) -> Family {
    let base = sql.split('(').next().unwrap_or(sql);
    match base {
        _ if sql.ends_with("[]") => Family::Array,
        "int" | "bigint" | "smallint" | "integer" | "oid" => Family::Integer,
        "numeric" | "real" | "double precision" => Family::Number,
        "text" | "varchar" | "char" | "name" => Family::Text,
        "boolean" => Family::Boolean,
        "date" | "timestamp" | "timestamptz" | "uuid" | "json" | "jsonb" | "int4range" => family_of_name(base),
        _ => {
            let own = catalog.types().find(|one| super::scene::qualified(&one.schema, &one.name) == sql);
            own.map_or(Family::Other, |own| family(catalog, SqlType::new(own.oid)))
        }
    }
}

/// The `number`th value.
pub(super) fn constant(family: Family, number: usize) -> String {
    match family {
        Family::Integer | Family::Number => format!("{}", number + 1),
        Family::Text => format!("'v{number}'"),
        Family::Date => format!("'2024-01-{:02}'", number % 28 + 1),
        Family::Time => format!("'2024-01-{:02} 10:00:00'", number % 28 + 1),
        Family::Boolean => "true".to_owned(),
        Family::Uuid => format!("'00000000-0000-0000-0000-{number:012}'"),
        Family::Json => format!("'{{\"a\": {number}}}'"),
        Family::Array => "'{}'".to_owned(),
        Family::Range => format!("'[{},{})'", number * 10, number * 10 + 5),
        Family::Enum => "'low'".to_owned(),
        Family::Other => "NULL".to_owned(),
    }
}

/// An expression that has another value each time, or each transaction.
pub(super) fn changing(random: &mut Random, family: Family) -> String {
    let expressions: &[&str] = match family {
        Family::Integer => &["(random() * 10)::int", "length(version())", "txid_current()"],
        Family::Number => &["random()", "extract(epoch FROM now())"],
        Family::Text => &["md5(random()::text)", "current_user", "now()::text", "lower('A')"],
        Family::Date | Family::Time => &["now()", "clock_timestamp()", "current_timestamp", "current_date"],
        Family::Uuid => &["gen_random_uuid()"],
        Family::Boolean => &["random() > 0.5", "1 > 0"],
        Family::Array => &["ARRAY[]::int[]", "'{}'"],
        _ => &["NULL"],
    };
    (*random.one_of(expressions).unwrap_or(&"NULL")).to_owned()
}

/// An expression of a column for an index, a check or a generated column.
pub(super) fn expression(random: &mut Random, family: Family, column: &str) -> String {
    let templates: &[&str] = match family {
        Family::Integer => &["({} + 1)", "abs({})", "({} % 10)", "({}::text)"],
        Family::Number => &["({} * 2)", "round({})"],
        Family::Text => &["lower({})", "length({})", "({} || 'x')", "upper({}::text)", "md5({})"],
        Family::Date => &["({} + 1)", "({}::text)", "date_trunc('month', {})", "extract(year FROM {})"],
        Family::Time => &["date_trunc('day', {})", "({}::date)", "({}::text)"],
        Family::Boolean => &["(NOT {})", "({} IS TRUE)"],
        Family::Json => &["({} ->> 'a')", "({} -> 'a')"],
        Family::Array => &["cardinality({})", "array_length({}, 1)"],
        Family::Range => &["lower({})", "isempty({})"],
        _ => &["({} IS NULL)", "({}::text)"],
    };
    random.one_of(templates).unwrap_or(&"{}").replace("{}", column)
}

/// A condition on a column.
pub(super) fn condition(random: &mut Random, family: Family, column: &str) -> String {
    let templates: &[&str] = match family {
        Family::Integer | Family::Number => &["{} > 0", "{} >= 0 AND {} < 1000000", "{} IN (1, 2, 3)", "{} <> 7"],
        Family::Text => &["{} <> ''", "length({}) < 100", "{} LIKE 'v%'"],
        Family::Date | Family::Time => &["{} > '2000-01-01'"],
        Family::Boolean => &["{}", "NOT {}"],
        _ => &["{} IS NULL"],
    };
    let usual = random.one_of(templates).unwrap_or(&"{} IS NOT NULL");
    let chosen = if random.percent(40) { "{} IS NOT NULL" } else { usual };
    chosen.replace("{}", column)
}
