//! json instead of jsonb.

use super::columns::declared_type;
use crate::declared::DeclarationContext;
use crate::report::Reporter;
use crate::rule::declare_rule;
use pgvet_model::effect::RelationName;

declare_rule! {
    /// A column is of type `json`.
    ///
    /// ## Why it matters
    ///
    /// `json` stores the text as it is, so PostgreSQL parses the value again on every access. The type has no equality
    /// operator, so `DISTINCT`, `GROUP BY` and `UNION` fail. A `json` column also cannot have a GIN index. `jsonb` has
    /// none of these limits, but it does not keep the order of keys, duplicate keys, or white space.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE events (id bigint PRIMARY KEY, payload json);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE events (id bigint PRIMARY KEY, payload jsonb);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a column that a later migration changes or drops: only its type after the last migration counts
    ///
    /// ## Other linters
    ///
    /// eugene and pgls report the statement. pgvet reports the column as it is after the last migration.
    "json-column", Schema, Warning,
    {
        recommended: false,
        sources: &["eugene/E3", "pgls/preferJsonb", "pg-migration-lint/PGM106", "strong_migrations/add_column_json"],
    }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Some((column, range)) = declared_type(context, "json") else { return };
    let message = format!(
        "`{}` has type json, which is parsed on every access and supports neither equality comparisons nor GIN indexes",
        column.name
    );
    reporter.report(range, message).relation(&RelationName::existing(context.relation)).help("use jsonb").emit();
}
