//! The arguments of every command.

use crate::trace_args::TraceArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use pgvet_linter::diagnostic::Severity;
use pgvet_linter::settings::Settings;
use pgvet_linter::version::VersionRange;
use pgvet_workspace::Request;
use std::path::PathBuf;

/// Finds the PostgreSQL migrations that would hurt in production.
///
/// pgvet replays a migration history, works out which locks, rewrites and scans each statement causes, and reports
/// those that block the application, lose data or fail.
#[derive(Debug, Parser)]
#[command(name = "pgvet", version, after_help = "Exit status: 0 clean, 1 findings, 2 something could not be checked.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Report the problems in migrations.
    Check(CheckArgs),
    /// Show the locks, rewrites and scans of each statement.
    Effects(EffectsArgs),
    /// Run migrations on a real server and measure what they lock, rewrite and write.
    Trace(TraceArgs),
    /// Explain a rule.
    Explain(ExplainArgs),
    /// List the rules.
    Rules(RulesArgs),
    /// Print the completions for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page.
    #[command(hide = true)]
    Man,
}

/// Which files a command reads, and for which versions.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Files or folders with SQL; `-` reads standard input.
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// The PostgreSQL major version, or a range of them: `16`, `14-18`.
    #[arg(long, value_name = "VERSION", value_parser = VersionRange::parse)]
    pub(crate) pg_version: Option<VersionRange>,
    /// A file or folder that is replayed first and not reported; may be repeated.
    #[arg(long, value_name = "PATH")]
    pub(crate) history: Vec<PathBuf>,
    /// A dump of the schema that existed before (`pg_dump --schema-only`).
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// The path that standard input stands for.
    #[arg(long, value_name = "NAME")]
    pub(crate) stdin_filename: Option<String>,
    /// When to use colour.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
}

impl InputArgs {
    pub(crate) fn request(&self) -> Request {
        Request {
            paths: self.paths.clone(),
            history: self.history.clone(),
            schema: self.schema.clone(),
            stdin_name: self.stdin_filename.clone(),
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings { versions_configured: self.pg_version.is_some(), ..Settings::default() };
        if let Some(versions) = self.pg_version {
            settings.versions = versions;
        }
        settings
    }
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// How to show findings.
    #[arg(long, value_enum, default_value_t = Format::Full)]
    pub(crate) format: Format,
    /// Exit with 1 from this severity on.
    #[arg(long, value_name = "SEVERITY", value_enum, default_value_t = FailOn::Error)]
    pub(crate) fail_on: FailOn,
    /// The least severity that is shown [default: warning].
    #[arg(long, value_name = "SEVERITY", value_enum)]
    pub(crate) level: Option<Level>,
    /// Run only these rules.
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Do not run these rules.
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub(crate) ignore: Vec<String>,
    /// Also run the opt-in rules.
    #[arg(long)]
    pub(crate) strict: bool,
}

impl CheckArgs {
    pub(crate) fn settings(&self) -> Settings {
        // What makes the exit status 1 is also shown, unless the user asked for less.
        let fail_on = self.fail_on.severity().unwrap_or(Severity::Error);
        Settings {
            level: self.level.map_or(fail_on.min(Severity::Warning), Level::severity),
            only: self.only.clone(),
            ignore: self.ignore.clone(),
            strict: self.strict,
            ..self.input.settings()
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct EffectsArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// How to show effects.
    #[arg(long, value_enum, default_value_t = Format::Full)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The rule's name, as in a finding.
    pub(crate) rule: String,
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

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Error,
    Warning,
    Info,
    Never,
}

impl FailOn {
    pub(crate) fn severity(self) -> Option<Severity> {
        match self {
            Self::Error => Some(Severity::Error),
            Self::Warning => Some(Severity::Warning),
            Self::Info => Some(Severity::Info),
            Self::Never => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    Info,
    Warning,
    Error,
}

impl Level {
    fn severity(self) -> Severity {
        match self {
            Self::Info => Severity::Info,
            Self::Warning => Severity::Warning,
            Self::Error => Severity::Error,
        }
    }
}
