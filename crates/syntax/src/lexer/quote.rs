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
        assert!(RESERVED.is_sorted());
        for (name, expected) in
            [("a", "a"), ("all", "\"all\""), ("with", "\"with\""), ("A", "\"A\""), ("a\"b", "\"a\"\"b\"")]
        {
            assert_eq!(quote_identifier(name), expected);
        }
    }
}
