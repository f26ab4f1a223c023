//! `pgvet trace --crash` and `--twice`: what follows if the session of a migration ends, or if two runs of the tool start
//! at once.

use super::trace::{has_schema, said};
use crate::bookkeeping;
use crate::error::{ExitStatus, Failure};
use crate::inert::{self, Kind};
use crate::progress::Spinner;
use crate::report::crash::CrashReport;
use crate::trace_args::{On, TraceArgs, TraceFormat};
use pgvet_linter::settings::Settings;
use pgvet_trace::crash::{self, Trials};
use pgvet_trace::provider::{Scratch, ScratchOptions};
use pgvet_trace::{Event, Limits};
use pgvet_workspace::Project;
use std::io::Write;

pub(crate) fn run(
    args: &TraceArgs,
    project: &Project,
    model: &Settings,
    out: &mut dyn Write,
) -> Result<ExitStatus, Failure> {
    let option = if args.crash { "--crash" } else { "--twice" };
    if args.place.on != On::Scratch {
        return Err(Failure::new(format!("{option} needs many copies of a database, and runs only with --on scratch"))
            .help("omit --on: pgvet starts a temporary server and runs the earlier migrations on it"));
    }
    let migrations = project.migrations();
    let settings = pgvet_trace::Settings {
        variables: args.variables.iter().cloned().collect(),
        statement_timeout: args.statement_timeout,
        limits: Limits { time: Some(args.time_limit), disk: Some(std::env::temp_dir()), ..Limits::default() },
        setup: bookkeeping::tables(project, has_schema(project)),
        ..pgvet_trace::Settings::default()
    };
    let mut server = Scratch::new(ScratchOptions {
        binaries: args.place.pg_bin.clone(),
        major: model.versions_configured.then_some(model.versions.to.0),
        ..ScratchOptions::default()
    });
    let spinner = Spinner::new();
    let trials = Trials { crash: args.crash, twice: args.twice };
    let seen = crash::run(&migrations, trials, &mut server, &settings, &mut |event| match event {
        // Nobody is left to tell when standard error is closed.
        Event::Announcement { text } => drop(inert::say("note", text)),
        _ => spinner.begin(&said(event)),
    })?;
    drop(spinner);
    let report = CrashReport::new(&migrations, &seen);
    match args.format {
        TraceFormat::Full => inert::through(out, Kind::Text, |out| report.write(out, args.input.loudness.verbose))?,
        TraceFormat::Json => inert::through(out, Kind::Json, |out| report.write_json(out))?,
        TraceFormat::Markdown => inert::through(out, Kind::Text, |out| report.write_markdown(out))?,
    }
    Ok(if !report.is_whole() {
        ExitStatus::NotChecked
    } else if report.is_safe() {
        ExitStatus::Clean
    } else {
        ExitStatus::Findings
    })
}
