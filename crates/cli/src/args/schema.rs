//! The arguments of the commands that show and compare schemas.

use super::check::FailOn;
use super::input::{ConfigSourceArgs, InputArgs, LoudnessArgs, OUTPUT};
use super::{PlainFormat, SHOW_STATUS};
use clap::{Args, ValueEnum};
use pgvet_model::version::PgVersion;
use pgvet_workspace::config::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

/// Heading of the options about a live database.
const DATABASE: &str = "Live database";

/// Shows the tables, columns, constraints and indexes as of a migration.
#[derive(Debug, Args)]
#[command(after_help = SHOW_STATUS)]
pub(crate) struct SchemaArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Show the schema after this migration: a file name, a path or a version [default: the last one].
    #[arg(long, value_name = "MIGRATION")]
    pub(crate) at: Option<String>,
    /// Show only these tables: `name`, or `schema.name`.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) table: Vec<String>,
    /// Show only the objects of these schemas of the database.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) in_schema: Vec<String>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = SchemaFormat::Text)]
    pub(crate) format: SchemaFormat,
}

/// How a schema is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFormat {
    /// For reading.
    Text,
    /// For programs.
    Json,
    /// Statements that create it in an empty database.
    Sql,
    /// An entity-relationship diagram.
    Mermaid,
}

/// Shows the differences between two schemas.
///
/// Each schema comes from a folder with migrations, a dump (FILE.sql), the migrations at a git revision (REV: or
/// REV:PATH, relative to the root of the repository), or a live database (`postgres://USER@HOST/DATABASE`,
/// service=NAME), whose catalogs are read in one read-only transaction.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 equal, 1 something differs, 2 something could not be read.")]
pub(crate) struct DiffArgs {
    /// The schema before.
    #[arg(value_name = "BEFORE", default_value = "HEAD:")]
    pub(crate) before: String,
    /// The schema after.
    #[arg(value_name = "AFTER", default_value = ".")]
    pub(crate) after: String,
    /// The last migration of BEFORE: a file name, a path or a version. Later ones are ignored.
    #[arg(long, value_name = "MIGRATION")]
    pub(crate) before_at: Option<String>,
    /// The last migration of AFTER. Later ones are ignored.
    #[arg(long, value_name = "MIGRATION")]
    pub(crate) at: Option<String>,
    /// Compare only the objects of these schemas of the database.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) in_schema: Vec<String>,
    /// The PostgreSQL major version of migrations [default: that of a live database, else the newest configured one].
    #[arg(long, value_name = "VERSION", value_parser = version)]
    pub(crate) pg_version: Option<PgVersion>,
    /// Timeout for each query of a live database.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "30s", help_heading = DATABASE)]
    pub(crate) timeout: Duration,
    /// Output format.
    #[arg(long, value_enum, default_value_t = ComparisonFormat::Text, help_heading = OUTPUT)]
    pub(crate) format: ComparisonFormat,
    #[command(flatten)]
    pub(crate) source: ConfigSourceArgs,
    #[command(flatten)]
    pub(crate) loudness: LoudnessArgs,
}

/// How a difference is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// For reading.
    Text,
    /// For programs.
    Json,
    /// A section for a comment or a job page.
    Markdown,
}

/// How the difference of two schemas is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ComparisonFormat {
    /// For reading.
    Text,
    /// For programs.
    Json,
    /// A section for a comment or a job page.
    Markdown,
    /// The statements that lead from the first schema to the second, for `pgvet check`.
    Sql,
}

/// Shows where a live database differs from its migrations.
///
/// pgvet reads the catalogs of the database in one read-only transaction. It reads no rows of your tables, and takes no
/// stronger lock than a query does. The role needs only CONNECT on the database.
#[derive(Debug, Args)]
#[command(after_help = "Exit status:\n  \
    0  no new drift at or above --fail-on, or it was written as known\n  \
    1  new drift at or above --fail-on\n  \
    2  something could not be read")]
pub(crate) struct DriftArgs {
    /// The migrations: a folder, or REV: or REV:PATH for a revision.
    #[arg(value_name = "MIGRATIONS", default_value = ".")]
    pub(crate) migrations: String,
    /// The database, such as `postgres://USER@HOST/DATABASE` or `service=NAME`. Passwords come from PGPASSWORD, ~/.pgpass
    /// or a service, or pgvet asks for them on a terminal.
    #[arg(long, value_name = "URL", help_heading = DATABASE)]
    pub(crate) database: String,
    /// Timeout for each query.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "30s", help_heading = DATABASE)]
    pub(crate) timeout: Duration,
    /// The last migration that the database has applied [default: the last one].
    #[arg(long, value_name = "MIGRATION")]
    pub(crate) at: Option<String>,
    /// Compare only the objects of these schemas of the database.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) in_schema: Vec<String>,
    /// A file with known drift, which is counted but not reported.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write all drift to this file, for --baseline.
    #[arg(long, value_name = "FILE")]
    pub(crate) write_baseline: Option<PathBuf>,
    /// Exit with 1 if there is drift of this severity or a higher one.
    #[arg(long, value_name = "SEVERITY", value_enum, default_value_t = FailOn::Warning, help_heading = OUTPUT)]
    pub(crate) fail_on: FailOn,
    /// Output format.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text, help_heading = OUTPUT)]
    pub(crate) format: PlainFormat,
    #[command(flatten)]
    pub(crate) source: ConfigSourceArgs,
    #[command(flatten)]
    pub(crate) loudness: LoudnessArgs,
}

/// One supported major version.
fn version(text: &str) -> Result<PgVersion, String> {
    let range = pgvet_model::version::VersionRange::parse(text)?;
    if range.from == range.to { Ok(range.to) } else { Err("give one version, not a range".to_owned()) }
}
