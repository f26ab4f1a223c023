//! `pgvet drift`: where a database differs from its migrations.

use super::sides::{Reading, Side, both_in_schemas};
use crate::args::{DriftArgs, PlainFormat};
use crate::error::{ExitStatus, Failure};
use crate::inert::{self, Kind};
use crate::report::drift::DriftReport;
use pgvet_model::version::PgVersion;
use pgvet_schema::{Drift, compare, judge};
use pgvet_workspace::{Observed, create_report, named_text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

/// The version of the file with known drift.
const BASELINE_VERSION: u32 = 1;

/// A file with known drift.
#[derive(Debug, Serialize, Deserialize)]
struct Baseline {
    schema_version: u32,
    known: BTreeSet<String>,
}

pub(crate) fn run(args: &DriftArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let known = match &args.baseline {
        Some(path) => read_baseline(path)?,
        None => BTreeSet::new(),
    };
    let reading =
        |version, at| Reading { source: &args.source, loudness: &args.loudness, version, at, timeout: args.timeout };
    let database = Side::Database(args.database.clone()).read(&reading(None, None))?;
    let version = PgVersion(database.schema.pg_version);
    let migrations = Side::parse(&args.migrations);
    if migrations.is_database() {
        return Err(Failure::new("a database was given instead of migrations")
            .help("use `pgvet diff` to compare two databases"));
    }
    let migrations = migrations.read(&reading(Some(version), args.at.as_deref()))?;
    let (expected, observed) = both_in_schemas(&migrations.schema, &database.schema, &args.in_schema)?;
    let comparison = compare(&expected, &observed);
    let found = judge(&comparison, &expected, &observed);
    if let Some(path) = &args.write_baseline {
        write_baseline(path, &found)?;
    }
    let gone = known.iter().filter(|key| !found.iter().any(|drift| drift.key == **key)).count();
    let (old, new): (Vec<Drift>, Vec<Drift>) = found.into_iter().partition(|drift| known.contains(&drift.key));
    let applied = migrations.applied.filter(|_| args.in_schema.is_empty());
    let report = DriftReport {
        schema_version: DriftReport::VERSION,
        migrations: &migrations.title,
        database: &database.title,
        drift: &new,
        known: old.len(),
        gone,
        not_compared: &comparison.not_compared,
        observed: applied.map(|applied| Observed { applied, schema: database.schema }),
    };
    match args.format {
        PlainFormat::Text => inert::through(out, Kind::Text, |out| report.write(out, args.loudness.verbose))?,
        PlainFormat::Json => inert::through(out, Kind::Json, |out| report.write_json(out))?,
    }
    if !migrations.is_whole {
        return Ok(ExitStatus::NotChecked);
    }
    let is_written = args.write_baseline.is_some();
    let fails = |drift: &Drift| args.fail_on.fails(drift.severity);
    Ok(if !is_written && new.iter().any(fails) { ExitStatus::Findings } else { ExitStatus::Clean })
}

fn read_baseline(path: &Path) -> Result<BTreeSet<String>, Failure> {
    let failure = |message: String| {
        Failure::new(format!("cannot read the known drift in `{}`: {message}", path.display()))
            .help("write it again with --write-baseline")
    };
    let text = named_text(path).map_err(|error| failure(error.to_string()))?;
    let baseline: Baseline = serde_json::from_str(&text).map_err(|error| failure(error.to_string()))?;
    if baseline.schema_version != BASELINE_VERSION {
        return Err(failure(format!("its version is {}, not {BASELINE_VERSION}", baseline.schema_version)));
    }
    Ok(baseline.known)
}

fn write_baseline(path: &Path, found: &[Drift]) -> Result<(), Failure> {
    let known = found.iter().map(|drift| drift.key.clone()).collect();
    let failure = |error: io::Error| Failure::new(format!("cannot write `{}`: {error}", path.display()));
    let text = serde_json::to_string_pretty(&Baseline { schema_version: BASELINE_VERSION, known })
        .map_err(|error| Failure::new(format!("the known drift cannot be written: {error}")))?;
    let mut file = create_report(path).map_err(|problem| Failure::from(&problem))?;
    writeln!(file, "{text}").map_err(failure)
}
