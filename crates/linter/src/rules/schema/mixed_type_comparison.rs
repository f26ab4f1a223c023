//! Foreign keys between columns of different types.

use crate::ast::ConstraintKind as Written;
use crate::builtin::type_by_oid;
use crate::catalog::{ForeignKeyConstraint, SqlType};
use crate::declared::{DeclarationContext, Declared};
use crate::report::Reporter;
use crate::rule::declare_rule;
use smol_str::SmolStr;

declare_rule! {
    /// A foreign key compares columns of different types.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL accepts `integer` that refers to `bigint`, or `varchar` to `text`. The narrower column cannot hold all keys of the
    /// other: the day the key grows beyond it, every new reference fails. Parameters of one type
    /// are compared with columns of another in every join, and a planner that has to convert may not use an index.
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
    /// Where the types are the same after the last migration, `varchar` and `text` counting as one, and lengths and precisions not
    /// at all; and where one of them is not known.
    ///
    /// ## Other linters
    ///
    /// `online_migrations` and pglinter report the same.
    "mixed-type-comparison", Schema, Warning,
    { recommended: false, sources: &["online_migrations/foreign_key_type_mismatch", "pglinter/B008"] }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Declared::Constraint { constraint, column } = context.declared else { return };
    let Written::ForeignKey(written) = &constraint.kind else { return };
    let columns: Vec<SmolStr> = match column {
        Some(column) => vec![column.into()],
        None => written.columns.iter().map(|column| column.text.clone()).collect(),
    };
    let same = |key: &&ForeignKeyConstraint| key.columns == columns;
    let Some(key) = context.relation.constraints.iter().filter_map(|it| it.foreign_key()).find(same) else { return };
    let Some(referenced) = context.catalog.get_relation(key.referenced) else { return };
    for (own, other) in key.columns.iter().zip(&key.referenced_columns) {
        let (Some(own), Some(other)) = (context.relation.column(own), referenced.column(other)) else { continue };
        let (Some(ours), Some(theirs)) = (name(own.sql_type), name(other.sql_type)) else { continue };
        if ours != theirs {
            let message =
                format!("`{}` is {ours}, and `{}` of `{}` is {theirs}", own.name, other.name, referenced.name);
            let help = format!("give `{}` the type {theirs}", own.name);
            let table = context.relation_name(context.relation);
            drop(reporter.report(constraint.keyword, message).relation(&table).help(help));
        }
    }
}

/// The name of a built-in type; `varchar` is stored and compared as `text`.
fn name(sql_type: SqlType) -> Option<&'static str> {
    let name = type_by_oid(sql_type.oid.0)?.name;
    Some(match name {
        "varchar" => "text",
        "int2" => "smallint",
        "int4" => "integer",
        "int8" => "bigint",
        name => name,
    })
}
