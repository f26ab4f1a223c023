//! Keys that run out of numbers.

use super::columns::written_type;
use crate::declared::DeclarationContext;
use crate::report::Reporter;
use crate::rule::declare_rule;
use crate::rules::text::qualified;
use pgvet_model::builtin::type_by_oid;
use pgvet_model::catalog::SqlType;
use pgvet_model::effect::RelationName;

declare_rule! {
    /// An `integer` key with a sequence, or a `bigint` key whose sequence still ends at 2,147,483,647.
    ///
    /// ## Why it matters
    ///
    /// After 2,147,483,647 numbers, used or not, every `INSERT` fails. Then the key, and each column that refers to it,
    /// must become `bigint`, which rewrites the tables. If a `serial` column is widened to `bigint`, its sequence still
    /// ends at the old limit, and `nextval` fails there.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE orders (id serial PRIMARY KEY);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - keys without a sequence
    /// - keys that a later migration widens together with their sequence
    ///
    /// ## Other linters
    ///
    /// squawk and pgls report every integer column. No other known linter checks the sequence.
    "int4-primary-key", Schema, Warning,
    {
        recommended: false,
        sources: &[
            "squawk/prefer-bigint-over-int", "pgls/preferBigInt", "pg-migration-lint/PGM107", "strong_migrations/add_column"],
    }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let table = context.relation;
    let Some((column, range)) = written_type(context) else { return };
    let Some(sequence) = context.catalog.sequence_of(table, &column.name).filter(|_| column.inherited_from == 0) else {
        return;
    };
    let is_key = table.primary_key().is_some_and(|key| key.columns().contains(&column.name));
    let limit = if !is_key || table.is_temporary() { None } else { limit(column.sql_type) };
    let name = RelationName::existing(table);
    if let Some(limit) = limit {
        let message = format!("`{}.{}` runs out of numbers after {limit}", table.name, column.name);
        reporter.report(range, message).relation(&name).help("use bigint").emit();
    } else if let Some(limit) = sequence.sequence().and_then(|own| narrower(own.sql_type, column.sql_type)) {
        let message = format!(
            "the sequence of `{}` still ends at {limit}, although the column can hold larger numbers",
            column.name
        );
        let help = format!(
            "let the sequence generate larger numbers, too:\n    ALTER SEQUENCE {} AS bigint;",
            qualified(&sequence.schema, &sequence.name)
        );
        reporter.report(range, message).relation(&name).help(help).emit();
    }
}

/// The last number of a type that is too small.
fn limit(sql_type: SqlType) -> Option<&'static str> {
    match type_by_oid(sql_type.oid.0)?.name {
        "int2" => Some("32,767"),
        "int4" => Some("2,147,483,647"),
        _ => None,
    }
}

/// The limit of a sequence whose column is wider.
fn narrower(sequence: SqlType, column: SqlType) -> Option<&'static str> {
    let is_wide = type_by_oid(column.oid.0).is_some_and(|row| row.name == "int8");
    limit(sequence).filter(|_| is_wide)
}
