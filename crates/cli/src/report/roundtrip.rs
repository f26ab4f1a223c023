//! What was seen of down migrations, for `pgvet roundtrip`.

use super::diff::{lines, write_not_compared};
use super::plural;
use crate::inert;
use pgvet_schema::{NotCompared, Severity};
use pgvet_trace::RefusedStatement;
use pgvet_trace::roundtrip::{Part, Problem, Roundtrip, Roundtrips, Verdict};
use pgvet_workspace::{Project, Reversal, markup};
use serde::Serialize;
use std::io::{self, Write};

/// All round trips, and counts.
#[derive(Debug, Serialize)]
pub(crate) struct RoundtripReport<'a> {
    schema_version: u32,
    server_version: &'a str,
    migrations: Vec<Entry<'a>>,
    /// Migrations that were not judged because the history before them does not run, or the run ended early.
    not_reached: usize,
    /// Why the run ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<&'a str>,
    /// Migrations without a down migration.
    without_down: usize,
    history_ended: &'a [RefusedStatement],
    not_run: &'a [String],
}

/// A migration and its down migration.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    up: &'a str,
    down: &'a str,
    #[serde(flatten)]
    roundtrip: &'a Roundtrip,
}

/// Verdicts, with what is said of a number of migrations.
const VERDICTS: [(Verdict, &str); 7] = [
    (Verdict::Honest, "restore schema and rows"),
    (Verdict::Partial, "restore the objects, but not all rows and values, or not the order of columns"),
    (Verdict::NotRepeatable, "restore the schema, but the up migration then fails or results in a different schema"),
    (Verdict::Dishonest, "do not restore the schema"),
    (Verdict::Empty, "undo nothing"),
    (Verdict::Fails, "fail"),
    (Verdict::NotJudged, "not judged, because the up migration fails"),
];

impl<'a> RoundtripReport<'a> {
    pub(crate) fn new(
        project: &'a Project,
        reversals: &[Reversal],
        run: &'a Roundtrips,
        judged: usize,
        without_down: usize,
    ) -> Self {
        let path = |file: usize| project.files[file].shown().path.as_str();
        let entry = |roundtrip: &'a Roundtrip| {
            let reversal = &reversals[roundtrip.reversal];
            Entry { up: path(reversal.file), down: path(reversal.down_file.unwrap_or(reversal.file)), roundtrip }
        };
        Self {
            schema_version: 1,
            server_version: &run.server_version,
            migrations: run.roundtrips.iter().map(entry).collect(),
            not_reached: judged - run.roundtrips.len(),
            stopped: run.stopped.as_ref().map(|error| error.message.as_str()),
            without_down,
            history_ended: &run.ended,
            not_run: &run.not_run,
        }
    }

    /// Whether every migration was judged.
    pub(crate) fn is_whole(&self) -> bool {
        self.stopped.is_none()
            && self.not_reached == 0
            && !self.migrations.iter().any(|entry| entry.roundtrip.verdict == Verdict::NotJudged)
    }

    pub(crate) fn severities(&self) -> impl Iterator<Item = Severity> {
        self.migrations.iter().flat_map(|entry| entry.roundtrip.problems.iter().map(Problem::severity))
    }

    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    pub(crate) fn write(&self, out: &mut dyn Write, with_all: bool) -> io::Result<()> {
        for entry in &self.migrations {
            for problem in &entry.roundtrip.problems {
                let (message, details) = entry.said(problem);
                writeln!(out, "{}: {}", severity(problem), inert::line(&message))?;
                details.iter().try_for_each(|line| writeln!(out, "    {}", inert::line(line)))?;
            }
        }
        for refused in self.history_ended {
            writeln!(out, "error: {}", inert::line(&ended(refused)))?;
        }
        for text in self.not_run {
            writeln!(out, "note: {}", inert::line(text))?;
        }
        let counts = self.counts();
        writeln!(out, "{}", counts.join("\n"))?;
        let not_compared: Vec<NotCompared> = self.not_compared();
        write_not_compared(&not_compared, out, with_all)?;
        self.write_empty_tables(out, with_all)
    }

    /// Tables without generated rows: what was seen says little about rows in them.
    fn write_empty_tables(&self, out: &mut dyn Write, with_all: bool) -> io::Result<()> {
        let mut reasons: Vec<&String> =
            self.migrations.iter().flat_map(|entry| &entry.roundtrip.empty_tables).collect();
        reasons.sort();
        reasons.dedup();
        if reasons.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\nTables left empty: {}{}",
            reasons.len(),
            if with_all { "" } else { " (--verbose lists them)" }
        )?;
        let listed = if with_all { reasons.len() } else { 0 };
        reasons.iter().take(listed).try_for_each(|reason| writeln!(out, "  {}", inert::line(reason)))
    }

    fn not_compared(&self) -> Vec<NotCompared> {
        let mut all: Vec<NotCompared> =
            self.migrations.iter().flat_map(|entry| entry.roundtrip.not_compared.iter().cloned()).collect();
        all.sort();
        all.dedup();
        all
    }

    /// A line for each verdict, and for what was not judged.
    fn counts(&self) -> Vec<String> {
        let all = plural(self.migrations.len(), "down migration");
        let mut counts = vec![format!("{all} on PostgreSQL {}", self.server_version)];
        for (verdict, words) in VERDICTS {
            let count = self.migrations.iter().filter(|entry| entry.roundtrip.verdict == verdict).count();
            if count > 0 {
                counts.push(format!("  {count}: {words}"));
            }
        }
        if self.not_reached > 0 {
            let why = match (self.stopped, self.history_ended) {
                (None, _) => "an earlier migration fails",
                (Some(_), []) => "the run ended early",
                (Some(_), _) => "an earlier migration fails, or the run ended early",
            };
            counts.push(format!("{} not run, because {why}", plural(self.not_reached, "other")));
        }
        if self.without_down > 0 {
            counts.push(format!("{} without a down migration", plural(self.without_down, "migration")));
        }
        counts
    }

    /// A section for a comment or a job page.
    pub(crate) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### Down migrations\n")?;
        for entry in &self.migrations {
            for problem in &entry.roundtrip.problems {
                let (message, details) = entry.said(problem);
                writeln!(out, "- **{}**: {}", severity(problem), markup::code(&message))?;
                details.iter().try_for_each(|line| writeln!(out, "  - {}", markup::code(line)))?;
            }
        }
        for refused in self.history_ended {
            writeln!(out, "- **error**: {}", markup::code(&ended(refused)))?;
        }
        if let Some(why) = self.stopped {
            writeln!(out, "- **error**: the run ended early: {}", markup::code(why))?;
        }
        writeln!(out, "\n```text\n{}\n```", self.counts().join("\n"))
    }
}

fn severity(problem: &Problem) -> &'static str {
    match problem.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn ended(refused: &RefusedStatement) -> String {
    format!("{}: an earlier migration fails: {}", refused.place(), refused.message)
}

impl Entry<'_> {
    /// What is wrong, and the objects that show it.
    fn said(&self, problem: &Problem) -> (String, Vec<String>) {
        let down = self.down;
        match problem {
            Problem::Fails { part, refused, only_with_rows } => {
                let which = match part {
                    Part::Up => "the up migration fails",
                    Part::Down => "the down migration fails",
                    Part::UpAgain => "the up migration fails after the down migration",
                };
                let rows = if *only_with_rows { " only on tables with generated rows" } else { "" };
                let hint = refused.hint.iter().map(|hint| format!("hint: {hint}")).collect();
                (format!("{}: {which}{rows}: {}", refused.place(), refused.message), hint)
            }
            Problem::TakesNothingBack { .. } => {
                (format!("{down}: the down migration undoes none of the changes of the up migration"), Vec::new())
            }
            Problem::SchemaDiffers { part, changes, gaps } => {
                let message = match part {
                    Part::UpAgain => {
                        "running the up migration again after the down migration results in a different schema than the first time"
                    }
                    Part::Up | Part::Down => {
                        "after the down migration, the schema differs from that before the up migration"
                    }
                };
                let changes = changes.iter().flat_map(lines);
                (format!("{down}: {message}"), changes.chain(gaps.iter().cloned()).collect())
            }
            Problem::ColumnOrder { table, before, after, .. } => (
                format!(
                    "{down}: the columns of {table} are in a different order after the down migration: {before} -> {after}"
                ),
                Vec::new(),
            ),
            Problem::RowsDiffer { table, before, after } => {
                (format!("{down}: {}", lost(&format!("table {table}"), "row", *before, *after)), Vec::new())
            }
            Problem::ValuesDiffer { table, column, before, after } => {
                let column = format!("column {table}.{column}");
                let message = if before == after {
                    format!(
                        "{column} does not have the same values after the down migration as before the up migration"
                    )
                } else {
                    lost(&column, "value", *before, *after)
                };
                (format!("{down}: {message}"), Vec::new())
            }
        }
    }
}

fn lost(what: &str, noun: &str, before: u64, after: u64) -> String {
    let counted = plural(before as usize, noun);
    format!("{what} had {counted} before the up migration, and has {after} after the down migration")
}
