//! The arguments of every command.

mod capture;
mod check;
mod input;
pub(crate) mod names;
mod output;
mod rules;
mod schema;
mod scratch;

pub(crate) use capture::CaptureArgs;
pub(crate) use check::{BaselineFileArgs, CacheArgs, CheckArgs, FailOn};
pub(crate) use input::{ConfigSourceArgs, InputArgs, LoudnessArgs};
pub(crate) use output::{Format, Output};
pub(crate) use rules::RuleArgs;
pub(crate) use schema::{DiffArgs, DiffFormat, DriftArgs, SchemaArgs, SchemaFormat};
pub(crate) use scratch::{RoundtripArgs, ScratchArgs, SquashArgs};

use crate::trace_args::TraceArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use pgvet_workspace::config::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

/// The meaning of the exit status, for the help.
const STATUS: &str = "Exit status: 0 clean, 1 findings, 2 something could not be checked. \
    The help of each command says more: pgvet COMMAND --help, or pgvet man COMMAND.";

/// The exit status of commands that only show something.
const SHOW_STATUS: &str = "Exit status: 0 shown, 2 something could not be read.";

/// Finds the PostgreSQL migrations that would hurt in production.
///
/// pgvet replays a migration history, works out which locks, rewrites and scans each statement causes, and reports
/// those that block the application, lose data or fail.
#[derive(Debug, Parser)]
#[command(name = "pgvet", version, after_help = STATUS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Report the problems in migrations.
    Check(CheckArgs),
    /// Make a sequence of safe migrations of one that would block.
    Rewrite(RewriteArgs),
    /// Show the locks, rewrites and scans of each statement.
    Effects(EffectsArgs),
    /// Write `pgvet.toml` for this repository.
    Init(InitArgs),
    /// Record the present findings as known; `check` then reports new ones only.
    Baseline(BaselineArgs),
    /// Show the migrations that were detected and the configuration in effect.
    Config(ConfigArgs),
    /// Run migrations on a real server and measure what they lock, rewrite and write.
    Trace(Box<TraceArgs>),
    /// Run the migrations of a framework on a private server, and check the SQL that they send.
    Capture(Box<CaptureArgs>),
    /// Serve an editor: findings while the migration is being written.
    Lsp(LspArgs),
    /// Serve a coding assistant: the Model Context Protocol on standard input and output.
    Mcp(McpArgs),
    /// Show the tables, columns, constraints and indexes as of a migration.
    Schema(SchemaArgs),
    /// Count the rows of production that would make migrations fail.
    Precheck(PrecheckArgs),
    /// Show what differs between two schemas: of migrations, of a dump or of a live database.
    Diff(DiffArgs),
    /// Show what a live database has otherwise than its migrations say.
    Drift(DriftArgs),
    /// Run each migration up, down and up again on a private server, and compare schema and rows.
    Roundtrip(Box<RoundtripArgs>),
    /// Write one file in place of a migration history, or compare one with the history.
    Squash(Box<SquashArgs>),
    /// Read sizes and traffic of a production database, for `check` to judge by.
    Snapshot(SnapshotArgs),
    /// Explain a rule, or list the rules of a category.
    Explain(ExplainArgs),
    /// List the rules.
    Rules(RulesArgs),
    /// Print the completions for a shell.
    Completions(CompletionsArgs),
    /// Print a manual page, or write all of them.
    Man(ManArgs),
    /// Print the JSON schema of what `check --format json` writes.
    JsonSchema,
}

/// Makes a sequence of safe migrations of one that would block.
///
/// It takes one migration: name it, or let --since, --staged or --changed find the only one that is new.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 rewritten, or nothing to rewrite; 1 a finding is left without a recipe; \
    2 it could not be rewritten.")]
pub(crate) struct RewriteArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// How to show the files.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
    /// Write the files to this folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["in_place", "format"])]
    pub(crate) out: Option<PathBuf>,
    /// Write the first in place of the original, the others beside it with the tool's next versions.
    #[arg(long, conflicts_with = "format")]
    pub(crate) in_place: bool,
}

/// Reads sizes and traffic of a production database, for `check` to judge by.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 written, 2 the database could not be read.")]
pub(crate) struct SnapshotArgs {
    /// The database, such as `postgres://USER@HOST/DATABASE` or `service=NAME`. Passwords come from PGPASSWORD, ~/.pgpass
    /// or a service, or are asked for on a terminal.
    #[arg(value_name = "URL")]
    pub(crate) database: String,
    /// Where to write the statistics; `-` is standard output.
    #[arg(long, value_name = "FILE", default_value = pgvet_workspace::config::STATISTICS_NAME)]
    pub(crate) out: PathBuf,
    /// The shortest time of counting after which writes and calls say how busy tables and functions are.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1h")]
    pub(crate) min_window: Duration,
}

/// Records the present findings as known; `check` then reports new ones only.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 written, 2 something could not be checked, so nothing was written.")]
pub(crate) struct BaselineArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
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
    /// List every file with SQL, what it is (up, down, repeatable, seed, baseline, skipped or other) and why.
    #[arg(long)]
    pub(crate) files: bool,
    /// How to show it.
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
    /// How to show effects.
    #[arg(long, value_enum, default_value_t = EffectsFormat::Full)]
    pub(crate) format: EffectsFormat,
}

#[derive(Debug, Args)]
pub(crate) struct LspArgs {
    /// Ignored; for editors that pass it.
    #[arg(long)]
    pub(crate) stdio: bool,
}

/// Serves a coding assistant: the Model Context Protocol on standard input and output.
///
/// Nothing is written, and nothing outside of the folder is read.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// The folder that tools may read; migrations and pgvet.toml are looked for in it.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,
    /// The longest that one call may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) time_limit: u64,
}

/// Counts the rows of production that would make migrations fail.
///
/// A new NOT NULL, CHECK, UNIQUE or foreign key fails if existing rows violate it. Without --database this prints the
/// queries that count such rows, as a script for psql. With --database it runs each in a read-only transaction of its own.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 no such row was found, or the queries were printed; 1 there are such rows; \
    2 something could not be counted.")]
pub(crate) struct PrecheckArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// The database to ask, such as `postgres://USER@HOST/DATABASE` or `service=NAME`. Passwords come from PGPASSWORD,
    /// ~/.pgpass or a service, or are asked for on a terminal.
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// The longest that one query may take.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "30s", requires = "database")]
    pub(crate) timeout: Duration,
    /// How to show the counts, or the queries.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}

/// Explains a rule, or lists the rules of a category.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 explained, 2 there is no such rule.")]
pub(crate) struct ExplainArgs {
    /// The name of a rule as in a finding, the beginning of one, a category, or what another linter calls the rule:
    /// `squawk/ban-drop-column`, `ban-drop-column`, `E9`, `PG303`.
    #[arg(value_name = "NAME", value_parser = names::rule_or_category(), hide_possible_values = true)]
    pub(crate) name: String,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
    /// When to use colour.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
}

#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// How to show the list.
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub(crate) format: ListFormat,
}

/// Prints a manual page, or writes all of them.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The command [default: the program].
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
