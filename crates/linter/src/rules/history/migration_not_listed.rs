//! A new migration that the migration tool's own list does not name.

use super::{first_word, tool};
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::severity::Severity;
use pgvet_model::incident::{Consequence, IncidentKind};

declare_rule! {
    /// A new migration that is missing from the list of migrations that the migration tool runs.
    ///
    /// ## Why it matters
    ///
    /// Some tools run only the migrations that a list names. A file that is written by hand is often missing from the
    /// list. The line of a file can also be lost in a merge. The tools handle a missing line differently:
    ///
    /// - Drizzle before 1.0 runs only the migrations that `meta/_journal.json` names, and Sqitch only those that
    ///   `sqitch.plan` names. Both tools ignore other files, and report no error.
    /// - Atlas compares the files with `atlas.sum`, and refuses to run if `atlas.sum` lacks a file.
    ///
    /// ## Example
    ///
    /// ```console
    /// $ git diff --name-only main
    /// drizzle/0004_add_note.sql
    /// ```
    ///
    /// Use instead:
    ///
    /// ```console
    /// $ git diff --name-only main
    /// drizzle/0004_add_note.sql
    /// drizzle/meta/_journal.json
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - Without `--since`, `--staged` or `--changed`. The summary then counts the files that the list does not name.
    /// - For files that no changelog of Liquibase includes.
    ///
    /// ## Incidents
    ///
    /// - [relay #26](https://github.com/Flatts3000/relay/issues/26): three migrations written by hand were not in the
    ///   journal, and a new database lacked their tables
    /// - [optio #369](https://github.com/jonwiggins/optio/pull/369): a migration without an entry in the journal never
    ///   ran, and a worker crashed because a column was missing
    /// - [babylon #1211](https://github.com/BabylonSocial/babylon/pull/1211): two migrations were not in the journal,
    ///   which was noticed only when a new feature failed on staging
    "migration-not-listed", History, Error,
    {}
    migration = check,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    for incident in context.migration.incidents {
        let IncidentKind::NotListed { list } = incident.kind else { continue };
        let tool = tool(incident);
        let (then, help) = match incident.consequence {
            Consequence::Refuses { saying, unless } => {
                let help = unless.map_or_else(|| format!("add it to `{list}`"), str::to_owned);
                (format!("{tool} refuses to run (\"{saying}\")"), help)
            }
            _ => (format!("{tool} never runs it, and reports no error"), format!("add it to `{list}` with the tool")),
        };
        let message = format!("this new migration is not in `{list}`: {then}");
        reporter.report(first_word(context), message).severity(Severity::Error).help(help).emit();
    }
}
