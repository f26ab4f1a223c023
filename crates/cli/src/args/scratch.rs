//! The arguments of the commands that run migrations on private servers and compare what is left.

use super::check::FailOn;
use super::input::{InputArgs, OUTPUT};
use super::{DiffFormat, PlainFormat};
use crate::trace_args::variable;
use clap::Args;
use pgvet_workspace::config::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

/// Heading of the options about the server.
const SERVER: &str = "Private server";

/// How a private server runs migrations.
#[derive(Debug, Args)]
pub(crate) struct ScratchArgs {
    /// The folder with `initdb` and `postgres` [default: searched for].
    #[arg(long, value_name = "DIR", help_heading = SERVER)]
    pub(crate) pg_bin: Option<PathBuf>,
    /// Cancel statements that take longer than this, such as `30s`.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = SERVER)]
    pub(crate) statement_timeout: Option<Duration>,
    /// End the run after this time, whatever a migration does.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1h", help_heading = SERVER)]
    pub(crate) time_limit: Duration,
    /// The value of a placeholder; may be repeated.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable, help_heading = SERVER)]
    pub(crate) variables: Vec<(String, String)>,
}

/// Runs each migration up, down and up again on a temporary server, and compares schema and rows.
///
/// Each migration that has a down migration runs on a copy of a database to which all earlier migrations were applied.
/// Empty tables are filled with generated rows.
#[derive(Debug, Args)]
#[command(after_help = "Exit status:\n  \
    0  no problem at or above --fail-on\n  \
    1  a down migration has a problem at or above --fail-on\n  \
    2  something could not be run")]
pub(crate) struct RoundtripArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Number of rows to generate for each table that is empty after the earlier migrations; 0 generates none.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    pub(crate) rows: u64,
    /// Exit with 1 if there is a problem of this severity or a higher one.
    #[arg(long, value_name = "SEVERITY", value_enum, default_value_t = FailOn::Error, help_heading = OUTPUT)]
    pub(crate) fail_on: FailOn,
    /// Output format.
    #[arg(long, value_enum, default_value_t = DiffFormat::Text, help_heading = OUTPUT)]
    pub(crate) format: DiffFormat,
    #[command(flatten)]
    pub(crate) server: ScratchArgs,
}

/// Writes one file that creates the same schema as a migration history, or compares such a file with the history.
#[derive(Debug, Args)]
#[command(after_help = "Exit status:\n  \
    0  written without omissions, or equal\n  \
    1  something is omitted, or differs\n  \
    2  something could not be read or run")]
pub(crate) struct SquashArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// The last migration that is replaced: a file name, a path or a version [default: the last one].
    #[arg(long, value_name = "MIGRATION")]
    pub(crate) at: Option<String>,
    /// Compare this file (a squashed migration or a dump) with the history. Both are run on temporary servers.
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub(crate) check: Option<PathBuf>,
    /// Write to this file, which must not exist [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// With --check: output format.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text, requires = "check", help_heading = OUTPUT)]
    pub(crate) format: PlainFormat,
    #[command(flatten)]
    pub(crate) server: ScratchArgs,
}
