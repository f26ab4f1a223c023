//! What a capture says besides findings, on standard error.

use super::job::Job;
use crate::error::Failure;
use crate::inert;
use crate::report::{excerpt, plural};
use crate::trace_args::On;
use pgvet_capture::{Capture, Captured, Files, MAX_FILES, NOT_RUN, Refused, Saved, Sources, Started};
use pgvet_syntax::ast::Ast;
use pgvet_syntax::statement::parse;
use pgvet_trace::RefusedStatement;
use std::collections::BTreeSet;
use std::path::Path;

/// Statements that a server refuses because it lacks the files of an extension.
///
/// Source: PostgreSQL 14 to 18, `src/backend/commands/extension.c`: `extension "x" is not available`, and
/// `could not open extension control file`.
const NO_EXTENSION: [&str; 2] = ["0A000", "58P01"];

fn note(job: &Job<'_>, note: &Failure) {
    if !job.is_quiet() {
        // Nobody is left to tell when standard error is closed.
        let _ = note.write_note(&mut std::io::stderr().lock());
    }
}

/// Says which migrations of an earlier capture are applied instead of run.
pub(super) fn about_saved(job: &Job<'_>, saved: &Saved) {
    let count = saved.migrations.len();
    if job.args.place.on != On::Scratch {
        return;
    }
    if let Some(why) = &saved.ends {
        let which = if count == 0 {
            "all migrations run again".to_owned()
        } else {
            format!("all migrations after the first {count} run again")
        };
        note(job, &Failure::new(format!("{which}, because {}", inert::line(why))));
    }
    if count > 0 {
        let omitted = saved.omitted();
        let rows = if omitted > 0 {
            format!(", without their rows ({} omitted)", plural(omitted, "statement"))
        } else {
            String::new()
        };
        let help = "if a new migration needs rows of earlier ones, use --from-beginning";
        let said = Failure::new(format!("applying {}{rows}", plural(count, "saved migration")));
        note(job, &if omitted > 0 { said.help(help) } else { said });
    }
}

/// Says why an earlier capture is of no use.
pub(super) fn not_applied(job: &Job<'_>, refused: &RefusedStatement) {
    let said = format!(
        "the saved migrations cannot be applied, so the command ran all of them: {}: {}",
        refused.place(),
        refused.message
    );
    note(job, &Failure::new(inert::line(&said)));
}

/// Says that nothing is reported.
pub(super) fn about_new(job: &Job<'_>, new: &BTreeSet<String>) {
    if let (true, Some(revision)) = (new.is_empty(), &job.args.since) {
        note(
            job,
            &Failure::new(inert::line(&format!("no migration has changed since {revision}, so nothing is reported"))),
        );
    }
}

/// Says what of the statements is not measured.
pub(super) fn about_trace(job: &Job<'_>, files: &Files) {
    let is_unknown = |line: &&str| *line == NOT_RUN;
    let unknown: usize = files.files.iter().map(|(_, text)| text.lines().filter(is_unknown).count()).sum();
    if unknown > 0 {
        let said =
            format!("not traced: {}, because the value of a parameter cannot be read", plural(unknown, "statement"));
        note(job, &Failure::new(said));
    }
}

/// Describes the run.
pub(super) fn about_run(job: &Job<'_>, captured: &Captured, capture: &Capture) {
    for text in &captured.server.announcements {
        note(job, &Failure::new(inert::line(text)));
    }
    if !captured.status.success() {
        let said = format!("`{}` failed ({})", job.shown(), captured.status);
        let said = Failure::new(inert::line(&said));
        failure(&if captured.recording.statements.is_empty() {
            said
        } else {
            said.help("the statements before the failure are checked; the messages of the command are above")
        });
    }
    if let Some(refused) = missing_extension(captured) {
        let major = captured.server.major;
        let said = format!("the private server lacks an extension: {}", inert::line(&refused.message));
        let help = format!(
            "install it for PostgreSQL {major} on this machine, as in `apt-get install postgresql-{major}-postgis-3`; or \
             name the folder of an installation that has it with --pg-bin"
        );
        failure(&Failure::new(said).help(help));
    }
    let left_open = captured.left_open;
    if left_open > 0 {
        let said = format!("{} still open when the command ended", connections(left_open));
        let help = "statements that a program in the background sends later are not captured";
        note(job, &Failure::new(said).help(help));
    }
    if capture.migrations.is_empty() {
        return;
    }
    note(job, &Failure::new(summary(capture)));
    about_statements(job, capture);
}

fn connections(count: usize) -> String {
    if count == 1 { "1 connection was".to_owned() } else { format!("{count} connections were") }
}

/// `captured 7 migrations of django with 23 statements; not part of them: 40 about the tool's own tables, ...`
fn summary(capture: &Capture) -> String {
    let complete = capture.migrations.iter().filter(|migration| migration.is_complete).count();
    let work: usize = capture.migrations.iter().flat_map(|migration| &migration.work).map(|work| work.times).sum();
    let of = capture.tool.as_deref().map(|tool| format!(" of {tool}")).unwrap_or_default();
    let counts = &capture.counts;
    let apart = [
        (counts.bookkeeping, "about the tool's own tables"),
        (counts.questions, "about system catalogs and the client"),
        (counts.settings, "for session settings"),
        (counts.transactions, "for transactions and savepoints"),
        (counts.skipped, "not run or not answered"),
        (counts.function_calls, "through the function call protocol"),
    ];
    let apart: Vec<String> =
        apart.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let apart = if apart.is_empty() { String::new() } else { format!("; not part of them: {}", apart.join(", ")) };
    format!("captured {}{of} with {}{apart}", plural(complete, "migration"), plural(work, "statement"))
}

fn about_statements(job: &Job<'_>, capture: &Capture) {
    if let Some(last) = capture.migrations.last().filter(|last| !last.is_complete) {
        let (said, help) = match &capture.tool {
            Some(_) => (
                format!("the last migration did not finish: {}", plural(last.work.len(), "statement")),
                "its statements so far are checked, but not saved",
            ),
            None => (
                format!(
                    "the command added no row to a table of applied migrations that pgvet knows; checked as one \
                     migration: {}",
                    plural(last.work.len(), "statement")
                ),
                "name the table and column in which the tool records applied migrations, as in `--table migrations --column name`",
            ),
        };
        note(job, &Failure::new(said).help(help));
    }
    if !capture.after.is_empty() {
        let first = excerpt(&capture.after[0].sql);
        let count = plural(capture.after.len(), "statement");
        note(job, &Failure::new(format!("not checked: {count} after the last migration, beginning with {first}")));
    }
    let too_long =
        capture.migrations.iter().flat_map(|migration| &migration.work).filter(|work| work.cut_from > 0).count();
    if too_long > 0 {
        let said = format!("not recorded and not checked: {} longer than 16 MiB", plural(too_long, "statement"));
        note(job, &Failure::new(said));
    }
    let counts = &capture.counts;
    if counts.tolerated + counts.undone + counts.attempts > 0 {
        let (refused, undone) = (counts.tolerated, counts.undone + counts.attempts);
        let all = plural(refused + undone, "statement");
        let said = format!("not checked: {all} without effect ({refused} refused by the server, {undone} rolled back)");
        note(job, &Failure::new(said));
    }
    about_repeated(job, capture);
}

/// Says that a statement was checked once for all of its values. The rule `statement-per-row` judges loops.
fn about_repeated(job: &Job<'_>, capture: &Capture) {
    let work = || capture.migrations.iter().flat_map(|migration| &migration.work).filter(|work| work.times > 1);
    if work().next().is_none() {
        return;
    }
    let sent: usize = work().map(|work| work.times).sum();
    let said = format!("{sent} statements differ only in their values, and were checked as {}", work().count());
    note(job, &Failure::new(said));
}

pub(super) fn about_sources(job: &Job<'_>, sources: &Sources, files: &Files) {
    if sources.is_cut {
        let said = format!("searched only the first {MAX_FILES} files of this folder for migrations");
        note(job, &Failure::new(said).help("run pgvet in the folder of the project"));
    }
    let [first, ..] = &*files.without_source else { return };
    let count = plural(files.without_source.len(), "migration");
    let said =
        format!("nothing is reported about {count} without a file in this folder, such as {}", inert::line(first));
    note(job, &Failure::new(said));
}

/// Says that an earlier capture with more migrations stays as it is.
pub(super) fn not_saved(job: &Job<'_>, folder: &Path) {
    let folder = folder.display().to_string();
    let said = format!("the capture in `{}` was not changed, because the command failed", inert::line(&folder));
    note(job, &Failure::new(said));
}

pub(super) fn saved(job: &Job<'_>, folder: &Path, files: &Files) {
    let folder = folder.display().to_string();
    let count = plural(files.files.len().saturating_sub(1), "migration");
    let said = format!("saved {count} in `{}`", inert::line(&folder));
    note(
        job,
        &Failure::new(said)
            .help(format!("check them without running the command: `pgvet check {}`", inert::line(&folder))),
    );
}

/// Why there is nothing to check.
pub(super) fn nothing(job: &Job<'_>, captured: &Captured) -> Failure {
    let command = job.shown();
    let place = captured.place.shown();
    if captured.connections == 0 && !captured.status.success() {
        let help = format!("its messages above say why it failed; {SETTINGS_LEAD_ELSEWHERE}");
        return Failure::new(format!("`{command}` failed and never connected to {place}, so nothing was captured"))
            .help(help);
    }
    if captured.connections == 0 {
        let help = format!(
            "{SETTINGS_LEAD_ELSEWHERE}. If it started a program in the background, run that program in the foreground"
        );
        return Failure::new(format!("`{command}` never connected to {place}, so nothing was captured")).help(help);
    }
    if captured.refused_by_command > 0 && captured.recording.sessions.is_empty() {
        return Failure::new(format!("`{command}` requires an encrypted connection, so nothing was captured")).help(
            "pgvet does not encrypt connections on this machine; set sslmode to disable or prefer in the settings of the command",
        );
    }
    if matches!(captured.started, Started::Clone(_)) {
        return Failure::new(format!("`{command}` ran no migration, so nothing was captured"))
            .help("the clone has already applied all migrations: clone a database without the new ones");
    }
    Failure::new(format!("`{command}` connected to {place} and ran no migration, so nothing was captured")).help(
        "run the command that applies all migrations to an empty database; if this one applies them, it does so in \
             another database that its settings also name, or in a program in the background, which must run in the \
             foreground",
    )
}

const SETTINGS_LEAD_ELSEWHERE: &str = "if its settings name another database, it may have migrated that database: make \
                                       the settings read DATABASE_URL, or PGHOST and PGPORT, or pass the variables \
                                       that they read, as in --env DB_HOST={host} --env DB_PORT={port}";

fn missing_extension(captured: &Captured) -> Option<&Refused> {
    let refused = captured.recording.statements.iter().filter_map(|statement| Some((statement, statement.error()?)));
    let creates = |sql: &str| parse(sql).iter().any(|one| matches!(one.ast(), Some(Ast::CreateExtension(_))));
    let mut missing =
        refused.filter(|(statement, refused)| NO_EXTENSION.contains(&refused.code.as_str()) && creates(&statement.sql));
    missing.next().map(|(_, refused)| refused)
}

fn failure(failure: &Failure) {
    // Nobody is left to tell when standard error is closed.
    let _ = failure.write(&mut std::io::stderr().lock());
}
