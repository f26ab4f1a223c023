//! Which statements existing rows can make fail, for `pgvet precheck`.

use super::plural;
use crate::error::{ExitStatus, Failure};
use crate::inert::line;
use pgvet_linter::settings::Settings;
use pgvet_model::effect::{Access, Counterexample, Met, RowDemand};
use pgvet_trace::Answer;
use pgvet_workspace::{PrecheckedMigration, ProjectFile};
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// A statement that existing rows can make fail.
#[derive(Debug, Serialize)]
pub(crate) struct Precheck {
    path: String,
    line: u32,
    column: u32,
    #[serde(flatten)]
    migration: PrecheckedMigration,
    table: String,
    message: String,
    /// A row that the schema before the statement allows, and that makes it fail.
    example: Option<Counterexample>,
    /// Evidence for rows that do not.
    although: Option<String>,
    /// The query that counts such rows, or why there is none.
    #[serde(serialize_with = "written")]
    pub(crate) query: Result<String, String>,
    #[serde(skip)]
    is_pure: bool,
    /// How the query finds the rows.
    access: Access,
    /// The size of the table, if statistics say it.
    table_bytes: Option<u64>,
    /// What came of the query; `None` where no database was asked.
    pub(crate) outcome: Option<Outcome>,
}

fn written<S: Serializer>(query: &Result<String, String>, serializer: S) -> Result<S::Ok, S::Error> {
    query.as_ref().ok().serialize(serializer)
}

/// What came of a query.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Outcome {
    Counted {
        rows: i64,
        seconds: f64,
    },
    /// The evaluation of the query fails for a row, as the statement does.
    AtLeastOne {
        sqlstate: String,
        seconds: f64,
    },
    NotAsked {
        reason: String,
    },
    TimedOut,
    Failed {
        error: String,
    },
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Counted { rows, took } => Self::Counted { rows, seconds: took.as_secs_f64() },
            Answer::AtLeastOne { sqlstate, took } => Self::AtLeastOne { sqlstate, seconds: took.as_secs_f64() },
            Answer::NotYet(error) => {
                Self::NotAsked { reason: format!("an earlier statement has to run first: {error}") }
            }
            Answer::TimedOut => Self::TimedOut,
            Answer::Failed(error) => Self::Failed { error },
        }
    }
}

impl Outcome {
    fn has_rows(&self) -> bool {
        matches!(self, Self::Counted { rows: 1.., .. } | Self::AtLeastOne { .. })
    }
}

impl Precheck {
    pub(crate) fn new(file: &ProjectFile, demand: &RowDemand, settings: &Settings) -> Self {
        let start = file.shown().position(file.on_disk(demand.range).start);
        let table = &demand.relation;
        Self {
            path: file.shown().path.clone(),
            line: start.line,
            column: start.column,
            migration: PrecheckedMigration::of(file),
            table: demand.relation.to_string(),
            message: demand.to_string(),
            example: demand.counterexample.clone(),
            although: demand.met.map(note),
            query: demand.qualified_query().map_err(|part| format!("pgvet cannot write a query for {part}")),
            is_pure: demand.is_pure,
            access: demand.access.clone(),
            table_bytes: settings.table(&table.schema, &table.name).bytes,
            outcome: None,
        }
    }

    /// Why the query is not run; `None` where it may be.
    pub(crate) fn why_not_asked(&self) -> Option<String> {
        match &self.query {
            Err(reason) => Some(reason.clone()),
            Ok(_) if self.is_pure => None,
            Ok(_) => {
                Some("its condition calls functions that may change something, or that no migration defines".to_owned())
            }
        }
    }

    /// No query has shown that there are none.
    fn may_have_rows(&self) -> bool {
        !matches!(self.outcome, Some(Outcome::Counted { rows: 0, .. }))
    }

    fn place(&self) -> String {
        line(&format!("{}:{}:{}", self.path, self.line, self.column)).into_owned()
    }

    /// What the query reads: `reads all rows of the table (12 GB)`.
    fn cost(&self) -> String {
        let size = self.table_bytes.map_or_else(String::new, |bytes| format!(" ({})", shown_bytes(bytes)));
        match &self.access {
            Access::FirstRows => "reads at most two rows".to_owned(),
            Access::Index { index } => format!("can use the index `{index}`"),
            Access::Table => format!("reads all rows of the table{size}"),
        }
    }

    fn write_query(&self, out: &mut dyn Write) -> io::Result<()> {
        let query = self.query.as_deref().unwrap_or_default();
        query.lines().try_for_each(|text| writeln!(out, "        {text}"))
    }
}

/// A size as PostgreSQL's `pg_size_pretty` shows it.
fn shown_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "kB", "MB", "GB", "TB"];
    let mut size = bytes;
    let mut units = UNITS.iter();
    let mut unit = units.next().unwrap_or(&"bytes");
    while size >= 10 * 1024
        && let Some(larger) = units.next()
    {
        (size, unit) = (size / 1024, larger);
    }
    format!("{size} {unit}")
}

/// The version of the JSON.
const SCHEMA_VERSION: u32 = 1;

/// All of them.
#[derive(Debug, Serialize)]
pub(crate) struct PrecheckReport {
    schema_version: u32,
    /// When a database was asked, as its clock says.
    pub(crate) taken_at: Option<String>,
    pub(crate) prechecks: Vec<Precheck>,
    /// How many statements PostgreSQL refuses anyway, or were not analyzed at least in part: rows may make these fail, too.
    pub(crate) not_analyzed: usize,
}

impl Default for PrecheckReport {
    fn default() -> Self {
        Self { schema_version: SCHEMA_VERSION, taken_at: None, prechecks: Vec::new(), not_analyzed: 0 }
    }
}

impl PrecheckReport {
    fn count(&self, is_meant: impl Fn(&Outcome) -> bool) -> usize {
        self.prechecks.iter().filter(|precheck| precheck.outcome.as_ref().is_some_and(&is_meant)).count()
    }

    /// [`ExitStatus::Clean`] where no database was asked, too.
    pub(crate) fn status(&self) -> ExitStatus {
        if self.count(Outcome::has_rows) > 0 {
            ExitStatus::Findings
        } else if self.count(|outcome| matches!(outcome, Outcome::TimedOut | Outcome::Failed { .. })) > 0 {
            ExitStatus::NotChecked
        } else {
            ExitStatus::Clean
        }
    }

    /// What the database has answered.
    pub(crate) fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        for precheck in &self.prechecks {
            writeln!(out, "{}: {}", precheck.place(), line(&precheck.message))?;
            match precheck.outcome.as_ref() {
                Some(Outcome::Counted { rows: 0, seconds }) => writeln!(out, "    none ({seconds:.1} s)")?,
                Some(Outcome::Counted { rows, seconds }) => {
                    writeln!(out, "    {rows} found ({seconds:.1} s):")?;
                    precheck.write_query(out)?;
                }
                Some(Outcome::AtLeastOne { sqlstate, seconds }) => {
                    writeln!(out, "    at least 1 found (SQLSTATE {sqlstate}, {seconds:.1} s):")?;
                    precheck.write_query(out)?;
                }
                Some(Outcome::TimedOut) => {
                    let cost = precheck.cost();
                    writeln!(out, "    not counted within the time limit (--timeout); the query {}:", line(&cost))?;
                    precheck.write_query(out)?;
                }
                Some(Outcome::NotAsked { reason } | Outcome::Failed { error: reason }) => {
                    writeln!(out, "    not counted: {}", line(reason))?;
                }
                None => {}
            }
            if let Some(example) = precheck.example.as_ref().filter(|_| precheck.may_have_rows()) {
                writeln!(out, "    example: {}", line(&example.to_string()))?;
            }
            if let Some(although) = &precheck.although {
                writeln!(out, "    note: {}", line(although))?;
            }
        }
        writeln!(out, "{}", self.summary())?;
        let found = self.count(Outcome::has_rows);
        let none = self.count(|outcome| matches!(outcome, Outcome::Counted { rows: 0, .. }));
        if !self.prechecks.is_empty() {
            writeln!(
                out,
                "{found} with such rows, {none} without, {} not counted",
                self.prechecks.len() - found - none
            )?;
        }
        Ok(self.write_not_analyzed("", out)?)
    }

    fn summary(&self) -> String {
        match self.prechecks.len() {
            0 => "No statement was found that existing rows can make fail.".to_owned(),
            all => format!("{} can fail because of existing rows:", plural(all, "statement")),
        }
    }

    fn write_not_analyzed(&self, comment: &str, out: &mut dyn Write) -> io::Result<()> {
        match self.not_analyzed {
            0 => Ok(()),
            count => writeln!(
                out,
                "{comment}{} refused, or not analyzed completely: see `pgvet check --level info`.",
                if count == 1 { "1 statement is".to_owned() } else { format!("{count} statements are") }
            ),
        }
    }

    /// A script for psql. Comments end with their line, whatever the names in them are.
    pub(crate) fn write_script(&self, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "-- {}", self.summary())?;
        for precheck in &self.prechecks {
            writeln!(out, "\n-- {}: {}", precheck.place(), line(&precheck.message))?;
            if let Some(example) = &precheck.example {
                writeln!(out, "-- Example: {}.", line(&example.to_string()))?;
            }
            if let Some(although) = &precheck.although {
                writeln!(out, "-- Note: {}.", line(although))?;
            }
            match &precheck.query {
                Ok(query) => writeln!(out, "-- The query {}.\n{query};", line(&precheck.cost()))?,
                Err(reason) => writeln!(out, "-- No query: {}.", line(reason))?,
            }
        }
        Ok(self.write_not_analyzed("-- ", out)?)
    }

    pub(crate) fn write_json(&self, out: &mut dyn Write) -> Result<(), Failure> {
        serde_json::to_writer_pretty(&mut *out, self).map_err(io::Error::from)?;
        Ok(writeln!(out)?)
    }
}

/// Returns why the rows of a table may meet a demand.
fn note(met: Met) -> String {
    match met {
        Met::Changed => "an earlier statement of this deployment may correct these rows".to_owned(),
        Met::Emptied | Met::FoundEmpty | Met::NewColumns | Met::Replaced | Met::Retriable => met.to_string(),
    }
}
