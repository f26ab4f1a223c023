//! Freezing that a migration postpones for good.

use super::storage_options::left_behind;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use pgvet_model::routine::grouped;

declare_rule! {
    /// A migration that raises the age at which rows are frozen, for a table or the server, and does not reset the
    /// setting.
    ///
    /// ## Why it matters
    ///
    /// A value that was raised for a maintenance window only postpones the work. The next anti-wraparound vacuum has
    /// more to freeze, reads the whole table, and restarts soon after it is cancelled. The higher value also leaves
    /// less time until PostgreSQL stops assigning transaction IDs.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE events SET (autovacuum_freeze_max_age = 1000000000);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE events SET (autovacuum_freeze_max_age = 1000000000);
    /// UPDATE events SET kind = 'old' WHERE id BETWEEN 1 AND 10000;
    /// ALTER TABLE events RESET (autovacuum_freeze_max_age);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - values up to PostgreSQL's default
    /// - a migration that resets it, drops the table or undoes the statement with `ROLLBACK`
    "freeze-age-raised", Bloat, Warning,
    {}
    migration = check,
}

/// The defaults of the server's settings, under the names of the storage parameters.
///
/// Source: PostgreSQL 18 documentation, 19.10.
const DEFAULTS: [(&str, u64); 6] = [
    ("autovacuum_freeze_max_age", 200_000_000),
    ("autovacuum_multixact_freeze_max_age", 400_000_000),
    ("autovacuum_freeze_table_age", 150_000_000),
    ("autovacuum_multixact_freeze_table_age", 150_000_000),
    ("autovacuum_freeze_min_age", 50_000_000),
    ("autovacuum_multixact_freeze_min_age", 5_000_000),
];

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    for left in left_behind(context) {
        let own_name = left.name.strip_prefix("toast.").unwrap_or(&left.name);
        let Some((_, default)) = DEFAULTS.iter().find(|(name, _)| *name == own_name) else { continue };
        let Some(value) = left.value.parse::<u64>().ok().filter(|value| value > default) else { continue };
        let (value, default) = (grouped(value), grouped(*default));
        let (message, help) = match &left.table {
            // Source: PostgreSQL 18 documentation, CREATE TABLE, "Storage Parameters".
            Some(table) if own_name.ends_with("freeze_max_age") => (
                format!(
                    "this lets rows of `{}` stay unfrozen for up to {value} transactions, so that the vacuum which \
                     must freeze them comes later and takes longer; PostgreSQL ignores values above the {own_name} \
                     of the server (default {default})",
                    table.name.text
                ),
                format!(
                    "reset the setting at the end of this migration:\n    ALTER TABLE {table} RESET ({});",
                    left.name
                ),
            ),
            Some(table) => (
                format!(
                    "rows of `{}` stay unfrozen for {value} transactions instead of {default}: the vacuum that has to \
                     freeze them comes later and takes longer",
                    table.name.text
                ),
                format!(
                    "reset the setting at the end of this migration:\n    ALTER TABLE {table} RESET ({});",
                    left.name
                ),
            ),
            None => (
                format!(
                    "rows of all tables stay unfrozen for {value} transactions instead of {default}: the vacuum that \
                     has to freeze them comes later and takes longer"
                ),
                format!("reset the setting when the work is done:\n    ALTER SYSTEM RESET {};", left.name),
            ),
        };
        reporter.report(left.range, message).help(help).emit();
    }
}
