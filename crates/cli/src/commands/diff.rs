//! `pgvet diff`: what differs between two schemas.

use super::sides::{Read, Reading, Side, both_in_schemas};
use crate::args::{ComparisonFormat, DiffArgs};
use crate::error::{ExitStatus, Failure};
use crate::inert::{self, Kind};
use crate::report::diff::DiffReport;
use pgvet_model::version::PgVersion;
use pgvet_schema::{compare, difference};
use std::io::Write;

pub(crate) fn run(args: &DiffArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let (before, after) = (Side::parse(&args.before), Side::parse(&args.after));
    let (before, after) = read_both(args, &before, &after)?;
    let (from, to) = both_in_schemas(&before.schema, &after.schema, &args.in_schema)?;
    let comparison = compare(&from, &to);
    let report = DiffReport::new(&before.title, &after.title, &comparison);
    match args.format {
        ComparisonFormat::Text => inert::through(out, Kind::Text, |out| report.write(out, args.loudness.verbose))?,
        ComparisonFormat::Json => inert::through(out, Kind::Json, |out| report.write_json(out))?,
        ComparisonFormat::Sql => {
            inert::through(out, Kind::Text, |out| out.write_all(difference(&from, &to).as_bytes()))?;
        }
        ComparisonFormat::Markdown => inert::through(out, Kind::Text, |out| report.write_markdown(out))?,
    }
    Ok(match (before.is_whole && after.is_whole, comparison.changes.is_empty()) {
        (false, _) => ExitStatus::NotChecked,
        (true, true) => ExitStatus::Clean,
        (true, false) => ExitStatus::Findings,
    })
}

/// Reads a database first, whose version is then that of the migrations.
fn read_both(args: &DiffArgs, before: &Side, after: &Side) -> Result<(Read, Read), Failure> {
    let reading = |version: Option<PgVersion>, at| Reading {
        source: &args.source,
        loudness: &args.loudness,
        version,
        at,
        timeout: args.timeout,
    };
    let asked = args.pg_version;
    let version_of = |read: &Read| asked.or(Some(PgVersion(read.schema.pg_version)));
    let (from, to) = (args.before_at.as_deref(), args.at.as_deref());
    if after.is_database() && !before.is_database() {
        let after = after.read(&reading(asked, to))?;
        return Ok((before.read(&reading(version_of(&after), from))?, after));
    }
    let before = before.read(&reading(asked, from))?;
    let after = after.read(&reading(version_of(&before), to))?;
    Ok((before, after))
}
