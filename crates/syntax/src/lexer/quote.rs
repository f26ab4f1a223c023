//! Names as SQL.

/// The words that need quotes as a table's name: reserved ones, and those reserved for functions and types;
/// sorted.
///
/// Source: PostgreSQL 18, `src/include/parser/kwlist.h`, `RESERVED_KEYWORD` and `TYPE_FUNC_NAME_KEYWORD`.
const RESERVED: [&str; 101] = [
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "binary",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "group",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "intersect",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "natural",
    "not",
    "notnull",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "overlaps",
    "placing",
    "primary",
    "references",
    "returning",
    "right",
    "select",
    "session_user",
    "similar",
    "some",
    "symmetric",
    "system_user",
    "table",
    "tablesample",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
];

/// The other words that need quotes as the name of a function, of a parameter or of a type; sorted.
///
/// Source: PostgreSQL 18, `src/include/parser/kwlist.h`, `COL_NAME_KEYWORD`.
const OF_COLUMNS: [&str; 63] = [
    "between",
    "bigint",
    "bit",
    "boolean",
    "char",
    "character",
    "coalesce",
    "dec",
    "decimal",
    "exists",
    "extract",
    "float",
    "greatest",
    "grouping",
    "inout",
    "int",
    "integer",
    "interval",
    "json",
    "json_array",
    "json_arrayagg",
    "json_exists",
    "json_object",
    "json_objectagg",
    "json_query",
    "json_scalar",
    "json_serialize",
    "json_table",
    "json_value",
    "least",
    "merge_action",
    "national",
    "nchar",
    "none",
    "normalize",
    "nullif",
    "numeric",
    "out",
    "overlay",
    "position",
    "precision",
    "real",
    "row",
    "setof",
    "smallint",
    "substring",
    "time",
    "timestamp",
    "treat",
    "trim",
    "values",
    "varchar",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
];

/// A name of a function, of a parameter or of a type as SQL, without a schema before it.
pub fn quote_function_name(name: &str) -> String {
    if OF_COLUMNS.binary_search(&name).is_ok() { format!("\"{name}\"") } else { quote_identifier(name) }
}

/// An identifier as SQL: quoted where PostgreSQL would read it differently otherwise. The other way round is [`super::identifier`].
pub fn quote_identifier(name: &str) -> String {
    let mut characters = name.chars();
    let plain = characters.next().is_some_and(|first| first.is_ascii_lowercase() || first == '_')
        && characters.all(|next| next.is_ascii_lowercase() || next.is_ascii_digit() || matches!(next, '_' | '$'));
    if plain && RESERVED.binary_search(&name).is_err() {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_sorted_for_their_search() {
        assert!(RESERVED.is_sorted() && OF_COLUMNS.is_sorted());
        for (name, expected) in
            [("a", "a"), ("all", "\"all\""), ("with", "\"with\""), ("A", "\"A\""), ("a\"b", "\"a\"\"b\"")]
        {
            assert_eq!(quote_identifier(name), expected);
        }
        let names = ["normalize", "left", "a", "B"].map(quote_function_name);
        assert_eq!(names, ["\"normalize\"", "\"left\"", "a", "\"B\""]);
    }
}
