//! `pgvet precheck`: the rows of production that would make migrations fail.

use super::load;
use crate::args::{PlainFormat, PrecheckArgs};
use crate::error::{ExitStatus, Failure};
use crate::inert::{self, Kind, line};
use crate::report::plural;
use pgvet_model::effect::RelationName;
use pgvet_syntax::lexer::quote_identifier;
use pgvet_trace::Answer;
use pgvet_trace::provider::{parse_address, with_password};
use pgvet_workspace::{Project, Role};
use serde::Serialize;
use std::io::{self, Write};

pub(crate) fn run(args: &PrecheckArgs, out: &mut dyn Write) -> Result<ExitStatus, Failure> {
    let project = load(&args.input)?;
    let settings = args.input.settings(&project.config_of(1));
    let mut report = Report { prechecks: prechecks(&project, &project.effects(&settings)) };
    if let Some(database) = &args.database {
        let asked: Vec<&mut Precheck> =
            report.prechecks.iter_mut().filter(|precheck| precheck.is_pure && precheck.query.is_some()).collect();
        let queries: Vec<String> = asked.iter().filter_map(|precheck| precheck.query.clone()).collect();
        let answers = if queries.is_empty() {
            Vec::new()
        } else {
            pgvet_trace::precheck(&with_password(parse_address(database)?)?, &queries, args.timeout)?
        };
        for (precheck, answer) in std::iter::zip(asked, answers) {
            precheck.outcome = Some(answer.into());
        }
        report.prechecks.iter_mut().filter(|precheck| precheck.outcome.is_none()).for_each(|precheck| {
            precheck.outcome = Some(Outcome::NotAsked { reason: precheck.why_not_asked() });
        });
    }
    match args.format {
        PlainFormat::Json => inert::through(out, Kind::Json, |out| report.write_json(out))?,
        PlainFormat::Text if args.database.is_some() => inert::through(out, Kind::Text, |out| report.write(out))?,
        PlainFormat::Text => inert::through_if_seen(out, |out| report.write_script(out))?,
    }
    let status = if args.database.is_some() { report.status() } else { ExitStatus::Clean };
    Ok(if project.problems.is_empty() { status } else { ExitStatus::NotChecked })
}

/// What can fail in the reported files, in their order.
fn prechecks(project: &Project, effects: &[Vec<pgvet_model::predict::StatementEffects>]) -> Vec<Precheck> {
    let mut prechecks = Vec::new();
    let migrations = std::iter::zip(project.migrations(), project.file_indexes());
    for ((migration, file), statements) in std::iter::zip(migrations, effects) {
        let file = &project.files[file];
        if file.role != Role::Reported {
            continue;
        }
        for demand in statements.iter().flat_map(|statement| &statement.effects.demands) {
            let start = file.shown().position(file.on_disk(demand.range).start);
            prechecks.push(Precheck {
                path: file.shown().path.clone(),
                line: start.line,
                column: start.column,
                table: demand.relation.to_string(),
                message: demand.to_string(),
                although: demand.met.map(|met| met.to_string()),
                query: demand.query(&migration.file.text, qualified),
                is_pure: demand.is_pure,
                is_shown: demand.is_shown,
                outcome: None,
            });
        }
    }
    prechecks
}

fn qualified(table: &RelationName) -> String {
    format!("{}.{}", quote_identifier(&table.schema), quote_identifier(&table.name))
}

/// A statement that existing rows can make fail.
#[derive(Debug, Serialize)]
struct Precheck {
    path: String,
    line: u32,
    column: u32,
    table: String,
    message: String,
    /// What speaks for rows that do not.
    although: Option<String>,
    query: Option<String>,
    #[serde(skip)]
    is_pure: bool,
    #[serde(skip)]
    is_shown: bool,
    outcome: Option<Outcome>,
}

/// What came of a query.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Outcome {
    Counted { rows: i64, seconds: f64 },
    NotAsked { reason: String },
    TimedOut,
    Failed { error: String },
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Counted { rows, took } => Self::Counted { rows, seconds: took.as_secs_f64() },
            Answer::NotYet(error) => {
                Self::NotAsked { reason: format!("an earlier statement has to run first: {error}") }
            }
            Answer::TimedOut => Self::TimedOut,
            Answer::Failed(error) => Self::Failed { error },
        }
    }
}

impl Precheck {
    fn why_not_asked(&self) -> String {
        let reason = match &self.query {
            Some(_) => "its condition calls functions that may change something, or that no migration defines",
            None if !self.is_shown => "code or a template makes its condition",
            None => "the statement does not show the condition, or it contains a backslash",
        };
        reason.to_owned()
    }

    fn place(&self) -> String {
        line(&format!("{}:{}:{}", self.path, self.line, self.column)).into_owned()
    }
}

#[derive(Debug, Serialize)]
struct Report {
    prechecks: Vec<Precheck>,
}

impl Report {
    fn count(&self, is_meant: impl Fn(&Outcome) -> bool) -> usize {
        self.prechecks.iter().filter(|precheck| precheck.outcome.as_ref().is_some_and(&is_meant)).count()
    }

    fn status(&self) -> ExitStatus {
        if self.count(|outcome| matches!(outcome, Outcome::Counted { rows: 1.., .. })) > 0 {
            ExitStatus::Findings
        } else if self.count(|outcome| matches!(outcome, Outcome::TimedOut | Outcome::Failed { .. })) > 0 {
            ExitStatus::NotChecked
        } else {
            ExitStatus::Clean
        }
    }

    fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        for precheck in &self.prechecks {
            writeln!(out, "{}: {}", precheck.place(), line(&precheck.message))?;
            match precheck.outcome.as_ref() {
                Some(Outcome::Counted { rows: 0, seconds }) => writeln!(out, "    none ({seconds:.1} s)")?,
                Some(Outcome::Counted { rows, seconds }) => {
                    writeln!(out, "    {rows} found ({seconds:.1} s):")?;
                    precheck.write_query(out)?;
                }
                Some(Outcome::NotAsked { reason }) => writeln!(out, "    not counted: {}", line(reason))?,
                Some(Outcome::TimedOut) => {
                    writeln!(out, "    not counted within the time limit (--timeout):")?;
                    precheck.write_query(out)?;
                }
                Some(Outcome::Failed { error }) => writeln!(out, "    not counted: {}", line(error))?,
                None => {}
            }
            if let Some(although) = &precheck.although {
                writeln!(out, "    note: {}", line(although))?;
            }
        }
        let found = self.count(|outcome| matches!(outcome, Outcome::Counted { rows: 1.., .. }));
        let none = self.count(|outcome| matches!(outcome, Outcome::Counted { rows: 0, .. }));
        let all = self.prechecks.len();
        let can_fail = match all {
            0 => "No statement can fail because of existing rows.".to_owned(),
            1 => "1 statement can fail because of existing rows:".to_owned(),
            _ => format!("{all} statements can fail because of existing rows:"),
        };
        writeln!(out, "{can_fail}")?;
        if all > 0 {
            let rest = all - found - none;
            writeln!(out, "{found} with such rows, {none} without, {rest} not counted")?;
        }
        Ok(())
    }

    /// A script for psql. Comments end with their line, whatever the names in them are.
    fn write_script(&self, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "-- {} can fail because of existing rows.", plural(self.prechecks.len(), "statement"))?;
        for precheck in &self.prechecks {
            writeln!(out, "\n-- {}: {}", precheck.place(), line(&precheck.message))?;
            if let Some(although) = &precheck.although {
                writeln!(out, "-- Note: {}.", line(although))?;
            }
            match &precheck.query {
                Some(query) => writeln!(out, "{query};")?,
                None => writeln!(out, "-- No query: {}.", precheck.why_not_asked())?,
            }
        }
        Ok(())
    }

    fn write_json(&self, out: &mut dyn Write) -> Result<(), Failure> {
        serde_json::to_writer_pretty(&mut *out, self).map_err(io::Error::from)?;
        writeln!(out)?;
        Ok(())
    }
}

impl Precheck {
    fn write_query(&self, out: &mut dyn Write) -> io::Result<()> {
        let query = self.query.as_deref().unwrap_or_default();
        query.lines().try_for_each(|text| writeln!(out, "        {text}"))
    }
}
