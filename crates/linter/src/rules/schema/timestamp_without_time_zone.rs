//! Timestamps that do not identify a moment.

use super::columns::declared_type;
use crate::declared::DeclarationContext;
use crate::report::Reporter;
use crate::rule::declare_rule;
use pgvet_model::effect::RelationName;

declare_rule! {
    /// A column is of type `timestamp`, without a time zone.
    ///
    /// ## Why it matters
    ///
    /// `timestamp` stores a date and a time of day, not a moment: its meaning depends on the session that wrote it.
    /// Values become ambiguous if sessions have different `TimeZone` settings, if servers are in different regions, and
    /// in the hour that is repeated in autumn. `timestamptz` takes the same eight bytes and stores the moment.
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
    /// - a column that a later migration changes or drops: only its type after the last migration counts
    ///
    /// ## Other linters
    ///
    /// squawk and pgls report the statement. pgvet reports the column as it is after the last migration.
    "timestamp-without-time-zone", Schema, Warning,
    {
        recommended: false,
        sources: &["squawk/prefer-timestamp-tz", "pgls/preferTimestamptz", "pg-migration-lint/PGM101"],
    }
    declaration = check,
}

fn check(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Some((column, range)) = declared_type(context, "timestamp") else { return };
    let message = format!(
        "`{}` stores a date and time without a time zone: sessions in different time zones read it \
                          as different moments",
        column.name
    );
    reporter.report(range, message).relation(&RelationName::existing(context.relation)).help("use timestamptz").emit();
}
