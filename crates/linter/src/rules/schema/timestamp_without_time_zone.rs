//! Timestamps that do not say which moment they mean.

use super::columns::declared_type;
use crate::declared::DeclarationContext;
use crate::effect::RelationName;
use crate::report::Reporter;
use crate::rule::declare_rule;

declare_rule! {
    /// A column is of type `timestamp`, without a time zone.
    ///
    /// ## Why it matters
    ///
    /// `timestamp` stores a date and a time of day, and no moment: what it means depends on who wrote it. Sessions with different
    /// `TimeZone` settings, servers in another region and the hour that comes twice in autumn make values that cannot be told apart.
    /// `timestamptz` takes the same eight bytes and stores the moment.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE orders (id bigint PRIMARY KEY, placed_at timestamp NOT NULL);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE orders (id bigint PRIMARY KEY, placed_at timestamptz NOT NULL);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// What counts is the type of the column after the last migration: one that a later migration changes or drops is fine.
    ///
    /// ## Other linters
    ///
    /// squawk and pgls report the statement; pgvet reports the column that is left after the last migration.
    "timestamp-without-time-zone", Schema, Warning,
    {
        recommended: false,
        sources: &["squawk/prefer-timestamp-tz", "pgls/preferTimestamptz", "pg-migration-lint/PGM101"],
    }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Some((column, range)) = declared_type(context, "timestamp") else { return };
    let message = format!("`{}` stores a time of day that means another moment in every time zone", column.name);
    reporter.report(range, message).relation(&RelationName::existing(context.relation)).help("use timestamptz").emit();
}
