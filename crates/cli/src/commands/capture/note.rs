//! What a capture says besides findings, on standard error.

use crate::args::CaptureArgs;
use crate::error::Failure;
use crate::inert;
use crate::report::{excerpt, plural};
use pgvet_capture::{Capture, Captured, Files, MAX_FILES, Refused, Sources, loops, shown};
use pgvet_syntax::ast::Ast;
use pgvet_syntax::statement::parse;
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
        let help = "the statements before the failure are checked; the messages of the command are above";
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

fn about_statements(args: &CaptureArgs, capture: &Capture) {
    if let Some(last) = capture.migrations.last().filter(|last| !last.is_complete) {
        let (said, help) = match &capture.tool {
            Some(_) => (
                format!("the last migration did not finish: {}", plural(last.work.len(), "statement")),
                "its statements so far are checked, but not saved",
            ),
            None => (
                format!(
                    "no row was added to a table of migrations that pgvet knows; checked as one migration: {}",
                    plural(last.work.len(), "statement")
                ),
                "name the table and column in which the tool records applied migrations, as in `--table migrations --column name`",
            ),
        };
        note(args, &Failure::new(said).help(help));
    }
    if !capture.after.is_empty() {
        let first = excerpt(&capture.after[0].sql);
        let count = plural(capture.after.len(), "statement");
        note(args, &Failure::new(format!("not checked: {count} after the last migration, beginning with {first}")));
    }
    let too_long =
        capture.migrations.iter().flat_map(|migration| &migration.work).filter(|work| work.cut_from > 0).count();
    if too_long > 0 {
        let said = format!("not recorded and not checked: {} longer than 16 MiB", plural(too_long, "statement"));
        note(args, &Failure::new(said));
    }
    let counts = &capture.counts;
    if counts.tolerated + counts.undone + counts.attempts > 0 {
        let (refused, undone) = (counts.tolerated, counts.undone + counts.attempts);
        let all = plural(refused + undone, "statement");
        let said = format!("not checked: {all} without effect ({refused} refused by the server, {undone} rolled back)");
        note(args, &Failure::new(said));
    }
    about_loops(args, capture);
}

fn about_loops(args: &CaptureArgs, capture: &Capture) {
    let loops: Vec<_> = loops(capture).into_iter().filter(|(_, times, _)| *times >= LOOP).collect();
    for (name, times, sql) in loops.iter().take(LOOPS_SHOWN) {
        let name = if name.is_empty() { "the last migration".to_owned() } else { inert::line(name).into_owned() };
        let said = format!("{name} sent the same statement {times} times with different values: {}", excerpt(sql));
        note(args, &Failure::new(said).help("it is checked once; one statement for all rows would be one round trip"));
    }
    let others = loops.len().saturating_sub(LOOPS_SHOWN);
    if others > 0 {
        let count = plural(others, "other statement");
        note(args, &Failure::new(format!("{count} sent at least {LOOP} times by one migration")));
    }
}

pub(super) fn about_sources(args: &CaptureArgs, sources: &Sources, files: &Files) {
    if sources.is_cut {
        let said = format!("searched for migrations in the first {MAX_FILES} files of this folder alone");
        note(args, &Failure::new(said).help("run pgvet in the folder of the project"));
    }
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
    let creates = |sql: &str| parse(sql).iter().any(|one| matches!(one.ast(), Some(Ast::CreateExtension(_))));
    let mut missing =
        refused.filter(|(statement, refused)| NO_EXTENSION.contains(&refused.code.as_str()) && creates(&statement.sql));
    missing.next().map(|(_, refused)| refused)
}

fn failure(failure: &Failure) {
    // Nobody is left to tell when standard error is closed.
    let _ = failure.write(&mut std::io::stderr().lock());
}
