//! What follows if the session of a migration ends, for `pgvet trace --crash` and `--twice`.

use super::diff::lines;
use super::plural;
use crate::inert;
use pgvet_model::migration::{Direction, Migration};
use pgvet_model::runner::Retry;
use pgvet_trace::RefusedStatement;
use pgvet_trace::crash::{
    ContentDifference, Crash, Crashes, Left, Moment, Outcome, Point, Recovery, Resume, SessionEnd, Together, Twice,
    Verdict,
};
use pgvet_workspace::markup;
use serde::Serialize;
use std::io::{self, Write};
use std::mem::discriminant;

/// All migrations whose session was ended, and counts.
#[derive(Debug, Serialize)]
pub(crate) struct CrashReport<'a> {
    schema_version: u32,
    server_version: &'a str,
    migrations: Vec<Entry<'a>>,
    /// Migrations that were not judged: the history before them does not run, or the time was not enough.
    not_reached: usize,
    out_of_time: bool,
    history_ended: &'a [RefusedStatement],
    not_run: &'a [String],
}

/// A migration, and what its tool does.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    path: &'a str,
    /// What a person must do after a killed run before the tool runs the migration again.
    #[serde(skip_serializing_if = "Option::is_none")]
    after_kill: Option<String>,
    /// What records the migration as applied.
    record: String,
    #[serde(skip)]
    retry: Retry,
    #[serde(skip)]
    is_known: bool,
    #[serde(flatten)]
    crash: &'a Crash,
}

/// How a message is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Error,
    Note,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Note => "note",
        }
    }
}

/// One message with lines that explain it.
struct Said {
    level: Level,
    message: String,
    details: Vec<String>,
}

/// Verdicts, with what is said of a number of migrations.
const VERDICTS: [(Verdict, &str); 5] = [
    (Verdict::Safe, "safe to retry"),
    (
        Verdict::NotRecorded,
        "safe to retry, except after the last statement and before the tool records the migration (--verbose lists them)",
    ),
    (Verdict::Fails, "the next run fails"),
    (Verdict::Differs, "the next run succeeds with a different schema or different rows"),
    (Verdict::NotJudged, "not judged, because the migration itself fails"),
];

impl<'a> CrashReport<'a> {
    pub(crate) fn new(migrations: &[Migration<'a>], seen: &'a Crashes) -> Self {
        let entry = |crash: &'a Crash| Entry::new(&migrations[crash.migration], crash);
        let up = migrations.iter().filter(|migration| migration.direction == Direction::Up && migration.report).count();
        Self {
            schema_version: 1,
            server_version: &seen.server_version,
            migrations: seen.migrations.iter().map(entry).collect(),
            not_reached: up.saturating_sub(seen.migrations.len()),
            out_of_time: seen.out_of_time,
            history_ended: &seen.ended,
            not_run: &seen.not_run,
        }
    }

    /// Whether every migration was judged.
    pub(crate) fn is_whole(&self) -> bool {
        self.not_reached == 0 && self.migrations.iter().all(|entry| entry.crash.verdict != Verdict::NotJudged)
    }

    pub(crate) fn is_safe(&self) -> bool {
        let is_safe = |entry: &Entry<'_>| {
            entry.crash.verdict >= Verdict::NotRecorded && entry.crash.twice.as_ref().is_none_or(Twice::is_safe)
        };
        self.migrations.iter().all(is_safe)
    }

    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    pub(crate) fn write(&self, out: &mut dyn Write, with_all: bool) -> io::Result<()> {
        for said in self.said(with_all) {
            writeln!(out, "{}: {}", said.level.word(), inert::line(&said.message))?;
            said.details.iter().try_for_each(|line| writeln!(out, "    {}", inert::line(line)))?;
        }
        writeln!(out, "{}", self.counts().join("\n"))
    }

    /// A section for a comment or a job page.
    pub(crate) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### Interrupted migrations\n")?;
        for said in self.said(false) {
            writeln!(out, "- **{}**: {}", said.level.word(), markup::code(&said.message))?;
            said.details.iter().try_for_each(|line| writeln!(out, "  - {}", markup::code(line.trim_start())))?;
        }
        writeln!(out, "\n```text\n{}\n```", self.counts().join("\n"))
    }

    fn said(&self, with_all: bool) -> Vec<Said> {
        let note = |message: String| Said { level: Level::Note, message, details: Vec::new() };
        let mut all: Vec<Said> = self.migrations.iter().flat_map(|entry| entry.said(with_all)).collect();
        for refused in self.history_ended {
            let message = format!("{}: an earlier migration fails: {}", refused.place(), refused.message);
            all.push(Said { level: Level::Error, message, details: Vec::new() });
        }
        all.extend(self.not_run.iter().cloned().map(note));
        let mut of_tools: Vec<String> = self.migrations.iter().flat_map(Entry::of_tool).collect();
        of_tools.sort();
        of_tools.dedup();
        all.extend(of_tools.into_iter().map(note));
        all
    }

    /// A line for each verdict, and for what was not judged.
    fn counts(&self) -> Vec<String> {
        let count = |of: &dyn Fn(&Crash) -> usize| self.migrations.iter().map(|entry| of(entry.crash)).sum::<usize>();
        let all = plural(self.migrations.len(), "migration");
        let points = count(&|crash| crash.stops.len());
        let ended = if points == 0 {
            String::new()
        } else {
            format!(", with the session ended at {}", plural(points, "point"))
        };
        let mut counts = vec![format!("{all} on PostgreSQL {}{ended}", self.server_version)];
        for (verdict, words) in VERDICTS {
            // A run with --twice alone has judged nothing else.
            let number = count(&|crash| {
                let is_judged = crash.tried || verdict == Verdict::NotJudged;
                usize::from(crash.verdict == verdict && is_judged)
            });
            if number > 0 {
                counts.push(format!("  {number}: {words}"));
            }
        }
        for (together, words) in TOGETHER {
            let number = count(&|crash| {
                usize::from(crash.twice.as_ref().is_some_and(|twice| name(&twice.together) == together))
            });
            if number > 0 {
                counts.push(format!("  {number} when started twice at once: {words}"));
            }
        }
        let untried = count(&|crash| crash.untried);
        if untried > 0 {
            counts.push(format!("{} not tried (limit: 100 for each migration)", plural(untried, "more point")));
        }
        if self.not_reached > 0 {
            let why = if self.out_of_time {
                "because little time was left: allow more with --time-limit, or name the migrations"
            } else {
                "because an earlier migration fails"
            };
            counts.push(format!("{} not run, {why}", plural(self.not_reached, "other")));
        }
        counts
    }
}

/// What two runs at the same time did, with what is said of a number of migrations.
const TOGETHER: [(&str, &str); 6] = [
    ("waits", "the second run waits for the first"),
    ("kept-apart", "the tool's lock prevents them from overlapping"),
    ("one-fails", "one run fails, and the result is that of one run"),
    ("same-twice", "both succeed, and the result is that of one run"),
    ("differs", "the result differs from that of one run"),
    ("hangs", "the runs wait for each other"),
];

fn name(together: &Together) -> &'static str {
    match together {
        Together::Waits => "waits",
        Together::KeptApart => "kept-apart",
        Together::OneFails { .. } => "one-fails",
        Together::SameTwice => "same-twice",
        Together::Differs { .. } => "differs",
        Together::Hangs => "hangs",
    }
}

impl<'a> Entry<'a> {
    fn new(migration: &Migration<'a>, crash: &'a Crash) -> Self {
        let path = migration.file.path.as_str();
        let restart = &migration.runner.restart;
        Self {
            path,
            after_kill: restart.after_kill.map(str::to_owned),
            record: restart.record(path),
            retry: migration.runner.retry,
            is_known: migration.runner.is_known,
            crash,
        }
    }

    /// What holds for every migration of the tool.
    fn of_tool(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.crash.verdict == Verdict::NotJudged {
            return notes;
        }
        if let Some(step) = &self.after_kill {
            notes.push(format!("if the tool is killed, it runs no migration until you take this step: {step}"));
        } else if let Retry::After(step) = self.retry {
            notes.push(format!(
                "if the connection is lost outside a transaction, the tool runs no migration until you take this step: \
                 {step}"
            ));
        }
        if !self.is_known {
            notes.push(
                "no migration tool was recognized: each migration was run again from its first statement".to_owned(),
            );
        }
        if self.crash.twice.as_ref().is_some_and(|twice| twice.lock_unknown) {
            notes.push(
                "pgvet does not know how the tool prevents two runs at the same time, so both ran without a lock"
                    .to_owned(),
            );
        }
        notes
    }

    fn said(&self, with_all: bool) -> Vec<Said> {
        let mut all = Vec::new();
        if let Some(refused) = &self.crash.refused {
            let message = format!("{}: the migration itself fails: {}", refused.place(), refused.message);
            all.push(Said { level: Level::Error, message, details: refused.hint.clone().into_iter().collect() });
        }
        for (at, stop) in self.crash.stops.iter().enumerate() {
            let is_first = !self.crash.stops[..at].iter().any(|earlier| is_alike(earlier, stop));
            let is_shown = with_all || stop.point.moment != Moment::BeforeRecord;
            if is_first && is_shown {
                all.extend(self.of_stop(stop, &self.crash.stops[at + 1..]));
            }
        }
        for point in &self.crash.not_entered {
            let message = format!(
                "{}: not tested: a session that ends inside this statement, which commits in several steps",
                self.place(point)
            );
            if with_all {
                all.push(Said { level: Level::Note, message, details: Vec::new() });
            }
        }
        all.extend(self.of_twice(with_all));
        all
    }

    fn place(&self, point: &Point) -> String {
        match (point.line, point.column) {
            (Some(line), Some(column)) => format!("{}:{line}:{column}", self.path),
            _ => self.path.to_owned(),
        }
    }

    fn of_stop(&self, stop: &SessionEnd, later: &[SessionEnd]) -> Option<Said> {
        let outcome = match &stop.outcome {
            Outcome::Same => return None,
            Outcome::Complete => return None,
            Outcome::NotEnded => {
                let message = format!(
                    "{}: pgvet could not end the session during this statement, because the statement did not wait",
                    self.place(&stop.point)
                );
                return Some(Said { level: Level::Note, message, details: Vec::new() });
            }
            Outcome::Fails { refused } => {
                format!("the next run of the migration fails: {}: {}", refused.place(), refused.message)
            }
            Outcome::Differs { .. } => {
                "the next run of the migration succeeds with a different schema or different rows".to_owned()
            }
        };
        let when = when(stop.point.moment);
        let mut details = Vec::new();
        let alike: Vec<&SessionEnd> = later.iter().filter(|later| is_alike(stop, later)).collect();
        let is_only = alike.is_empty();
        let alike: Vec<String> = alike.iter().filter_map(|later| also(&later.point)).collect();
        if !alike.is_empty() {
            details.push(format!("same outcome {}", shortened(&alike)));
        }
        if let Outcome::Differs { difference } = &stop.outcome {
            details.push("after the next run, compared with an undisturbed run:".to_owned());
            details.extend(of_left(difference));
        }
        if let Some(left) = stop.left.as_ref().filter(|left| !left.is_empty()) {
            details.push("left by the session that ended:".to_owned());
            details.extend(of_left(left));
        }
        details.extend(self.of_recovery(stop.recovery.as_ref(), is_only));
        let level = if stop.point.moment == Moment::BeforeRecord { Level::Note } else { Level::Error };
        Some(Said { level, message: format!("{}: {when}, {outcome}", self.place(&stop.point)), details })
    }

    /// `is_only`: whether the steps are for one point.
    fn of_recovery(&self, recovery: Option<&Recovery>, is_only: bool) -> Vec<String> {
        let Some(recovery) = recovery else {
            return vec![
                "to recover: no steps were found that lead to the result of an undisturbed run; compare the schema and \
                 the rows by hand"
                    .to_owned(),
            ];
        };
        let record = &self.record;
        let last = match recovery.resume {
            Resume::RunAgain => match (&self.after_kill, self.retry) {
                (Some(step), _) => format!("{step}, and run the migration again"),
                (None, Retry::After(step)) => format!("run the migration again; if the tool refuses, {step} first"),
                (None, _) => "run the migration again".to_owned(),
            },
            Resume::RunRest { line, after_settings } => {
                let from = if is_only {
                    format!("from line {line} on")
                } else {
                    "from the first incomplete one on".to_owned()
                };
                let settings = match (after_settings, is_only) {
                    (false, _) => "",
                    (true, true) => ", together with the SET statements before that line",
                    (true, false) => ", together with the SET statements before it",
                };
                format!("run the statements {from} by hand{settings}, and {record}")
            }
            Resume::Record => record.clone(),
        };
        let sql = recovery.sql.iter().map(|sql| format!("{sql};"));
        let steps: Vec<String> = sql.chain([last]).collect();
        let numbered = |(at, step): (usize, &String)| format!("  {}. {step}", at + 1);
        let heading = "to recover:".to_owned();
        std::iter::once(heading).chain(steps.iter().enumerate().map(numbered)).collect()
    }

    fn of_twice(&self, with_all: bool) -> Option<Said> {
        let twice = self.crash.twice.as_ref()?;
        let refusals = |refused: &[RefusedStatement]| {
            refused.iter().map(|one| format!("refused: {}: {}", one.place(), one.message)).collect::<Vec<_>>()
        };
        let (level, message, details) = match &twice.together {
            Together::Waits | Together::KeptApart | Together::SameTwice => return None,
            Together::OneFails { refused } if with_all => {
                let message = "if two runs start at once, one fails, and the result is that of one run";
                (Level::Note, message, refusals(std::slice::from_ref(refused)))
            }
            Together::OneFails { .. } => return None,
            Together::Differs { refused, difference } => {
                let message = "if two runs start at once, the result differs from that of one run";
                let mut details = refusals(refused);
                details.push("compared with one run:".to_owned());
                details.extend(of_left(difference));
                (Level::Error, message, details)
            }
            Together::Hangs => {
                let message =
                    "if two runs start at once, they wait for each other, and PostgreSQL does not detect the deadlock";
                (Level::Error, message, Vec::new())
            }
        };
        Some(Said { level, message: format!("{}: {message}", self.path), details })
    }
}

/// Whether one message is enough for both points.
fn is_alike(one: &SessionEnd, other: &SessionEnd) -> bool {
    let is_record = |stop: &SessionEnd| stop.point.moment == Moment::BeforeRecord;
    let steps =
        |stop: &SessionEnd| stop.recovery.clone().map(|recovery| (recovery.sql, discriminant(&recovery.resume)));
    one.outcome == other.outcome
        && one.outcome != Outcome::NotEnded
        && is_record(one) == is_record(other)
        && steps(one) == steps(other)
}

fn when(moment: Moment) -> &'static str {
    match moment {
        Moment::BeforeCommit => "if the session ends before this transaction commits",
        Moment::AfterStatement => "if the session ends after this statement",
        Moment::DuringStatement => "if the session ends during this statement",
        Moment::BeforeRecord => "if the session ends after the last statement and before the migration is recorded",
    }
}

fn also(point: &Point) -> Option<String> {
    let line = point.line?;
    Some(match point.moment {
        Moment::DuringStatement => format!("during line {line}"),
        _ => format!("after line {line}"),
    })
}

/// The first of some texts, and the number of the others.
fn shortened(texts: &[String]) -> String {
    const SHOWN: usize = 8;
    let more = texts.len().saturating_sub(SHOWN);
    let shown = texts[..texts.len() - more].join(", ");
    if more == 0 { shown } else { format!("{shown}, and {more} more") }
}

fn of_left(left: &Left) -> Vec<String> {
    let rows = left.rows.iter().map(|row| match row {
        ContentDifference::Rows { table, before, after } => format!("~ rows of {table}: {before} -> {after}"),
        ContentDifference::Values { table, column, before, after } if before == after => {
            format!("~ values of {table}.{column}")
        }
        ContentDifference::Values { table, column, before, after } => {
            format!("~ values of {table}.{column} that are not NULL: {before} -> {after}")
        }
    });
    let detached = left.half_detached.iter().map(|partition| format!("~ detach of partition {partition} is pending"));
    let lines = left.changes.iter().flat_map(lines).chain(rows).chain(detached);
    lines.map(|line| format!("  {line}")).collect()
}
