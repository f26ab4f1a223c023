//! Freezing that a migration postpones for good.

use super::storage_options::left_behind;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use pgvet_model::routine::grouped;
use pgvet_syntax::ast::ObjectName;

declare_rule! {
    /// A migration that makes VACUUM freeze rows later than by default, in one table or in all tables, and does not
    /// reset the setting.
    ///
    /// ## Why it matters
    ///
    /// A value that was raised for a maintenance window only postpones the work. The next anti-wraparound vacuum has
    /// more rows to freeze, and has to read every page that is not marked as all-frozen. If somebody cancels it, it
    /// soon starts again. A higher `autovacuum_freeze_max_age` also leaves less time before PostgreSQL runs out of
    /// transaction IDs and refuses writes.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE events SET (autovacuum_freeze_min_age = 100000000);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// ALTER TABLE events SET (autovacuum_freeze_min_age = 100000000);
    /// UPDATE events SET kind = 'old' WHERE id BETWEEN 1 AND 10000;
    /// ALTER TABLE events RESET (autovacuum_freeze_min_age);
    /// ```
    ///
    /// The rule checks `autovacuum_freeze_min_age`, `autovacuum_freeze_table_age`, `autovacuum_freeze_max_age` and the
    /// same settings for multixact IDs.
    ///
    /// ## When it is not reported
    ///
    /// - values that do not exceed PostgreSQL's default
    /// - `autovacuum_freeze_max_age` and `autovacuum_multixact_freeze_max_age` of a table: PostgreSQL ignores a value
    ///   above the setting of the server
    /// - a migration that resets the setting, drops the table, or undoes the statement with `ROLLBACK`
    "freeze-age-raised", Bloat, Warning,
    {}
    migration = check,
}

/// The storage parameters, the defaults of the server's settings, and the highest value that has an effect if the
/// server has its default `autovacuum_freeze_max_age`: half of that, or 95 %.
///
/// Source: PostgreSQL 18 documentation, 19.10; `src/backend/commands/vacuum.c`, `vacuum_get_cutoffs`.
const PARAMETERS: [(&str, u64, u64); 6] = [
    ("autovacuum_freeze_max_age", 200_000_000, u64::MAX),
    ("autovacuum_multixact_freeze_max_age", 400_000_000, u64::MAX),
    ("autovacuum_freeze_table_age", 150_000_000, 190_000_000),
    ("autovacuum_multixact_freeze_table_age", 150_000_000, 380_000_000),
    ("autovacuum_freeze_min_age", 50_000_000, 100_000_000),
    ("autovacuum_multixact_freeze_min_age", 5_000_000, 200_000_000),
];

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    for left in left_behind(context) {
        let parameter = left.name.strip_prefix("toast.").unwrap_or(&left.name);
        let Some(&(_, default, limit)) = PARAMETERS.iter().find(|(name, ..)| *name == parameter) else { continue };
        // A table can only lower this setting of the server.
        if left.table.is_some() && parameter.ends_with("freeze_max_age") {
            continue;
        }
        let Some(value) = left.value.parse::<u64>().ok().filter(|value| *value > default) else { continue };
        let postponed = postponed(parameter, left.table.as_ref(), value.min(limit), default);
        let of = if parameter.contains("multixact") { "multixact_" } else { "" };
        let limited = if value > limit {
            format!("; this statement sets a higher value, which autovacuum_{of}freeze_max_age limits")
        } else {
            String::new()
        };
        let message = format!("{postponed}: the vacuum that freezes the rows runs later and takes longer{limited}");
        let help = match &left.table {
            Some(table) => format!(
                "reset the setting at the end of this migration:\n    ALTER TABLE {table} RESET ({});",
                left.name
            ),
            None => format!("reset the setting at the end of this migration:\n    ALTER SYSTEM RESET {};", left.name),
        };
        reporter.report(left.range, message).help(help).emit();
    }
}

/// What the parameter postpones.
///
/// Source: PostgreSQL 18 documentation, 24.1.5.
fn postponed(parameter: &str, table: Option<&ObjectName>, value: u64, default: u64) -> String {
    let whose = table.map_or_else(|| "all tables".to_owned(), |table| format!("`{}`", table.name.text));
    let unit = if parameter.contains("multixact") { "multixact IDs" } else { "transactions" };
    let (value, default) = (grouped(value), grouped(default));
    match parameter.rsplit_once("freeze_").map(|(_, kind)| kind) {
        Some("min_age") => {
            format!("VACUUM freezes rows of {whose} only when they are {value} {unit} old, instead of {default}")
        }
        Some("table_age") => {
            format!("VACUUM reads all unfrozen pages of {whose} only after {value} {unit}, instead of {default}")
        }
        _ => format!(
            "PostgreSQL forces an anti-wraparound vacuum of each table only after {value} {unit}, instead of {default}"
        ),
    }
}
