//! `pgvet schema`: what the migrations have made so far.

use super::load;
use crate::args::{PlainFormat, SchemaArgs};
use crate::error::{ExitStatus, Failure};
use crate::inert::{self, Kind};
use crate::report::schema::{DatabaseSchema, SchemaReport};
use pgvet_model::checkpoint::Checkpoint;
use pgvet_model::migration::{Direction, Migration};
use pgvet_model::version::{Target, VersionRange};
use pgvet_workspace::{Project, ProjectFile};
use std::io::Write;

pub(crate) fn run(args: &SchemaArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let project = load(&args.input)?;
    let end = match &args.at {
        None => None,
        Some(name) => Some(file_called(&project, name)?),
    };
    let wanted = |database: u32| end.is_none_or(|at| project.files[at].database == database);
    let databases = (1..=project.databases.len() as u32).filter(|database| wanted(*database));
    let databases = databases.map(|database| schema_of(args, &project, database, end)).collect();
    let report = SchemaReport::new(databases, &args.table);
    match args.format {
        PlainFormat::Text => inert::through(out, Kind::Text, |out| report.write(out))?,
        PlainFormat::Json => inert::through(out, Kind::Json, |out| report.write_json(out))?,
    }
    Ok(if project.problems.is_empty() { ExitStatus::Clean } else { ExitStatus::NotChecked })
}

/// The index of the file that a name means.
fn file_called(project: &Project, name: &str) -> Result<usize, Failure> {
    let called = project.files.iter().enumerate().filter(|(_, file)| file.is_called(name));
    let called: Vec<(usize, &ProjectFile)> = called.collect();
    match called.as_slice() {
        [(at, _)] => Ok(*at),
        [] => Err(Failure::new(format!("no migration matches `{name}`"))
            .help("name it as in `0041_add_users.sql` or `0041`; `pgvet config --files` lists all files")),
        [.., (at, last)] => {
            // The files of one version, such as up.sql and down.sql, are one migration.
            let folder = last.path.parent();
            if called.iter().all(|(_, file)| file.path.parent() == folder && file.database == last.database) {
                Ok(*at)
            } else {
                Err(Failure::new(format!("several migrations match `{name}`")).help("name it with its folder"))
            }
        }
    }
}

/// Replays the migrations of a database up to and including the file at `end`.
fn schema_of(args: &SchemaArgs, project: &Project, database: u32, end: Option<usize>) -> DatabaseSchema {
    let mut settings = args.input.settings(&project.config_of(database));
    // A schema is that of one version: the newest.
    settings.versions = VersionRange { from: settings.versions.to, to: settings.versions.to };
    let migrations = std::iter::zip(project.migrations(), project.file_indexes());
    let replayed = migrations.filter(|(migration, file)| {
        let is_before = end.is_none_or(|end| *file <= end);
        is_before && (migration.database == 0 || migration.database == database)
    });
    let replayed: Vec<(Migration<'_>, usize)> = replayed.collect();
    let forward = |(migration, _): &&(Migration<'_>, usize)| migration.direction == Direction::Up;
    let last = replayed.iter().rfind(forward).map(|(_, file)| project.files[*file].shown().path.clone());
    let replayed: Vec<Migration<'_>> = replayed.into_iter().map(|(migration, _)| migration).collect();
    let mut state = Checkpoint::default();
    state.advance(&replayed, replayed.len(), settings.versions, &());
    let folder = project.databases[database as usize - 1].shown();
    DatabaseSchema::new(folder, last, settings.versions.to, state.catalog(), &Target::new(settings.versions.to))
}
