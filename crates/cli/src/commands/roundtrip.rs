//! `pgvet roundtrip`: whether down migrations take back what up migrations do.

use super::trace::has_schema;
use super::{loaded, scratch};
use crate::args::{DiffFormat, RoundtripArgs};
use crate::bookkeeping;
use crate::error::{ExitStatus, Failure};
use crate::inert::{self, Kind};
use crate::progress::Spinner;
use crate::report::roundtrip::RoundtripReport;
use pgvet_trace::provider::Scratch;
use pgvet_trace::roundtrip;
use pgvet_workspace::{Project, ProjectFile, Request, Reversal, Role, migrations_folder};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &RoundtripArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let (request, named) = in_their_folders(args.input.request());
    let project = loaded(&args.input, &request, Project::load)?;
    if !project.problems.is_empty() {
        return Ok(ExitStatus::NotChecked);
    }
    let reversals = project.reversals();
    let is_asked = |reversal: &&Reversal| is_asked(&project, reversal, &named);
    let asked = reversals.iter().filter(is_asked).count();
    let judged = reversals.iter().enumerate().filter(|(_, reversal)| is_asked(reversal) && !reversal.down.is_empty());
    let judged: BTreeSet<usize> = judged.map(|(at, _)| at).collect();
    if judged.is_empty() {
        let message = match asked {
            1 => "the migration has no down migration".to_owned(),
            _ => format!("none of {asked} migrations has a down migration"),
        };
        return Err(Failure::new(message).help(
            "`pgvet config --files` lists all files with their roles; set `tool` under [migrations] in pgvet.toml to the \
             tool that runs them",
        ));
    }
    let model = args.input.settings(&project.config_of(1));
    let settings = scratch::settings(&args.server, bookkeeping::tables(&project, has_schema(&project)));
    let mut server = Scratch::new(scratch::options(&args.server, &model));
    let spinner = Spinner::new();
    let migrations = project.migrations();
    let mut show = |event: pgvet_trace::Event<'_>| scratch::show(&spinner, event);
    let run = roundtrip::run(&migrations, &reversals, &judged, &mut server, &settings, args.rows, &mut show)?;
    drop(spinner);
    let without = asked - judged.len();
    let report = RoundtripReport::new(&project, &reversals, &run, judged.len(), without);
    match args.format {
        DiffFormat::Text => inert::through(out, Kind::Text, |out| report.write(out, args.input.loudness.verbose))?,
        DiffFormat::Json => inert::through(out, Kind::Json, |out| report.write_json(out))?,
        DiffFormat::Markdown => inert::through(out, Kind::Text, |out| report.write_markdown(out))?,
    }
    if let Some(error) = &run.stopped {
        Failure::from(error.clone()).write(&mut std::io::stderr().lock())?;
    }
    Ok(if !report.is_whole() {
        ExitStatus::NotChecked
    } else if report.severities().any(|severity| args.fail_on.fails(severity)) {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    })
}

/// Reads whole folders instead of named files: the other half of a pair is beside a file. Returns the files, too.
fn in_their_folders(mut request: Request) -> (Request, Vec<PathBuf>) {
    let mut named = Vec::new();
    for path in &mut request.paths {
        if path.is_file() {
            let folder = migrations_folder(path);
            named.push(std::mem::replace(path, folder));
        }
    }
    (request, named)
}

/// Whether a migration is judged, or counted as one without a down migration.
fn is_asked(project: &Project, reversal: &Reversal, named: &[PathBuf]) -> bool {
    let files = || [Some(reversal.file), reversal.down_file].into_iter().flatten().map(|at| &project.files[at]);
    let same = |file: &ProjectFile| named.iter().any(|named| is_same(named, &file.path));
    files().any(|file| file.role == Role::Reported) && (named.is_empty() || files().any(same))
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().ok().is_some_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}
