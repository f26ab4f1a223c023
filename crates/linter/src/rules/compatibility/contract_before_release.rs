//! Migrations that a comment calls `contract`, and that run too early.

use crate::phase::Phase;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::rules::deployment::phases::{TooEarly, too_early};
use crate::rules::text::enumerate;
use smol_str::SmolStr;

declare_rule! {
    /// A migration that removes a part of the schema too early: the release that no longer needs this part is not
    /// deployed yet.
    ///
    /// ## Why it matters
    ///
    /// Some changes take several releases. A migration *expands* the schema, and code that works with the old and the
    /// new schema is deployed. A second migration *backfills* old rows. A last migration *contracts* the schema: it
    /// removes what the new code no longer needs.
    ///
    /// If the last migration runs before the new code is deployed everywhere, it breaks the old code, which is still
    /// running. The files of all phases are often written together, and most tools run every pending file, so the last
    /// phase easily runs too early.
    ///
    /// A comment states the phase of a migration and the release that must be deployed first:
    ///
    /// ```text
    /// -- pgvet: phase contract after 2.4
    /// ```
    ///
    /// `[releases]` in `pgvet.toml` names the release that is deployed. See
    /// [docs/phases.md](../docs/phases.md).
    ///
    /// The rule reports a `contract` migration if one of these is true:
    ///
    /// - The comment names a release that is not deployed.
    /// - The comment names no release, although `[releases]` is configured.
    /// - The migration is released together with a migration that has `phase expand` or `phase backfill` and uses the
    ///   same table. pgvet assumes that all migrations that are new since the `--since` revision are released together.
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
    /// After release 2.4 is deployed, other rules still report effects of this migration on deployed code, for example
    /// `drop-column`. The confidence of these findings is only `possible`.
    ///
    /// ## When it is not reported
    ///
    /// - migrations without a phase comment: `drop-column`, `rename-column` and similar rules report them
    ///
    /// In a migration that `contract-before-release` reports, those rules report nothing.
    ///
    /// ## Incidents
    ///
    /// - [lightdash #24441](https://github.com/lightdash/lightdash/issues/24441): migrations ran before the new version
    ///   was rolled out, and the old pods crashed
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
                "this migration breaks code that is still running: it needs release `{release}` everywhere, but only \
                 {} deployed",
                deployed(context)
            );
            let help = format!(
                "deploy release `{release}` everywhere, add it to [releases] in pgvet.toml, and then merge this \
                 migration"
            );
            reporter.report(marker, message).help(help).emit();
        }
        TooEarly::NoRelease => {
            let message = "this migration removes part of the schema, but does not name the first release whose code \
                           no longer uses that part";
            let help = format!(
                "change this comment to `-- pgvet: phase contract after RELEASE`, where RELEASE is the first release \
                 that no longer uses the removed part (pgvet.toml says that {} deployed)",
                deployed(context)
            );
            reporter.report(marker, message).help(help).emit();
        }
        TooEarly::Together { file, marker: other, phase, table } => {
            let adds = if phase == Phase::Expand { "adds" } else { "fills" };
            let message = format!(
                "this migration removes part of `{table}` in the same deployment that {adds} its replacement, so no \
                 release that works with both can be deployed in between"
            );
            let help = "move this migration to a later deployment: first deploy code that works with the old and the \
                        new columns, then merge this migration";
            let finding = reporter.report(marker, message);
            finding.label_in(file, other, format!("the `{}` phase", phase.as_str())).help(help).emit();
        }
    }
}

/// The releases that are deployed, in words, with the verb.
fn deployed(context: &MigrationContext<'_>) -> String {
    let releases = &context.settings.releases.deployed;
    let verb = if releases.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", enumerate(releases.iter().map(SmolStr::as_str)))
}
