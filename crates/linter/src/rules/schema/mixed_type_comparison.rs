//! Foreign keys between columns of different types.

use super::columns::foreign_key;
use crate::declared::DeclarationContext;
use crate::report::Reporter;
use crate::rule::declare_rule;
use pgvet_model::builtin::type_by_oid;
use pgvet_model::catalog::SqlType;
use pgvet_model::effect::RelationName;
use pgvet_model::expression::format_builtin;
use std::cmp::Ordering;

declare_rule! {
    /// A foreign key compares columns of different types.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL accepts an `integer` column that refers to a `bigint` column. The narrower column cannot hold all
    /// keys of the wider column: rows cannot refer to keys that are out of range. Every join compares values of
    /// different types, and the conversion may prevent the use of an index.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE users (id bigint PRIMARY KEY);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, user_id integer REFERENCES users);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE users (id bigint PRIMARY KEY);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint REFERENCES users);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - columns that have the same type after the last migration. `varchar` and `text` are treated as the same type,
    ///   and lengths and precisions are ignored.
    /// - a column whose type pgvet does not know
    ///
    /// ## Other linters
    ///
    /// `online_migrations` and pglinter report the same.
    "mixed-type-comparison", Schema, Warning,
    { recommended: false, sources: &["online_migrations/foreign_key_type_mismatch", "pglinter/B008"] }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Some((written, key)) = foreign_key(context) else { return };
    let Some(referenced) = context.catalog.get_relation(key.referenced) else { return };
    let table = context.relation;
    for (own, other) in key.columns.iter().zip(&key.referenced_columns) {
        let (Some(column), Some(other)) = (table.column(own), referenced.column(other)) else { continue };
        let (Some(ours), Some(theirs)) = (compared(column.sql_type), compared(other.sql_type)) else { continue };
        if ours == theirs {
            continue;
        }
        let message = format!(
            "this foreign key compares different types: `{}` is {ours}, but `{}.{}` is {theirs}",
            column.name, referenced.name, other.name
        );
        let help = match wider(&ours, &theirs) {
            Some(Ordering::Less) => format!("give `{}` the type {theirs}", column.name),
            Some(Ordering::Greater) => {
                format!("give `{}.{}` the type {ours}, which is wider", referenced.name, other.name)
            }
            _ => "give both columns the same type".to_owned(),
        };
        reporter.report(written.keyword, message).relation(&RelationName::existing(table)).help(help).emit();
    }
}

/// The name of a built-in type as it is compared: `varchar` as `text`, whatever its length.
fn compared(sql_type: SqlType) -> Option<String> {
    let name = type_by_oid(sql_type.oid.0)?.name;
    let plain = || format_builtin(sql_type.oid.0, -1).unwrap_or_else(|| name.to_owned());
    Some(if name == "varchar" { "text".to_owned() } else { plain() })
}

/// The type that can hold all values of the other.
fn wider(ours: &str, theirs: &str) -> Option<Ordering> {
    const CHAINS: [&[&str]; 3] =
        [&["smallint", "integer", "bigint", "numeric"], &["real", "double precision"], &["bpchar", "text"]];
    CHAINS.iter().find_map(|chain| {
        let place = |name: &str| chain.iter().position(|known| *known == name);
        Some(place(ours)?.cmp(&place(theirs)?))
    })
}
