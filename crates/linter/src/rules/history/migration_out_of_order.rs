//! A new migration that sorts before one that databases have applied.

use super::{assuming_applied, first_word, tool, way_around};
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::severity::Severity;
use pgvet_model::incident::{Consequence, Incident, IncidentKind, OrderedBy};

declare_rule! {
    /// A new migration whose version is earlier than that of a migration that already exists in the base revision.
    ///
    /// ## Why it matters
    ///
    /// This happens if two branches each add a migration, and the migration with the earlier version is merged last. A
    /// new database, for example in CI, runs both migrations in order, so nothing fails there. On a database that has
    /// already applied the later migration, the result depends on the migration tool:
    ///
    /// - golang-migrate and Postgrator never run the earlier migration, and report no error. Drizzle before 1.0 runs a
    ///   journal entry only if its `when` is later than that of the newest applied entry. Drizzle 1.0 runs the earlier
    ///   migration.
    /// - goose, Flyway, Atlas, Supabase, refinery and node-pg-migrate refuse to run.
    /// - dbmate, sqlx, sql-migrate, Diesel, pop and Prisma run the earlier migration after the later one.
    ///
    /// ## Example
    ///
    /// ```console
    /// $ git diff --name-status main
    /// A  migrations/000003_add_note.up.sql
    /// $ ls migrations
    /// 000003_add_note.up.sql  000005_orders.up.sql
    /// ```
    ///
    /// Use instead:
    ///
    /// Give the new migration the next version, `000006_add_note.up.sql`.
    ///
    /// ## When it is not reported
    ///
    /// - Without `--since`, `--staged` or `--changed`, because nothing shows which migrations are new.
    /// - If the tool does not take the order from file names or versions: Sqitch (plan), Liquibase (changelog).
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible`, and the finding is shown only with `--confidence possible`:
    ///
    /// - with `--staged` and `--changed`, if the later migration is committed only on this branch. The base branch is
    ///   `origin/HEAD`, or else `main` or `master`. If none exists, each migration may be only on this branch
    /// - if the tool runs the new migration after the others, or no tool is known
    ///
    /// ## Incidents
    ///
    /// - [superplane #4812](https://github.com/superplanehq/superplane/issues/4812): golang-migrate never ran a
    ///   migration that was merged late
    /// - [goose #121](https://github.com/pressly/goose/issues/121): goose skipped a migration that was merged late and
    ///   reported no error, but newer versions of goose refuse to run
    "migration-out-of-order", History, Error,
    {}
    migration = check,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    for incident in context.migration.incidents {
        let IncidentKind::OutOfOrder { newest, by } = &incident.kind else { continue };
        let Some((then, severity)) = consequence(incident) else { continue };
        let (message, step) = match by {
            OrderedBy::Name => (
                format!("this new migration sorts before `{newest}`, which is applied: {then}"),
                format!("rename it so that its version comes after `{newest}`"),
            ),
            OrderedBy::Journal => (
                format!(
                    "in the journal, the time of this new migration is not later than that of `{newest}`, which is \
                         applied: {then}"
                ),
                format!("set `when` of its entry in `meta/_journal.json` to a later time than that of `{newest}`"),
            ),
        };
        let help = format!("{step}{}", way_around(incident.consequence));
        let finding = reporter.report(first_word(context), message).severity(severity).help(help);
        let mut finding = assuming_applied(finding, incident);
        if matches!(incident.consequence, Consequence::Runs | Consequence::Unknown) {
            finding = finding.assuming(Assumption::OrderMatters);
        }
        finding.emit();
    }
}

/// Returns what the tool does, and how bad that is.
fn consequence(incident: &Incident) -> Option<(String, Severity)> {
    let tool = tool(incident);
    Some(match incident.consequence {
        Consequence::Refuses { saying, .. } => (format!("{tool} refuses to run (\"{saying}\")"), Severity::Error),
        Consequence::Skips => {
            (format!("{tool} never runs it on existing databases, and reports no error"), Severity::Error)
        }
        Consequence::Runs => {
            (format!("{tool} runs it on existing databases in a different order than on a new one"), Severity::Warning)
        }
        Consequence::Unknown => (
            "on existing databases, migration tools skip it, refuse to run, or run it in a different order".to_owned(),
            Severity::Warning,
        ),
        Consequence::Ignores => return None,
    })
}
