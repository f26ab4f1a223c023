//! `pgvet trace --calibrate`: what was measured goes into the file that `check` estimates by.

use super::snapshot;
use crate::error::Failure;
use crate::trace_args::StatisticsFile;
use pgvet_model::statistics::Statistics;
use pgvet_model::throughput::{Size, Throughput, Work};
use pgvet_workspace::{Change, Project, named_text, write_changes};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

/// A file with statistics that is to get the throughput of a run.
pub(super) struct Calibration {
    path: PathBuf,
    before: String,
    statistics: Statistics,
}

impl Calibration {
    /// Reads the file.
    pub(super) fn open(file: &StatisticsFile, project: &Project) -> Result<Self, Failure> {
        let path = match file {
            StatisticsFile::OfProject => project.config_of(1).statistics.clone(),
            StatisticsFile::Named(path) => Some(path.clone()),
        };
        let Some(path) = path else {
            return Err(Failure::new("there are no statistics to calibrate")
                .help("create them first with `pgvet snapshot URL`, or name their file with --calibrate=FILE"));
        };
        let failure = |error: &dyn std::fmt::Display| {
            Failure::new(format!("cannot calibrate `{}`: {error}", path.display()))
                .help("name a file that `pgvet snapshot` has written")
        };
        let before = named_text(&path).map_err(|error| failure(&error))?;
        let statistics = Statistics::parse(&before).map_err(|error| failure(&error))?;
        Ok(Self { path, before, statistics })
    }

    /// Replaces what the file says about the sorts of work that were measured, and tells it on standard error.
    pub(super) fn write(self, measures: &[(Work, Size, Duration)]) -> Result<(), Failure> {
        let Self { path, before, mut statistics } = self;
        let mut stderr = io::stderr().lock();
        let mut measured = Throughput::default();
        measured.replace(measures);
        if measured == Throughput::default() {
            let (rows, time) = (pgvet_trace::LEAST_ROWS, pgvet_trace::LEAST_TIME.as_millis());
            writeln!(
                stderr,
                "note: {} was not calibrated: no statement did only one kind of measured work, on a table of at least \
                 {rows} rows, for at least {time} ms",
                path.display()
            )?;
            return Ok(());
        }
        statistics.throughput.get_or_insert_default().replace(measures);
        let after = snapshot::text(&statistics)?;
        write_changes(&[Change { path: path.clone(), before, after }]).map_err(|problem| Failure::from(&problem))?;
        Ok(writeln!(stderr, "Calibrated {}: {measured}", path.display())?)
    }
}
