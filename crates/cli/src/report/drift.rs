//! Drift of a database from its migrations, for `pgvet drift`.

use super::diff::write_not_compared;
use super::plural;
use crate::inert;
use pgvet_schema::{Drift, NotCompared, Severity};
use pgvet_workspace::Observed;
use serde::Serialize;
use std::io::{self, Write};

/// What is new, and counts of the rest.
#[derive(Debug, Serialize)]
pub(crate) struct DriftReport<'a> {
    pub(crate) schema_version: u32,
    /// What the sides are called.
    pub(crate) migrations: &'a str,
    pub(crate) database: &'a str,
    /// New drift.
    pub(crate) drift: &'a [Drift],
    /// Drift that the baseline has.
    pub(crate) known: usize,
    /// Entries of the baseline that the database no longer has.
    pub(crate) gone: usize,
    pub(crate) not_compared: &'a [NotCompared],
    /// What the database has, for `pgvet check --against`, unless only a part of it was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed: Option<Observed>,
}

impl DriftReport<'_> {
    pub(crate) const VERSION: u32 = Observed::VERSION;

    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    pub(crate) fn write(&self, out: &mut dyn Write, with_all: bool) -> io::Result<()> {
        for drift in self.drift {
            let severity = match drift.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            writeln!(out, "{severity}: {}", inert::line(&drift.message))?;
        }
        let errors = self.drift.iter().filter(|drift| drift.severity == Severity::Error).count();
        let warnings = self.drift.len() - errors;
        let (migrations, database) = (inert::line(self.migrations), inert::line(self.database));
        if self.drift.is_empty() {
            writeln!(
                out,
                "No new drift: every compared property of {database} matches the schema that {migrations} creates"
            )?;
        } else {
            let (errors, warnings) = (plural(errors, "error"), plural(warnings, "warning"));
            writeln!(out, "\n{database} differs from {migrations}: {errors}, {warnings}")?;
        }
        if self.known > 0 {
            writeln!(out, "{} known from the baseline", plural(self.known, "difference"))?;
        }
        if self.gone > 0 {
            writeln!(out, "{} from the baseline no longer found", plural(self.gone, "difference"))?;
        }
        write_not_compared(self.not_compared, out, with_all)
    }
}
