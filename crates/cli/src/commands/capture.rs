//! `pgvet capture`.

mod note;

use super::check;
use crate::args::CaptureArgs;
use crate::error::{ExitStatus, Failure};
use pgvet_capture::{Captured, Request, Sources, Tables, cut, files};
use pgvet_trace::provider::{Scratch, ScratchOptions};
use pgvet_workspace::captured;
use pgvet_workspace::config::Configs;
use pgvet_workspace::create_report;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The password in the address that the command gets; the private server asks for none.
const PASSWORD: &str = "pgvet";

pub(crate) fn run(args: &CaptureArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    out.flush()?;
    let project =
        std::env::current_dir().map_err(|error| Failure::new(format!("the current folder is gone: {error}")))?;
    let tables = Tables::with(args.table.as_deref().map(|table| (table, args.column.as_slice())));
    let captured = execute(args, &tables, &project)?;
    if let Some(file) = &args.record {
        write_recording(&captured, file)?;
    }
    let capture = cut(&captured.recording, &tables);
    note::about_run(args, &captured, &capture);
    let failed = ExitStatus::of_command(captured.status);
    if capture.migrations.is_empty() {
        note::nothing(args, &captured).write(&mut std::io::stderr().lock())?;
        return Ok(failed.unwrap_or(ExitStatus::NotChecked));
    }
    let sources = Sources::of(&project);
    let all = files(&capture, &sources, project.clone());
    note::about_sources(args, &sources, &all);
    if let Some(folder) = &args.save {
        let kept = files(&capture.complete(), &sources, captured::root_from(folder, &project));
        captured::clear(folder).map_err(|problem| Failure::from(&problem))?;
        write_files(folder, &kept.files)?;
        note::saved(args, folder, &kept);
    }
    let folder = tempfile::Builder::new().prefix("pgvet-capture-").tempdir();
    let folder = folder.map_err(|error| Failure::new(format!("cannot make a folder: {error}")))?;
    write_files(folder.path(), &all.files)?;
    let checked = check::run_captured(&args.check(folder.path().to_owned(), project), out)?;
    Ok(failed.unwrap_or(checked))
}

/// Runs the command on a private server.
fn execute(args: &CaptureArgs, tables: &Tables, project: &Path) -> Result<Captured, Failure> {
    let mut source = args.source.clone();
    source.nearest_to = Some(project.to_owned());
    let config = Configs::new(source.source()).of(project).map_err(|error| Failure::config(error, args.color))?;
    let configured = config.settings.versions_configured.then_some(config.settings.versions);
    let mut provider = Scratch::new(ScratchOptions {
        binaries: args.pg_bin.clone(),
        major: args.pg_version.or(configured).map(|versions| versions.to.0),
        durable: false,
        setup: Vec::new(),
    });
    let (tables, values) = (tables.clone(), args.values);
    let request = Request {
        command: &args.command,
        variables: &args.variables,
        password: PASSWORD,
        keep_values: Box::new(move |sql| values || tables.needs_values(sql)),
    };
    Ok(pgvet_capture::run(&mut provider, request)?)
}

fn write_recording(captured: &Captured, path: &Path) -> Result<(), Failure> {
    let mut file = create_report(path).map_err(|problem| Failure::from(&problem))?;
    let written = file.write_all(captured.recording.to_lines().as_bytes());
    written.map_err(|error| Failure::new(format!("cannot write `{}`: {error}", path.display())))
}

fn write_files(folder: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    let files: Vec<(PathBuf, String)> = files.iter().map(|(name, text)| (folder.join(name), text.clone())).collect();
    pgvet_workspace::create_files(&files).map_err(|problem| Failure::from(&problem))
}
