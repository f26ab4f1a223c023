//! The arguments of `pgvet trace`.

use crate::args::{BaselineFileArgs, FailOn, InputArgs};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use pgvet_trace::RowTarget;
use pgvet_workspace::config::{Limit, parse_duration};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 clean, 1 a limit is exceeded or --fail-on is met, 2 something could not be run, \
                  3 with --strict-model: a prediction was wrong, even if 1 or 2 would apply."
)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) place: CloneArgs,
    /// Fill tables with generated rows first, so that times are realistic: orders=2M,users=100k.
    #[arg(long, value_name = "TABLE=ROWS", value_delimiter = ',', value_parser = RowTarget::parse)]
    pub(crate) rows: Vec<RowTarget>,
    /// The number of rows that tables have in production. Times that grow with the number of rows are extrapolated to
    /// this number, and marked as extrapolated [default: `rows` of `[tables]` in pgvet.toml].
    #[arg(long, value_name = "TABLE=ROWS", value_delimiter = ',', value_parser = RowTarget::parse)]
    pub(crate) production_rows: Vec<RowTarget>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = TraceFormat::Full)]
    pub(crate) format: TraceFormat,
    /// Also write a page with a timeline of the locks.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write the measured speeds to the statistics file, from which `check` estimates times. By default, this is the
    /// statistics file of the migrations; FILE names another file.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "",
        value_parser = OsStringValueParser::new().map(StatisticsFile::from), conflicts_with = "workload")]
    pub(crate) calibrate: Option<StatisticsFile>,
    /// The longest time that locks of this mode or a stronger one may be held. If a lock is held for longer, exit with
    /// 1. Set limits for single tables in `pgvet.toml`.
    #[arg(long, value_name = "MODE=DURATION", value_delimiter = ',', value_parser = Limit::parse)]
    pub(crate) max_held: Vec<Limit>,
    /// Exit with 1 also if the rules report a finding of this severity or a higher one.
    #[arg(long, value_name = "SEVERITY", value_enum)]
    pub(crate) fail_on: Option<FailOn>,
    #[command(flatten)]
    pub(crate) baseline: BaselineFileArgs,
    /// Repeat the run N times, each time on a new clone, and report medians of the times.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) repeat: u16,
    /// Let other sessions read and write the locked tables, and report how long they wait.
    #[arg(long)]
    pub(crate) canary: bool,
    /// With --canary: keep a transaction that has read these tables open for this time. The lock of the migration then
    /// waits for that transaction, and the canaries queue behind the lock.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "canary")]
    pub(crate) inject_reader: Option<Duration>,
    /// Run the statements of this file repeatedly, and report how long they take before, during and after each
    /// migration.
    #[arg(long, value_name = "FILE")]
    pub(crate) workload: Option<PathBuf>,
    /// With --workload: how many sessions run it at the same time [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=500), requires = "workload")]
    pub(crate) clients: Option<u16>,
    /// Show what happens if a migration is interrupted, and measure nothing. This ends the session after each statement
    /// and during each concurrent build, runs the migration again as its tool would, and compares schema and rows with
    /// those of an undisturbed run. Needs --on scratch.
    #[arg(long, conflicts_with_all = MEASURES)]
    pub(crate) crash: bool,
    /// Show what happens if a migration runs twice at the same time, with the lock that its tool takes, and measure
    /// nothing. Needs --on scratch.
    #[arg(long, conflicts_with_all = MEASURES)]
    pub(crate) twice: bool,
    /// Exit with 3 if a statement behaves differently from the prediction, unless the prediction says that it may be
    /// wrong.
    #[arg(long)]
    pub(crate) strict_model: bool,
    /// Cancel statements that take longer than this, such as `30s`, including those of a workload.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) statement_timeout: Option<Duration>,
    /// End the trace after this time, whatever a migration does.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1h")]
    pub(crate) time_limit: Duration,
    /// Continue after a failed statement, as psql does.
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// The value of a placeholder; may be repeated.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) variables: Vec<(String, String)>,
    /// Remove the clones and servers that killed runs left behind, and do nothing else.
    #[arg(long)]
    pub(crate) clean: bool,
}

/// Where migrations run: on which clone of which database, or on a server of our own.
#[derive(Debug, Clone, Args)]
pub(crate) struct CloneArgs {
    /// Where to run the migrations.
    #[arg(long, value_enum, default_value_t = On::Scratch)]
    pub(crate) on: On,
    /// With --on template or url: the database, such as `postgres://USER@HOST/DATABASE` or `service=NAME`. Passwords
    /// come from PGPASSWORD, ~/.pgpass or a service, or pgvet asks for them on a terminal.
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// With --on datadir: the data directory. Give the name of the database with --database. The superuser is PGUSER,
    /// or else `postgres`.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// With --on dblab: the address of the engine. The token comes from `DBLAB_TOKEN`. Give the name of the database
    /// with --database.
    #[arg(long, value_name = "URL")]
    pub(crate) dblab: Option<String>,
    /// With --on dblab: the branch to clone [default: main].
    #[arg(long, value_name = "NAME", requires = "dblab")]
    pub(crate) dblab_branch: Option<String>,
    /// With --on url: confirm that the database is a clone, which may be changed and blocked.
    #[arg(long)]
    pub(crate) this_is_a_clone: bool,
    /// With --on template or url: also run statements with effects beyond the database, such as CREATE ROLE, ALTER
    /// SYSTEM and COPY ... PROGRAM. Without this option, pgvet refuses the run.
    #[arg(long)]
    pub(crate) allow_server_changes: bool,
    /// The folder with `initdb` and `postgres` [default: searched for].
    #[arg(long, value_name = "DIR")]
    pub(crate) pg_bin: Option<PathBuf>,
}

/// Options of a run that measures.
const MEASURES: [&str; 12] = [
    "rows",
    "production_rows",
    "report",
    "calibrate",
    "max_held",
    "fail_on",
    "repeat",
    "canary",
    "inject_reader",
    "workload",
    "strict_model",
    "keep_going",
];

/// The file that is to be calibrated.
#[derive(Debug, Clone)]
pub(crate) enum StatisticsFile {
    /// The one that belongs to the migrations.
    OfProject,
    Named(PathBuf),
}

impl From<OsString> for StatisticsFile {
    fn from(name: OsString) -> Self {
        if name.is_empty() { Self::OfProject } else { Self::Named(name.into()) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// A temporary server on which the earlier migrations are run first.
    Scratch,
    /// A copy of a database on its own server (CREATE DATABASE ... TEMPLATE).
    Template,
    /// A copy of the data directory of a running or stopped server, or of a snapshot of one.
    Datadir,
    /// A database that is already a clone, and that nobody else uses.
    Url,
    /// A thin clone of a DBLab Engine.
    Dblab,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// For reading.
    Full,
    /// For programs.
    Json,
    /// A summary for a comment or job page.
    Markdown,
}

pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("expected NAME=VALUE, not `{text}`"))?;
    Ok((name.to_owned(), value.to_owned()))
}
