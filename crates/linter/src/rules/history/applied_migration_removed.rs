//! A migration that databases have applied, and whose file is gone or has another name.

use super::{assuming_applied, first_word, refusal, tool, way_around};
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::severity::Severity;
use pgvet_model::incident::{Consequence, Incident, IncidentKind};

declare_rule! {
    /// A migration that exists in the base revision and is now deleted, renamed or renumbered.
    ///
    /// ## Why it matters
    ///
    /// If the file was deleted, databases that have applied it keep its changes, and new databases never get them. If it
    /// was renamed, some tools no longer recognize it as applied. What a tool does then depends on the tool:
    ///
    /// - Flyway, sqlx, refinery, Supabase, sql-migrate and node-pg-migrate refuse to run.
    /// - golang-migrate refuses to run if the migration is the newest applied migration. Otherwise it ignores the
    ///   missing file.
    /// - goose, dbmate, Diesel, pop, Drizzle and Postgrator ignore the missing file.
    ///
    /// Tools that do not refuse to run treat a migration with a different version as a new one. Its statements run
    /// again on the same database, and most fail because the objects exist. Flyway, refinery, sql-migrate,
    /// node-pg-migrate, Prisma and Sqitch also compare names: for them, a migration with a new name is another
    /// migration, even if its version is the same.
    ///
    /// ## Example
    ///
    /// ```console
    /// $ git mv migrations/V3__orders.sql migrations/V7__orders.sql
    /// ```
    ///
    /// Use instead:
    ///
    /// Keep the file and its name. To undo its changes, write a new migration.
    ///
    /// ## When it is not reported
    ///
    /// - Without `--since`, `--staged` or `--changed`, because nothing shows what has been applied.
    /// - If the whole folder of migrations was removed, or the file has moved to another folder and kept its name.
    /// - If only the name has changed, and the tool identifies migrations by their versions.
    /// - For files without a version in their names, rollback migrations, and changelogs of Liquibase.
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible`, and the finding is shown only with `--confidence possible`:
    ///
    /// - with `--staged` and `--changed`, if the migration is committed only on this branch. The base branch is
    ///   `origin/HEAD`, or else `main` or `master`. If none exists, each migration may be only on this branch
    /// - if the tool ignores missing files, and other migrations are added or edited at the same time: these may
    ///   contain the statements of the removed one
    ///
    /// ## Incidents
    ///
    /// - [sqlx #2079](https://github.com/transact-rs/sqlx/issues/2079): sqlx refused to run after a file was deleted
    /// - [kaiden #2860](https://github.com/openkaiden/kaiden/issues/2860): a gateway did not start because an applied
    ///   migration was missing
    "applied-migration-removed", History, Error,
    {}
    migration = check,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    for incident in context.migration.incidents {
        let Some((message, severity)) = message(incident) else { continue };
        let finding = reporter.report(first_word(context), message).severity(severity);
        let help = match &incident.kind {
            IncidentKind::Renamed { .. } => "give the file its old name",
            _ => "restore the file, and undo what it did in a new migration",
        };
        let finding = finding.help(format!("{help}{}", way_around(incident.consequence)));
        let mut finding = assuming_applied(finding, incident);
        let is_refused = matches!(incident.consequence, Consequence::Refuses { .. });
        if matches!(incident.kind, IncidentKind::Removed { may_be_replaced: true, .. }) && !is_refused {
            finding = finding.assuming(Assumption::NotReplaced);
        }
        if matches!(incident.kind, IncidentKind::Renamed { changes_version: false, .. })
            && incident.consequence == Consequence::Unknown
        {
            finding = finding.assuming(Assumption::NamesCompared);
        }
        finding.emit();
    }
}

/// Returns what has happened and what follows, and how bad that is; `None` if it does no harm.
fn message(incident: &Incident) -> Option<(String, Severity)> {
    let what = match &incident.kind {
        IncidentKind::Removed { others: 0, .. } => "this applied migration was deleted".to_owned(),
        IncidentKind::Removed { others: 1, .. } => "this and 1 other applied migration were deleted".to_owned(),
        IncidentKind::Removed { others, .. } => format!("this and {others} other applied migrations were deleted"),
        IncidentKind::Renamed { to, .. } => format!("this applied migration was renamed to `{to}`"),
        _ => return None,
    };
    let is_renamed = matches!(incident.kind, IncidentKind::Renamed { .. });
    let (then, severity) = match incident.consequence {
        Consequence::Refuses { saying, .. } => (refusal(incident, saying), Severity::Error),
        Consequence::Runs => {
            let message =
                format!("{} treats it as new and runs it again on databases that have applied it", tool(incident));
            (message, Severity::Error)
        }
        Consequence::Ignores | Consequence::Skips if is_renamed => return None,
        Consequence::Ignores | Consequence::Skips => (
            "databases that have applied it keep its changes, and new databases never get them".to_owned(),
            Severity::Warning,
        ),
        Consequence::Unknown if is_renamed => (
            "some migration tools refuse to run on databases that have applied it, others run it again".to_owned(),
            Severity::Warning,
        ),
        Consequence::Unknown => (
            "new databases never get its changes, and some migration tools refuse to run on those that have applied it"
                .to_owned(),
            Severity::Warning,
        ),
    };
    Some((format!("{what}: {then}"), severity))
}
