//! varchar(n).

use super::columns::declared_type;
use crate::declared::DeclarationContext;
use crate::report::Reporter;
use crate::rule::declare_rule;
use pgvet_model::effect::RelationName;

declare_rule! {
    /// A column is of type `varchar(n)`.
    ///
    /// ## Why it matters
    ///
    /// The limit is part of the type, so a new limit is a type change. Lowering the limit rewrites the table under an ACCESS
    /// EXCLUSIVE lock. Raising it usually changes only the catalog. However, PostgreSQL rebuilds each index that uses
    /// the column in an expression or predicate, and checks all rows again if a `CHECK` uses the column. While a view
    /// uses the column, PostgreSQL refuses any change of its type.
    ///
    /// A `CHECK` on a `text` column also limits the length. You can replace it without a long lock: add the new `CHECK`
    /// as `NOT VALID`, validate it, and drop the old one. `text` is not slower than `varchar(n)`.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE users (id bigint PRIMARY KEY, name varchar(100));
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE users (id bigint PRIMARY KEY, name text CHECK (char_length(name) <= 100));
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a column that a later migration changes or drops: only its type after the last migration counts
    ///
    /// ## Other linters
    ///
    /// squawk and pgls report the same.
    "varchar-limit", Schema, Warning,
    {
        recommended: false,
        sources: &["squawk/prefer-text-field", "pgls/preferTextField", "pg-migration-lint/PGM108"],
    }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Some((column, range)) = declared_type(context, "varchar").filter(|(column, _)| column.sql_type.typmod >= 0)
    else {
        return;
    };
    let message = format!(
        "the length limit of `{}` is part of its type: lowering the limit rewrites the table, and PostgreSQL refuses any \
         change while a view uses the column",
        column.name
    );
    reporter
        .report(range, message)
        .relation(&RelationName::existing(context.relation))
        .help("use text, with a CHECK (char_length(...) <= ...) if the length matters")
        .emit();
}
