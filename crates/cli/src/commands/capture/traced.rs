//! The captured statements, run once more and measured.

use super::job::Job;
use super::{new_ones, note, paths, temporary};
use crate::args::{CaptureArgs, ConfigSourceArgs, Format};
use crate::commands::trace;
use crate::error::{ExitStatus, Failure};
use crate::trace_args::{On, TraceArgs};
use clap::{Args, Command, FromArgMatches};
use pgvet_capture::{Recording, Saved, Sources, cut_without_folding, files_to_run};
use pgvet_workspace::ChangedFiles;
use std::io::Write;
use std::path::PathBuf;

/// Refuses what cannot be done before anything is run.
pub(super) fn check_arguments(args: &CaptureArgs) -> Result<(), Failure> {
    if args.place.on == On::Url {
        return Err(Failure::new("--trace needs a second clone, which --on url does not have")
            .help("use --on template, or trace the saved migrations"));
    }
    let is_text = |format: &Format| matches!(format, Format::Full | Format::Concise);
    if args.format.iter().any(|output| output.file.is_none() && !is_text(&output.format)) {
        return Err(Failure::new("with --trace, the report of the trace also goes to standard output")
            .help("write the findings to a file, as in `--format json=pgvet.json`"));
    }
    Ok(())
}

/// Traces the migrations of a recording that has all values.
pub(super) fn run(
    job: &Job<'_>,
    recording: &Recording,
    before: &Saved,
    sources: &Sources,
    changed: Option<&ChangedFiles>,
    schema: Option<PathBuf>,
    out: &mut dyn Write,
) -> Result<ExitStatus, Failure> {
    let mut capture = cut_without_folding(recording, &job.tables);
    if !before.migrations.is_empty() || job.args.place.on != On::Scratch {
        capture = capture.continued();
    }
    if capture.migrations.is_empty() {
        return Ok(ExitStatus::Clean);
    }
    let all = files_to_run(&capture, before, sources, job.project.clone());
    let new = changed.map(|changed| new_ones(&all, changed, job));
    let folder = temporary(&all.files)?;
    let paths = paths(folder.path(), new.as_ref());
    if paths.is_empty() {
        return Ok(ExitStatus::Clean);
    }
    note::about_trace(job, &all);
    writeln!(out)?;
    trace::run(&arguments(job, paths, schema)?, out)
}

/// The arguments of `pgvet trace` for a folder: its defaults, apart from what the capture was given.
fn arguments(job: &Job<'_>, paths: Vec<PathBuf>, schema: Option<PathBuf>) -> Result<TraceArgs, Failure> {
    let command = TraceArgs::augment_args(Command::new("trace").no_binary_name(true));
    let defaults =
        command.try_get_matches_from::<_, &str>([]).and_then(|matches| TraceArgs::from_arg_matches(&matches));
    let mut args = defaults.map_err(|error| Failure::new(format!("the trace has no defaults: {error}")))?;
    args.place = job.args.place.clone();
    args.input.paths = paths;
    args.input.schema = schema;
    args.input.pg_version = job.args.pg_version;
    args.input.source = ConfigSourceArgs { nearest_to: Some(job.project.clone()), ..job.args.source.clone() };
    args.input.color = job.args.color;
    // The check has said what there is to say about the files.
    args.input.loudness.quiet = true;
    args.baseline = job.args.baseline.clone();
    Ok(args)
}
