//! `pgvet schema`: what the migrations have made so far.

use super::load;
use super::sides::{file_called, replay};
use crate::args::{SchemaArgs, SchemaFormat};
use crate::error::{ExitStatus, Failure};
use crate::inert::{self, Kind};
use crate::report::schema::{DatabaseSchema, SchemaReport};
use pgvet_schema::narrow;
use pgvet_workspace::Project;
use std::io::Write;

pub(crate) fn run(args: &SchemaArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let project = load(&args.input)?;
    let end = match &args.at {
        None => None,
        Some(name) => Some(file_called(&project, name)?),
    };
    let wanted = |database: u32| end.is_none_or(|at| project.files[at].database == database);
    let databases = (1..=project.databases.len() as u32).filter(|database| wanted(*database));
    let (databases, unread): (Vec<DatabaseSchema>, Vec<usize>) =
        databases.map(|database| schema_of(args, &project, database, end)).unzip();
    let report = SchemaReport::new(databases);
    match args.format {
        SchemaFormat::Text => inert::through(out, Kind::Text, |out| report.write(out))?,
        SchemaFormat::Json => inert::through(out, Kind::Json, |out| report.write_json(out))?,
        SchemaFormat::Sql => inert::through_if_seen(out, |out| report.write_sql(out))?,
        SchemaFormat::Mermaid => inert::through_if_seen(out, |out| report.write_mermaid(out))?,
    }
    let is_whole = project.problems.is_empty() && unread.iter().all(|unread| *unread == 0);
    Ok(if is_whole { ExitStatus::Clean } else { ExitStatus::NotChecked })
}

/// The schema of a database, and the number of statements that could not be read.
fn schema_of(args: &SchemaArgs, project: &Project, database: u32, end: Option<usize>) -> (DatabaseSchema, usize) {
    let settings = args.input.settings(&project.config_of(database));
    // A schema is that of one version: the newest.
    let replayed = replay(project, database, end, settings.versions.to);
    let folder = project.databases[database as usize - 1].shown().clone();
    let schema = narrow::in_schemas(replayed.schema, &args.in_schema);
    let schema = narrow::relations(schema, &args.table);
    (DatabaseSchema { folder, as_of: replayed.last, schema }, replayed.unread)
}
