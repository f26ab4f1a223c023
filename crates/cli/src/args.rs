//! The arguments of every command.

mod capture;
mod check;
mod described;
mod input;
pub(crate) mod names;
mod output;
mod reduce;
mod rules;
mod schema;
mod scratch;

pub(crate) use capture::CaptureArgs;
pub(crate) use check::{AgainstArgs, BaselineFileArgs, CacheArgs, CheckArgs, FailOn};
pub(crate) use input::{ConfigSourceArgs, InputArgs, LoudnessArgs};
pub(crate) use output::{Format, Output};
pub(crate) use reduce::ReduceArgs;
pub(crate) use rules::RuleArgs;
pub(crate) use schema::{ComparisonFormat, DiffArgs, DiffFormat, DriftArgs, SchemaArgs, SchemaFormat};
pub(crate) use scratch::{RoundtripArgs, ScratchArgs, SquashArgs};

use crate::trace_args::TraceArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use described::Described;
use pgvet_workspace::config::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

/// The meaning of the exit status, for the help.
const STATUS: &str = "Exit status: 0 clean, 1 findings, 2 something could not be checked. \
    The help of each command says more: pgvet COMMAND --help, or pgvet man COMMAND.";

/// The exit status of commands that only show something.
const SHOW_STATUS: &str = "Exit status: 0 shown, 2 something could not be read.";

/// Finds PostgreSQL migrations that would do harm in production.
///
/// pgvet computes the schema from the migrations of a project, works out the locks, rewrites and scans of each
/// statement, and reports the statements that block the application, lose data or fail.
#[derive(Debug, Parser)]
#[command(name = "pgvet", version, after_help = STATUS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

// Only the arguments of the command that runs are made: those of all commands take longer than to check a small file.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Report the problems in migrations.
    Check(Described<CheckArgs>),
    /// Replace a blocking migration by several safer ones.
    Rewrite(Described<RewriteArgs>),
    /// Show the locks, rewrites and scans of each statement.
    Effects(Described<EffectsArgs>),
    /// Write `pgvet.toml` for this repository.
    Init(Described<InitArgs>),
    /// Record the current findings as known, so that `check` reports only new ones.
    Baseline(Described<BaselineArgs>),
    /// Show the migrations that were detected and the configuration in effect.
    Config(Described<ConfigArgs>),
    /// Run migrations on a real server, and measure their locks, rewrites and writes.
    Trace(Described<Box<TraceArgs>>),
    /// Run the migrations of a framework on a temporary server, and check the SQL that they send.
    Capture(Described<Box<CaptureArgs>>),
    /// Run the language server for editors.
    Lsp(Described<LspArgs>),
    /// Run the MCP server for coding assistants, on standard input and output.
    Mcp(Described<McpArgs>),
    /// Show the tables, columns, constraints and indexes as of a migration.
    Schema(Described<SchemaArgs>),
    /// Count the rows of a production database that would make migrations fail.
    Precheck(Described<PrecheckArgs>),
    /// Show the differences between two schemas: of migrations, of a dump or of a live database.
    Diff(Described<DiffArgs>),
    /// Show where a live database differs from its migrations.
    Drift(Described<DriftArgs>),
    /// Shrink migrations or a query as far as possible while they still show a finding, a lock, an error or
    /// the output of a query.
    Reduce(Described<Box<ReduceArgs>>),
    /// Run each migration up, down and up again on a temporary server, and compare schema and rows.
    Roundtrip(Described<Box<RoundtripArgs>>),
    /// Write one file that replaces a migration history, or compare such a file with the history.
    Squash(Described<Box<SquashArgs>>),
    /// Read the sizes and traffic of a production database, so that `check` knows them.
    Snapshot(Described<SnapshotArgs>),
    /// Explain a rule, or list the rules of a category.
    Explain(Described<ExplainArgs>),
    /// List the rules.
    Rules(Described<RulesArgs>),
    /// Print the completions for a shell.
    Completions(Described<CompletionsArgs>),
    /// Print a manual page, or write all of them.
    Man(Described<ManArgs>),
    /// Print the JSON schema of the output of `check --format json`.
    JsonSchema,
}

/// Replaces a blocking migration by several safer ones.
///
/// Give one migration: a file, or --since, --staged or --changed if they find exactly one.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 rewritten, or nothing to rewrite; 1 a finding has no rewrite; \
    2 the migration could not be rewritten.")]
pub(crate) struct RewriteArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Output format.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
    /// Write the files to this folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["in_place", "format"])]
    pub(crate) out: Option<PathBuf>,
    /// Replace the original by the first file, and write the other files beside it, with the next version numbers.
    #[arg(long, conflicts_with = "format")]
    pub(crate) in_place: bool,
}

/// Reads the sizes and traffic of a production database, so that `check` knows them.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 written, 2 the database could not be read.")]
pub(crate) struct SnapshotArgs {
    /// The database, such as `postgres://USER@HOST/DATABASE` or `service=NAME`. Passwords come from PGPASSWORD, ~/.pgpass
    /// or a service, or pgvet asks for them on a terminal.
    #[arg(value_name = "URL")]
    pub(crate) database: String,
    /// Where to write the statistics; `-` is standard output.
    #[arg(long, value_name = "FILE", default_value = pgvet_workspace::config::STATISTICS_NAME)]
    pub(crate) out: PathBuf,
    /// The shortest time that counters must cover. Counters that were reset more recently do not show how busy tables
    /// and functions are, and are omitted.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1h")]
    pub(crate) min_window: Duration,
}

/// Records the current findings as known, so that `check` reports only new ones.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 written, 2 something could not be checked, so nothing was written.")]
pub(crate) struct BaselineArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) against: AgainstArgs,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    #[command(flatten)]
    pub(crate) file: BaselineFileArgs,
}

/// Writes `pgvet.toml` for this repository.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 written, 2 the file already exists, or something could not be read.")]
pub(crate) struct InitArgs {
    /// Print the file instead of writing it.
    #[arg(long)]
    pub(crate) print: bool,
}

/// Shows the migrations that were detected and the configuration in effect.
#[derive(Debug, Args)]
#[command(after_help = SHOW_STATUS)]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// List every SQL file with its role (up, down, repeatable, seed, baseline, skipped or other) and the reason.
    #[arg(long)]
    pub(crate) files: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlainFormat {
    Text,
    Json,
}

/// Shows the locks, rewrites and scans of each statement.
#[derive(Debug, Args)]
#[command(after_help = SHOW_STATUS)]
pub(crate) struct EffectsArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Output format.
    #[arg(long, value_enum, default_value_t = EffectsFormat::Full)]
    pub(crate) format: EffectsFormat,
}

#[derive(Debug, Args)]
pub(crate) struct LspArgs {
    /// Ignored; for editors that pass it.
    #[arg(long)]
    pub(crate) stdio: bool,
}

/// Runs the MCP server for coding assistants, on standard input and output.
///
/// It writes nothing, and reads nothing outside the folder.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// The folder with the migrations and pgvet.toml. The tools read nothing else.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,
    /// Timeout for one call, such as `90s`; at most `1h`.
    #[arg(long, value_name = "DURATION", value_parser = call_limit, default_value = "60s")]
    pub(crate) time_limit: Duration,
}

fn call_limit(text: &str) -> Result<Duration, String> {
    let limit = parse_duration(text)?;
    let allowed = Duration::from_secs(1)..=Duration::from_secs(3600);
    if allowed.contains(&limit) { Ok(limit) } else { Err(format!("`{text}` is not between 1s and 1h")) }
}

/// Counts the rows of a production database that would make migrations fail.
///
/// A new NOT NULL, CHECK, UNIQUE or foreign key fails if existing rows violate it. Without --database, this command
/// prints the queries that count these rows, as a script for psql. With --database, it runs each query in a read-only
/// transaction of its own.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 no rows make a migration fail, or the queries were printed; \
    1 some rows make a migration fail; 2 something could not be counted.")]
pub(crate) struct PrecheckArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// The database with the rows, such as `postgres://USER@HOST/DATABASE` or `service=NAME`. Passwords come from
    /// PGPASSWORD, ~/.pgpass or a service, or pgvet asks for them on a terminal.
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Timeout for each query.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "30s", requires = "database")]
    pub(crate) timeout: Duration,
    /// Output format.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}

/// Explains a rule, or lists the rules of a category.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 explained, 2 there is no such rule.")]
pub(crate) struct ExplainArgs {
    /// The name of a rule, the beginning of a name, a category, or the name of the rule in another linter:
    /// `squawk/ban-drop-column`, `ban-drop-column`, `E9`, `PG303`.
    #[arg(value_name = "NAME", value_parser = names::rule_or_category(), hide_possible_values = true)]
    pub(crate) name: String,
    /// Output format.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
    /// When to use color.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
}

#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// Output format.
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub(crate) format: ListFormat,
}

/// Prints a manual page, or writes all of them.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The command whose page is printed [default: the page of pgvet itself].
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// Write the pages of all commands to this folder.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EffectsFormat {
    /// For reading.
    Full,
    /// One line each.
    Concise,
    /// For programs.
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Table,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    Always,
    Never,
}
