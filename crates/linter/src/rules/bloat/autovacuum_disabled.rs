//! Autovacuum that a migration disables for good.

use super::storage_options::{is_off, left_behind};
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};

declare_rule! {
    /// A migration that disables autovacuum, for a table or the server, and does not enable it again.
    ///
    /// ## Why it matters
    ///
    /// Autovacuum is often disabled for a bulk load and then forgotten. Dead rows pile up, the table and its indexes
    /// grow with every update, and the planner works with old statistics. The anti-wraparound vacuum still runs, and
    /// then has to do all of the postponed work at once.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE events SET (autovacuum_enabled = false);
    /// COPY events FROM '/data/events.csv';
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE events SET (autovacuum_enabled = false);
    /// COPY events FROM '/data/events.csv';
    /// ALTER TABLE events RESET (autovacuum_enabled);
    /// ANALYZE events;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a migration that enables autovacuum again, drops the table, or undoes the statement with `ROLLBACK`
    /// - temporary tables, which autovacuum never processes
    "autovacuum-disabled", Bloat, Warning,
    {}
    migration = check,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    for left in left_behind(context) {
        let is_switch = matches!(left.name.as_str(), "autovacuum_enabled" | "toast.autovacuum_enabled" | "autovacuum");
        if !is_switch || !is_off(&left.value) {
            continue;
        }
        let (message, help) = match &left.table {
            Some(table) => (
                format!(
                    "autovacuum stays disabled for `{}`: dead rows pile up and the planner's statistics go stale",
                    table.name.text
                ),
                format!(
                    "enable autovacuum again at the end of this migration:\n    ALTER TABLE {table} RESET ({});",
                    left.name
                ),
            ),
            None => (
                "autovacuum stays disabled for the whole server: dead rows pile up and the planner's statistics go \
                 stale"
                    .to_owned(),
                "enable autovacuum again at the end of this migration:\n    ALTER SYSTEM RESET autovacuum;\n    SELECT \
                 pg_reload_conf();"
                    .to_owned(),
            ),
        };
        reporter.report(left.range, message).help(help).emit();
    }
}
