//! The arguments of `pgvet capture`.

use super::check::{AgainstArgs, BaselineFileArgs, CacheArgs, CheckArgs, FailOn, FixArgs};
use super::input::{ChangeArgs, ConfigSourceArgs, InputArgs, LoudnessArgs, OUTPUT};
use super::output::Output;
use super::rules::RuleArgs;
use super::{ColorChoice, names};
use crate::trace_args::CloneArgs;
use clap::Args;
use pgvet_model::version::VersionRange;
use std::ffi::OsString;
use std::path::PathBuf;

/// Heading of the options about the command and its server.
const RUN: &str = "Run";

const AFTER: &str = "Exit status: that of the command if it fails; else 0 no finding at or above --fail-on, \
    1 a finding, 2 something could not be captured or checked.\n\n\
    Examples:\n  \
    pgvet capture -- python manage.py migrate\n  \
    pgvet capture --save db/captured -- alembic upgrade head\n  \
    pgvet capture --save db/captured --since origin/main -- npx knex migrate:latest";

/// Runs the migrations of a framework on a temporary server, and checks the SQL that they send.
///
/// The command finds the database in `DATABASE_URL`, PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE. If it reads
/// other variables, set them with --env. A command that ignores all of them migrates the database that its own settings
/// name: pgvet cannot prevent that.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct CaptureArgs {
    /// The command and its arguments. `{url}`, `{host}`, `{port}`, `{user}`, `{password}` and `{database}` are replaced
    /// by the values for the temporary server [default: `command` of `[capture]` in pgvet.toml].
    #[arg(value_name = "COMMAND", last = true, num_args = 1..)]
    pub(crate) command: Vec<OsString>,
    /// Write one SQL file for each migration to this folder, so that later checks need not run the command. If the
    /// folder has an earlier capture, pgvet applies it first, and the command runs only migrations that are new or have
    /// changed since.
    #[arg(long, value_name = "DIR", help_heading = RUN)]
    pub(crate) save: Option<PathBuf>,
    /// Run all migrations, even if an earlier capture is saved.
    #[arg(long, help_heading = RUN)]
    pub(crate) from_beginning: bool,
    /// A dump of the database from which the command starts: the schema (`pg_dump --schema-only --no-owner`), and the
    /// rows of the table in which the tool records applied migrations.
    #[arg(long, value_name = "FILE", help_heading = RUN)]
    pub(crate) schema: Option<PathBuf>,
    /// Report only migrations whose source changed since this branch left REV, committed or not.
    #[arg(long, value_name = "REV", help_heading = OUTPUT)]
    pub(crate) since: Option<String>,
    /// Also set this variable for the command; `{url}` and the other words are replaced as in the command. May be
    /// repeated.
    #[arg(long = "env", value_name = "NAME=TEMPLATE", value_parser = variable, help_heading = RUN)]
    pub(crate) variables: Vec<(String, String)>,
    /// The table in which the tool records applied migrations, if pgvet does not know it.
    #[arg(long, value_name = "TABLE", requires = "column", help_heading = RUN)]
    pub(crate) table: Option<String>,
    /// The column of that table that contains the migration's file name, or the number at its beginning.
    #[arg(long, value_name = "COLUMN", requires = "table", value_delimiter = ',', help_heading = RUN)]
    pub(crate) column: Vec<String>,
    /// Also keep the values of parameters. Without this option only their types and lengths are kept.
    #[arg(long, help_heading = RUN)]
    pub(crate) values: bool,
    /// Record all traffic in this file, as one JSON object per line.
    #[arg(long, value_name = "FILE", help_heading = RUN)]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten, next_help_heading = RUN)]
    pub(crate) place: CloneArgs,
    /// Also run the captured statements on a second server or clone, and report their locks and times as `pgvet trace`
    /// does.
    #[arg(long, help_heading = RUN)]
    pub(crate) trace: bool,
    /// The PostgreSQL major version, or a range. The server has the newest version of the range [default: 14-18].
    #[arg(long, value_name = "VERSION", value_parser = VersionRange::parse, help_heading = RUN)]
    pub(crate) pg_version: Option<VersionRange>,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    #[command(flatten)]
    pub(crate) source: ConfigSourceArgs,
    /// Output format; `FORMAT=FILE` writes to a file. May be repeated.
    #[arg(long, value_name = "FORMAT[=FILE]", value_parser = names::output(), default_value = "full",
        hide_possible_values = true, help_heading = OUTPUT)]
    pub(crate) format: Vec<Output>,
    /// Exit with 1 if there is a finding of this severity or a higher one [default: error].
    #[arg(long, value_name = "SEVERITY", value_enum, help_heading = OUTPUT)]
    pub(crate) fail_on: Option<FailOn>,
    #[command(flatten)]
    pub(crate) baseline: BaselineFileArgs,
    /// When to use color.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto, help_heading = OUTPUT)]
    pub(crate) color: ColorChoice,
    #[command(flatten)]
    pub(crate) loudness: LoudnessArgs,
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, template)) if !name.is_empty() => Ok((name.to_owned(), template.to_owned())),
        _ => Err("write NAME=TEMPLATE, as in DB_HOST={host}".to_owned()),
    }
}

impl CaptureArgs {
    /// The check of a folder with captured migrations, by the configuration of another one.
    pub(crate) fn check(&self, captured: Vec<PathBuf>, project: PathBuf, schema: Option<PathBuf>) -> CheckArgs {
        let nearest_to = Some(project);
        CheckArgs {
            input: InputArgs {
                paths: captured,
                exclude: Vec::new(),
                force_exclude: false,
                history: Vec::new(),
                no_history: false,
                schema,
                start_after: Vec::new(),
                changes: ChangeArgs::default(),
                stdin_filename: None,
                allow_empty: false,
                pg_version: self.pg_version,
                source: ConfigSourceArgs { nearest_to, ..self.source.clone() },
                color: self.color,
                loudness: self.loudness.clone(),
            },
            against: AgainstArgs::default(),
            rules: self.rules.clone(),
            format: self.format.clone(),
            output_file: None,
            statistics: false,
            fail_on: self.fail_on,
            report_suppressed: false,
            watch: false,
            baseline: self.baseline.clone(),
            cache: CacheArgs::default(),
            fix: FixArgs::default(),
        }
    }
}
