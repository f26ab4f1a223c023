//! Two migrations with one version.

use super::{assuming_applied, first_word, tool};
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::severity::Severity;
use pgvet_model::incident::{Consequence, IncidentKind};

declare_rule! {
    /// Two migrations with the same version.
    ///
    /// ## Why it matters
    ///
    /// Most tools record which versions are applied, so two migrations with the same version cannot both be recorded:
    ///
    /// - goose, golang-migrate, Flyway, refinery and Postgrator refuse to run anything, on every database.
    /// - sqlx and Supabase fail, because the version is already recorded.
    /// - dbmate fails after it has run the second migration. If one of the two is already applied, dbmate never runs
    ///   the other, and reports no error.
    /// - pop and Diesel run only one of the two migrations.
    ///
    /// Two migrations get the same version if two branches each add the next version, and both branches are merged.
    ///
    /// ## Example
    ///
    /// ```console
    /// $ ls migrations
    /// 000005_add_note.up.sql  000005_orders.up.sql
    /// ```
    ///
    /// Use instead:
    ///
    /// Give the migration that is not applied yet the next version, `000006_add_note.up.sql`.
    ///
    /// ## When it is not reported
    ///
    /// - If the tool identifies migrations by their whole names: node-pg-migrate, sql-migrate, Prisma, Drizzle.
    /// - If no tool is known, or the other migration is not in the same folder. Flyway also reads the folders below its
    ///   locations. If configuration or code lists two such folders apart, the finding has the confidence `possible`.
    ///
    /// ## Incidents
    ///
    /// - [onboarding-service #1940](https://github.com/TulevaEE/onboarding-service/pull/1940): two branches used the
    ///   same version, and nothing could be deployed
    /// - [killbill #2180](https://github.com/killbill/killbill/pull/2180): Flyway refused the migrations of a release
    "duplicate-migration-version", History, Error,
    {}
    migration = check,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    for incident in context.migration.incidents {
        let IncidentKind::SameVersion { version, other, is_rollback, apart } = &incident.kind else { continue };
        let tool = tool(incident);
        let (then, severity) = match incident.consequence {
            Consequence::Refuses { saying, .. } => (format!("{tool} fails (\"{saying}\")"), Severity::Error),
            Consequence::Skips => (
                format!(
                    "{tool} runs only one of the two migrations, and reports no \
                                            error"
                ),
                Severity::Error,
            ),
            Consequence::Ignores | Consequence::Runs | Consequence::Unknown => continue,
        };
        let message = format!("this migration and `{other}` have the same version {version}: {then}");
        let help = if *is_rollback {
            format!(
                "move the rollback script out of this folder, or give it the name that {tool} expects of a down \
                 migration: with another version, {tool} would run it as a migration"
            )
        } else {
            "give the migration that no database has applied yet the next free version".to_owned()
        };
        let finding = reporter.report(first_word(context), message).severity(severity).help(help);
        let together = apart.as_ref().map(|place| Assumption::ScannedTogether { place: place.as_str().into() });
        assuming_applied(finding, incident).assuming(together).emit();
    }
}
