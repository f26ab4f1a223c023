//! `pgvet squash`: one file in place of a migration history.

use super::scratch;
use super::sides::{file_called, replay};
use super::trace::has_schema;
use super::{load, load_request};
use crate::args::{PlainFormat, SquashArgs};
use crate::bookkeeping;
use crate::error::{ExitStatus, Failure};
use crate::inert::{self, Kind};
use crate::progress::Spinner;
use crate::report::squash::SquashReport;
use pgvet_model::effect::DataChangeKind;
use pgvet_model::migration::{Direction, Migration};
use pgvet_model::predict::effects;
use pgvet_model::version::PgVersion;
use pgvet_schema::script;
use pgvet_trace::squash;
use pgvet_workspace::{Project, Request, create_files};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

pub(crate) fn run(args: &SquashArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let project = load(&args.input)?;
    if !project.problems.is_empty() {
        return Ok(ExitStatus::NotChecked);
    }
    if project.databases.len() > 1 {
        let folders: Vec<String> = project.databases.iter().map(|database| database.shown().clone()).collect();
        return Err(Failure::new(format!("these are the migrations of several databases: {}", folders.join(", ")))
            .help("squash them one by one: name the folder of one database"));
    }
    let end = args.at.as_deref().map(|name| file_called(&project, name)).transpose()?;
    let end = end.unwrap_or(usize::MAX);
    match &args.check {
        Some(file) => check(args, &project, end, file, out),
        None => write(args, &project, end, out),
    }
}

/// The migrations up to and including a file, without another one.
fn history<'p>(project: &'p Project, end: usize, without: Option<&Path>) -> Vec<Migration<'p>> {
    let without = without.and_then(|path| path.canonicalize().ok());
    let is_other = |file: usize| {
        without.is_none() || project.files[file].path.canonicalize().ok().as_deref() != without.as_deref()
    };
    let all = std::iter::zip(project.migrations(), project.file_indexes());
    let own = all.filter(|(migration, file)| migration.direction == Direction::Up && *file <= end && is_other(*file));
    own.map(|(migration, _)| migration).collect()
}

fn check(
    args: &SquashArgs,
    project: &Project,
    end: usize,
    file: &Path,
    out: &mut dyn Write,
) -> Result<ExitStatus, Failure> {
    let request = Request {
        paths: vec![file.to_owned()],
        config: args.input.source.source(),
        without_history: true,
        ..Request::default()
    };
    let squashed = load_request(&request, &args.input.loudness)?;
    if !squashed.problems.is_empty() {
        return Ok(ExitStatus::NotChecked);
    }
    let history = history(project, end, Some(file));
    if history.is_empty() {
        return Err(Failure::new("the history has no migrations that the file could replace")
            .help("`pgvet config --files` lists all files with their roles"));
    }
    let model = args.input.settings(&project.config_of(1));
    let settings = scratch::settings(&args.server, bookkeeping::tables(project, has_schema(project)));
    let spinner = Spinner::new();
    let options = scratch::options(&args.server, &model);
    let mut show = |event: pgvet_trace::Event<'_>| scratch::show(&spinner, event);
    let seen = squash::run(&history, &squashed.migrations(), &options, &settings, &mut show)?;
    drop(spinner);
    let title = file.display().to_string();
    let report = SquashReport::new(&title, history.len(), &seen);
    match args.format {
        PlainFormat::Text => inert::through(out, Kind::Text, |out| report.write(out, args.input.loudness.verbose))?,
        PlainFormat::Json => inert::through(out, Kind::Json, |out| report.write_json(out))?,
    }
    Ok(if report.is_equal() { ExitStatus::Clean } else { ExitStatus::Findings })
}

fn write(args: &SquashArgs, project: &Project, end: usize, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let version = args.input.settings(&project.config_of(1)).versions.to;
    let last = (end != usize::MAX).then_some(end);
    let replayed = replay(project, 1, last, version);
    let sql = script(&replayed.schema);
    match &args.output {
        Some(path) => create_files(&[(path.clone(), sql.text.clone())]).map_err(|problem| Failure::from(&problem))?,
        None => inert::through_if_seen(out, |out| out.write_all(sql.text.as_bytes()))?,
    }
    let seeds = seeds(&history(project, end, None), version);
    let rows = seeds.iter().map(|table| format!("the rows that migrations insert into {table}"));
    sql.omitted.iter().cloned().chain(rows).try_for_each(|omitted| inert::say("omitted", &omitted))?;
    Ok(match (replayed.unread, sql.omitted.is_empty() && seeds.is_empty()) {
        (0, true) => ExitStatus::Clean,
        (0, false) => ExitStatus::Findings,
        _ => ExitStatus::NotChecked,
    })
}

/// The tables that migrations insert rows into and that are not dropped later.
fn seeds(history: &[Migration<'_>], version: PgVersion) -> BTreeSet<String> {
    let all: Vec<Migration<'_>> = history.iter().map(|migration| Migration { report: true, ..*migration }).collect();
    let mut tables = BTreeSet::new();
    for statement in effects(&all, version, &pgvet_model::production::Functions::default()).iter().flatten() {
        for gone in statement.effects.drops.iter().chain(&statement.effects.truncates) {
            tables.remove(&(gone.oid, gone.to_string()));
        }
        let inserted = statement.effects.data_changes.iter().filter(|change| change.kind == DataChangeKind::Insert);
        tables.extend(inserted.map(|change| (change.relation.oid, change.relation.to_string())));
    }
    tables.into_iter().map(|(_, name)| name).collect()
}
