//! An edit of a migration that databases have applied.

use super::{assuming_applied, first_word, refusal, tool, way_around};
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};
use crate::severity::Severity;
use pgvet_model::incident::{Consequence, HashOf, Incident, IncidentKind};

declare_rule! {
    /// An edit of a migration that already exists in the base revision, or that `atlas.sum` has a hash of.
    ///
    /// ## Why it matters
    ///
    /// A migration runs once on each database. Databases that have applied it never get the edit. New databases, such
    /// as test databases, run only the edited text. The schemas of old and new databases then differ, and no error
    /// shows the difference.
    ///
    /// Some tools store a checksum of the file, and after an edit, even of a comment, they refuse to run any migration.
    /// Others ignore the edit:
    ///
    /// - Flyway, sqlx, refinery and Postgrator refuse to run.
    /// - Atlas refuses to run if the hash of a file differs from that in `atlas.sum`. This includes new migrations whose
    ///   hash is out of date.
    /// - goose, golang-migrate, dbmate, sql-migrate, Diesel, pop, Supabase, Drizzle, node-pg-migrate and Sqitch ignore
    ///   the edit. graphile-migrate ignores it, too, but then refuses to run the file on a new database. Atlas ignores
    ///   it if `atlas.sum` is updated. `prisma migrate deploy` ignores it, too, and prints a warning.
    ///
    /// ## Example
    ///
    /// ```console
    /// $ git diff main -- migrations/000003_orders.up.sql
    /// -CREATE TABLE orders (id bigint PRIMARY KEY);
    /// +CREATE TABLE orders (id bigint PRIMARY KEY, note text);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```console
    /// $ cat migrations/000004_orders_note.up.sql
    /// ALTER TABLE orders ADD COLUMN note text;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - Without `--since`, `--staged` or `--changed`, because nothing shows what has been applied. Hashes in `atlas.sum`
    ///   are always compared.
    /// - If the tool ignores edits, and only comments, white space, the case of words, guards such as `IF NOT EXISTS`
    ///   or the rollback part have changed.
    /// - For files after the first one that differs from its hash, because each hash includes all earlier files. Hashes are
    ///   not compared if Atlas reads a folder of Flyway, or if a file or its hash is missing.
    /// - For files without a version in their names, Flyway's repeatable migrations, and Liquibase's changelogs.
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible`, and the finding is shown only with `--confidence possible`:
    ///
    /// - with `--staged` and `--changed`, if the migration is committed only on this branch. The base branch is
    ///   `origin/HEAD`, or else `main` or `master`. If none exists, each migration may be only on this branch
    /// - if no tool is known, and only comments, white space, guards or similar details have changed
    ///
    /// ## Incidents
    ///
    /// - [breeze #2624](https://github.com/LanternOps/breeze/issues/2624): a release edited eight applied migrations,
    ///   and the program did not start after the upgrade
    /// - [meridian #261](https://github.com/Meridiona/meridian/pull/261): a changed comment at the top of 34 migrations
    ///   made each upgraded installation crash at startup, with sqlx
    /// - [ironclaw #1328](https://github.com/nearai/ironclaw/issues/1328): refinery refused the upgrade
    "applied-migration-edited", History, Error,
    {}
    migration = check,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    for incident in context.migration.incidents {
        if let IncidentKind::HashDiffers { of, only_line_endings } = &incident.kind {
            report_hash(context, incident, of, *only_line_endings, reporter);
        }
        let IncidentKind::Edited { changes_sql } = incident.kind else { continue };
        if let Some((consequence, severity)) = consequence(incident, changes_sql) {
            let what = if changes_sql {
                "this edits an applied migration"
            } else {
                "this edits the text of an applied migration"
            };
            let finding = reporter.report(first_word(context), format!("{what}: {consequence}"));
            let change = if changes_sql { ", and make the change in a new migration" } else { "" };
            let help = format!("restore the previous text of the file{change}{}", way_around(incident.consequence));
            let mut finding = assuming_applied(finding.severity(severity).help(help), incident);
            if !changes_sql && incident.consequence == Consequence::Unknown {
                finding = finding.assuming(Assumption::ChecksumsCompared);
            }
            finding.emit();
        }
    }
}

/// Reports a hash in `atlas.sum` that does not match.
fn report_hash(
    context: &MigrationContext<'_>,
    incident: &Incident,
    of: &HashOf,
    only_line_endings: bool,
    reporter: &mut Reporter<'_>,
) {
    let Consequence::Refuses { saying, .. } = incident.consequence else { return };
    let what = match of {
        HashOf::This => "this migration does not match its hash in `atlas.sum`".to_owned(),
        HashOf::Other(name) => format!("`{name}` does not match its hash in `atlas.sum`"),
        HashOf::All => "the first line of `atlas.sum` does not match its other lines".to_owned(),
    };
    let update = "update `atlas.sum` with `atlas migrate hash`";
    let help = match of {
        HashOf::All => update.to_owned(),
        _ if only_line_endings => format!(
            "give all files the line endings with which the hashes were computed, for example with `*.sql text eol=lf` \
             in .gitattributes, or {update}"
        ),
        _ => format!(
            "if databases have applied it, restore its previous text and make the change in a new migration; otherwise \
             {update}"
        ),
    };
    let because = if only_line_endings { ", because it has other line endings" } else { "" };
    let message = format!("{what}{because}: {} refuses to run (\"{saying}\")", tool(incident));
    reporter.report(first_word(context), message).severity(Severity::Error).help(help).emit();
}

/// Returns what the tool does, and how bad that is; `None` if it does no harm.
fn consequence(incident: &Incident, changes_sql: bool) -> Option<(String, Severity)> {
    match incident.consequence {
        Consequence::Refuses { saying, .. } => Some((refusal(incident, saying), Severity::Error)),
        Consequence::Ignores | Consequence::Skips | Consequence::Runs if changes_sql => {
            let message = format!(
                "{} does not run it again, so databases that have applied it never get the change",
                tool(incident)
            );
            Some((message, Severity::Warning))
        }
        Consequence::Ignores | Consequence::Skips | Consequence::Runs => None,
        Consequence::Unknown => {
            let message = "databases that have applied it never get the change, and some migration tools refuse to run";
            Some((message.to_owned(), Severity::Warning))
        }
    }
}
