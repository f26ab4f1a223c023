//! What a capture says besides findings, on standard error.

use crate::args::CaptureArgs;
use crate::error::Failure;
use crate::inert;
use crate::report::{excerpt, plural};
use pgvet_capture::{Capture, Captured, Files, Refused, loops, shown};
use std::path::Path;

/// How many statements that were sent often are named.
const LOOPS_SHOWN: usize = 5;

/// From so many statements of one shape on, a loop is worth a note.
const LOOP: usize = 10;

/// Statements that a server refuses because it lacks the files of an extension.
///
/// Source: PostgreSQL 14 to 18, `src/backend/commands/extension.c`: `extension "x" is not available`, and
/// `could not open extension control file`.
const NO_EXTENSION: [&str; 2] = ["0A000", "58P01"];

fn note(args: &CaptureArgs, note: &Failure) {
    if !args.loudness.quiet {
        // Nobody is left to tell when standard error is closed.
        let _ = note.write_note(&mut std::io::stderr().lock());
    }
}

/// Describes the run.
pub(super) fn about_run(args: &CaptureArgs, captured: &Captured, capture: &Capture) {
    for text in &captured.server.announcements {
        note(args, &Failure::new(inert::line(text)));
    }
    if !captured.status.success() {
        let said = format!("`{}` failed ({})", shown(&args.command), captured.status);
        let help = "what it sent until then is checked; its own messages are above";
        failure(&Failure::new(inert::line(&said)).help(help));
    }
    if let Some(refused) = missing_extension(captured) {
        let major = captured.server.major;
        let said = format!("the private server lacks an extension: {}", inert::line(&refused.message));
        let help = format!(
            "install it for PostgreSQL {major} on this machine, as in `apt-get install postgresql-{major}-postgis-3`, or name \
             the programs of a server that has it with --pg-bin"
        );
        failure(&Failure::new(said).help(help));
    }
    let left_open = captured.left_open;
    if left_open > 0 {
        let said = format!("{} still open when the command ended", connections(left_open));
        let help = "what a program in the background sends later is not captured";
        note(args, &Failure::new(said).help(help));
    }
    if capture.migrations.is_empty() {
        return;
    }
    note(args, &Failure::new(summary(capture)));
    about_statements(args, capture);
}

fn connections(count: usize) -> String {
    if count == 1 { "1 connection was".to_owned() } else { format!("{count} connections were") }
}

/// `captured 7 migrations of django: 23 statements; not part of them: 40 about its own tables, ...`
fn summary(capture: &Capture) -> String {
    let complete = capture.migrations.iter().filter(|migration| migration.is_complete()).count();
    let work: usize = capture.migrations.iter().flat_map(|migration| &migration.work).map(|work| work.times).sum();
    let of = capture.tool.as_deref().map(|tool| format!(" of {tool}")).unwrap_or_default();
    let counts = &capture.counts;
    let apart = [
        (counts.bookkeeping, "about the tool's own tables"),
        (counts.questions, "queries to the system catalogs and settings of the client"),
        (counts.settings, "settings of sessions"),
        (counts.transactions, "BEGIN, COMMIT and savepoints"),
        (counts.skipped, "never run"),
    ];
    let apart: Vec<String> =
        apart.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let apart = if apart.is_empty() { String::new() } else { format!("; not part of them: {}", apart.join(", ")) };
    format!("captured {}{of} with {}{apart}", plural(complete, "migration"), plural(work, "statement"))
}

fn about_statements(args: &CaptureArgs, capture: &Capture) {
    if let Some(last) = capture.migrations.last().filter(|last| !last.is_complete()) {
        let (said, help) = match &capture.tool {
            Some(_) => (
                format!("the last migration did not finish: {}", plural(last.work.len(), "statement")),
                "it is checked as far as it came, and not saved",
            ),
            None => (
                format!(
                    "no migration entered a table that pgvet knows, so {} are checked as one",
                    plural(last.work.len(), "statement")
                ),
                "name the table and column in which the tool notes what has run, as in `--table migrations --column name`",
            ),
        };
        note(args, &Failure::new(said).help(help));
    }
    if !capture.after.is_empty() {
        let first = excerpt(&capture.after[0].sql);
        let count = plural(capture.after.len(), "statement");
        note(
            args,
            &Failure::new(format!("{count} after the last migration belong to none and are not checked: {first}")),
        );
    }
    let too_long =
        capture.migrations.iter().flat_map(|migration| &migration.work).filter(|work| work.cut_from > 0).count();
    if too_long > 0 {
        let said =
            format!("{} longer than 16 MiB, which are not recorded and not checked", plural(too_long, "statement"));
        note(args, &Failure::new(said));
    }
    let counts = &capture.counts;
    if counts.tolerated + counts.undone + counts.attempts > 0 {
        let refused = plural(counts.tolerated, "refused statement");
        let undone = plural(counts.undone + counts.attempts, "statement");
        let said = format!("{refused} and {undone} that the tool rolled back had no effect and are not checked");
        note(args, &Failure::new(said));
    }
    let loops = loops(capture);
    for (name, times, sql) in loops.iter().filter(|(_, times, _)| *times >= LOOP).take(LOOPS_SHOWN) {
        let name = inert::line(name);
        let said = format!("{name} sent the same statement {times} times with different values: {}", excerpt(sql));
        note(args, &Failure::new(said).help("it is checked once; one statement for all rows would be one round trip"));
    }
}

pub(super) fn about_sources(args: &CaptureArgs, files: &Files) {
    let [first, ..] = &*files.without_source else { return };
    let count = plural(files.without_source.len(), "migration");
    let said =
        format!("{count} without a file in this folder, such as {}, replayed and not reported", inert::line(first));
    note(args, &Failure::new(said));
}

pub(super) fn saved(args: &CaptureArgs, folder: &Path, files: &Files) {
    let folder = folder.display().to_string();
    let count = plural(files.files.len().saturating_sub(1), "migration");
    let said = format!("saved {count} in `{}`", inert::line(&folder));
    note(
        args,
        &Failure::new(said)
            .help(format!("check them without running the command: `pgvet check {}`", inert::line(&folder))),
    );
}

/// Why there is nothing to check.
pub(super) fn nothing(args: &CaptureArgs, captured: &Captured) -> Failure {
    let command = shown(&args.command);
    let command = inert::line(&command);
    let place = captured.place.shown();
    if captured.connections == 0 {
        return Failure::new(format!("`{command}` never connected to {place}, so nothing was captured")).help(
            "its settings name another database, which it may have migrated; make them read DATABASE_URL, or PGHOST and \
             PGPORT, or pass the variables that they read, as in --env DB_HOST={host} --env DB_PORT={port}",
        );
    }
    Failure::new(format!("`{command}` connected to {place} and ran no migration, so nothing was captured"))
        .help("run the command that applies all migrations to an empty database")
}

fn missing_extension(captured: &Captured) -> Option<&Refused> {
    let refused = captured.recording.statements.iter().filter_map(|statement| Some((statement, statement.error()?)));
    let mut missing = refused.filter(|(statement, refused)| {
        NO_EXTENSION.contains(&refused.code.as_str()) && statement.sql.to_ascii_lowercase().contains("extension")
    });
    missing.next().map(|(_, refused)| refused)
}

fn failure(failure: &Failure) {
    // Nobody is left to tell when standard error is closed.
    let _ = failure.write(&mut std::io::stderr().lock());
}
