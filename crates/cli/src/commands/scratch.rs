//! Private servers for commands that run migrations without measuring them.

use super::trace::said;
use crate::args::ScratchArgs;
use crate::inert;
use crate::progress::Spinner;
use pgvet_linter::settings::Settings;
use pgvet_trace::provider::ScratchOptions;
use pgvet_trace::{Event, Limits};

/// The server for these settings: of the newest configured version, else the newest that is installed.
pub(super) fn options(args: &ScratchArgs, settings: &Settings) -> ScratchOptions {
    ScratchOptions {
        binaries: args.pg_bin.clone(),
        major: settings.versions_configured.then_some(settings.versions.to.0),
        ..ScratchOptions::default()
    }
}

/// How migrations run; `setup` is run on every new database.
pub(super) fn settings(args: &ScratchArgs, setup: Vec<String>) -> pgvet_trace::Settings {
    pgvet_trace::Settings {
        variables: args.variables.iter().cloned().collect(),
        statement_timeout: args.statement_timeout,
        limits: Limits { time: Some(args.time_limit), disk: Some(std::env::temp_dir()), ..Limits::default() },
        setup,
        ..pgvet_trace::Settings::default()
    }
}

/// Shows how far a run has come.
pub(super) fn show(spinner: &Spinner, event: Event<'_>) {
    match event {
        // Nobody is left to tell when standard error is closed.
        Event::Announcement { text } => drop(inert::say("note", text)),
        _ => spinner.begin(&said(event)),
    }
}
