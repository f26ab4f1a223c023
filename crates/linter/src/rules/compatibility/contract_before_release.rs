//! Migrations that a comment calls `contract`, and that run too early.

use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::rules::deployment::phases::{TooEarly, too_early};
use crate::rules::text::enumerate;
use smol_str::SmolStr;

declare_rule! {
    /// A migration that removes what deployed code still needs, because the release that it waits for is not deployed.
    ///
    /// ## Why it matters
    ///
    /// Some changes take several releases: a migration *expands* the schema, code that works with both forms is
    /// deployed, a migration *backfills* old rows, and a last one *contracts* the schema. If the last migration runs
    /// before the code is deployed everywhere, the code that still runs fails. The files of all phases are often
    /// written together, and most tools run every pending file, so they also run together.
    ///
    /// A comment states the phase of a migration and the release that it waits for:
    ///
    /// ```text
    /// -- pgvet: phase contract after 2.4
    /// ```
    ///
    /// `[releases]` in `pgvet.toml` names the release that is deployed. See
    /// [docs/phases.md](../docs/phases.md).
    ///
    /// Reported is a `contract` migration
    ///
    /// - that names a release which is not deployed, or no release although `[releases]` is configured
    /// - that is released together with a migration with `phase expand` or `phase backfill` for the same table: with
    ///   `--since`, both are new
    ///
    /// ## Example
    ///
    /// Release 2.3 is deployed:
    ///
    /// ```sql,reported
    /// -- set: deployed 2.3
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, name text, full_name text);
    /// -- migration:
    /// -- pgvet: phase contract after 2.4
    /// ALTER TABLE users DROP COLUMN name;
    /// ```
    ///
    /// Use instead:
    ///
    /// Deploy release 2.4, set `deployed = "2.4"` under `[releases]`, and then merge the migration.
    ///
    /// ```sql,clean
    /// -- set: deployed 2.4
    /// -- history:
    /// CREATE TABLE users (id bigint PRIMARY KEY, name text, full_name text);
    /// -- migration:
    /// -- pgvet: phase contract after 2.4
    /// ALTER TABLE users DROP COLUMN name;
    /// ```
    ///
    /// After release 2.4 is deployed, findings about deployed code in this migration, such as `drop-column`, are only
    /// `possible`.
    ///
    /// ## When it is not reported
    ///
    /// - migrations without such a comment: `drop-column`, `rename-column` and similar rules report them
    ///
    /// These rules report nothing in a migration that this rule reports.
    ///
    /// ## Incidents
    ///
    /// - [lightdash #24441](https://github.com/lightdash/lightdash/issues/24441): migrations ran before the new version was
    ///   rolled out, and the old pods crashed
    ///
    /// ## Other linters
    ///
    /// No other known linter knows which release is deployed.
    "contract-before-release", Compatibility, Error,
    { covers_migration: true }
    migration = check,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let Some((why, marker)) = too_early(context) else { return };
    match why {
        TooEarly::Unreleased { release } => {
            let message = format!(
                "this migration waits for release {release}, but only {} is deployed: code that still runs fails after it",
                deployed(context)
            );
            let help = format!(
                "deploy release {release} everywhere, name it under [releases] in pgvet.toml, and then merge the migration"
            );
            reporter.report(marker, message).help(help).emit();
        }
        TooEarly::NoRelease => {
            let message = "this migration does not name the release after which no deployed code needs what it removes";
            let help = format!("write `pgvet: phase contract after RELEASE`; deployed is {}", deployed(context));
            reporter.report(marker, message).help(help).emit();
        }
        TooEarly::Together { file, marker: other, phase, table } => {
            let message = format!(
                "this migration contracts `{table}` in the same deployment that runs its `{}` phase: code that works with \
                 both forms is not deployed between the two",
                phase.as_str()
            );
            let help = "leave this migration out of the change; deploy the code that works with the new form, and merge \
                        the migration afterwards";
            let finding = reporter.report(marker, message);
            finding.label_in(file, other, format!("the `{}` phase", phase.as_str())).help(help).emit();
        }
    }
}

/// The releases that are deployed, in words.
fn deployed(context: &MigrationContext<'_>) -> String {
    enumerate(context.settings.releases.deployed.iter().map(SmolStr::as_str))
}
