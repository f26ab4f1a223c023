//! The arguments of every command.

mod output;

pub(crate) use output::{Format, Output};

use crate::trace_args::TraceArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use pgvet_linter::confidence::Confidence;
use pgvet_linter::diagnostic::Severity;
use pgvet_linter::fix::Applicability;
use pgvet_linter::settings::Settings;
use pgvet_linter::version::VersionRange;
use pgvet_workspace::config::{Config, ConfigSource};
use pgvet_workspace::{Cache, ChangeSelection, Request, Texts};
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
    /// Make a sequence of safe migrations of one that would block.
    Rewrite(RewriteArgs),
    /// Show the locks, rewrites and scans of each statement.
    Effects(EffectsArgs),
    /// Write `pgvet.toml` for this repository.
    Init(InitArgs),
    /// Take the present findings as known; `check` then reports new ones only.
    Baseline(BaselineArgs),
    /// Show the migrations that were detected and the configuration in effect.
    Config(ConfigArgs),
    /// Run migrations on a real server and measure what they lock, rewrite and write.
    Trace(Box<TraceArgs>),
    /// Serve an editor: findings while the migration is being written.
    Lsp(LspArgs),
    /// Read sizes and traffic of a production database, for `check` to judge by.
    Snapshot(SnapshotArgs),
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
    /// Files or folders with SQL; `-` reads standard input [default: the configured folders, or the current one].
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// The PostgreSQL major version, or a range of them: `16`, `14-18`.
    #[arg(long, value_name = "VERSION", value_parser = VersionRange::parse)]
    pub(crate) pg_version: Option<VersionRange>,
    /// A file or folder that is replayed first and not reported; may be repeated.
    #[arg(long, value_name = "PATH")]
    pub(crate) history: Vec<PathBuf>,
    /// Do not replay the earlier migrations of a file's folder.
    #[arg(long, conflicts_with = "history")]
    pub(crate) no_history: bool,
    /// A dump of the schema that existed before (`pg_dump --schema-only`).
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// Accept empty standard input; without this it is an error, because the command before the pipe may have failed.
    #[arg(long)]
    pub(crate) allow_empty: bool,
    /// Path to use for standard input.
    #[arg(long, value_name = "NAME")]
    pub(crate) stdin_filename: Option<String>,
    /// Report only what comes after this migration: a file name, a path or a version; may be repeated.
    #[arg(long, value_name = "MIGRATION")]
    pub(crate) start_after: Vec<String>,
    #[command(flatten)]
    pub(crate) changes: ChangeArgs,
    #[command(flatten)]
    pub(crate) source: ConfigSourceArgs,
    /// When to use colour.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
}

/// Which changes are reported.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct ChangeArgs {
    /// Report only files that changed since this branch left REV, committed or not.
    #[arg(long, value_name = "REV")]
    pub(crate) since: Option<String>,
    /// Report only files that are staged in git, with the text that is staged.
    #[arg(long)]
    pub(crate) staged: bool,
    /// Report only files with changes that are not committed.
    #[arg(long)]
    pub(crate) changed: bool,
}

/// Where configuration comes from.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct ConfigSourceArgs {
    /// The configuration file [default: the nearest pgvet.toml in or above the migrations].
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Read no configuration file.
    #[arg(long)]
    pub(crate) no_config: bool,
}

impl ConfigSourceArgs {
    pub(crate) fn source(&self) -> ConfigSource {
        match &self.config {
            Some(file) => ConfigSource::File(file.clone()),
            None if self.no_config => ConfigSource::None,
            None => ConfigSource::Nearest,
        }
    }
}

impl ChangeArgs {
    pub(crate) fn selection(&self) -> Option<ChangeSelection> {
        match &self.since {
            Some(revision) => Some(ChangeSelection::Since(revision.clone())),
            None if self.staged => Some(ChangeSelection::Staged),
            None => self.changed.then_some(ChangeSelection::Uncommitted),
        }
    }
}

impl InputArgs {
    pub(crate) fn request(&self) -> Request {
        Request {
            paths: self.paths.clone(),
            history: self.history.clone(),
            schema: self.schema.clone(),
            stdin_name: self.stdin_filename.clone(),
            config: self.source.source(),
            without_history: self.no_history,
            changes: self.changes.selection(),
            start_after: self.start_after.clone(),
            texts: Texts::default(),
            allow_empty: self.allow_empty,
            every_file: false,
        }
    }

    pub(crate) fn settings(&self, config: &Config) -> Settings {
        let mut settings = config.settings.clone();
        if let Some(versions) = self.pg_version {
            settings.versions = versions;
            settings.versions_configured = true;
        }
        settings
    }
}

/// Which rules run, and what is shown of their findings.
#[derive(Debug, Args)]
pub(crate) struct RuleArgs {
    /// Lowest severity that is shown [default: warning].
    #[arg(long, value_name = "SEVERITY", value_enum)]
    pub(crate) level: Option<Level>,
    /// Lowest confidence that is shown [default: likely].
    #[arg(long, value_name = "CONFIDENCE", value_enum)]
    pub(crate) confidence: Option<ConfidenceArg>,
    /// Run only these rules.
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Do not run these rules.
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub(crate) ignore: Vec<String>,
    /// Also run the opt-in rules.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Also check down migrations.
    #[arg(long)]
    pub(crate) down: bool,
    /// Report suppressions that give no reason.
    #[arg(long)]
    pub(crate) require_reasons: bool,
}

impl RuleArgs {
    /// What `fails` the run is shown, too, unless the user asked for less.
    pub(crate) fn apply(&self, config: &Config, fails: Option<Severity>, mut settings: Settings) -> Settings {
        match self.level {
            Some(level) => settings.level = level.severity(),
            None => settings.level = config.level(fails),
        }
        if let Some(confidence) = self.confidence {
            settings.confidence = confidence.confidence();
        }
        settings.only.clone_from(&self.only);
        settings.ignore.clone_from(&self.ignore);
        settings.strict |= self.strict;
        settings.lint_down |= self.down;
        settings.require_reasons |= self.require_reasons;
        settings
    }
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    /// How to show findings; `FORMAT=FILE` writes to a file, and several formats may be given.
    ///
    /// Formats: full, concise, json, sarif, github, gitlab, sonarqube, markdown, junit, checkstyle.
    #[arg(long, value_name = "FORMAT[=FILE]", value_parser = Output::parse, default_value = "full")]
    pub(crate) format: Vec<Output>,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,
    /// Exit with 1 from this severity on [default: error].
    #[arg(long, value_name = "SEVERITY", value_enum)]
    pub(crate) fail_on: Option<FailOn>,
    /// Also show the findings that comments suppress; they never make the exit status 1.
    #[arg(long)]
    pub(crate) report_suppressed: bool,
    #[command(flatten)]
    pub(crate) baseline: BaselineFileArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    #[command(flatten)]
    pub(crate) fix: FixArgs,
}

/// What earlier runs found out.
#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// Neither use nor write the cache of earlier runs (its folder: `PGVET_CACHE_DIR`).
    #[arg(long)]
    no_cache: bool,
}

impl CacheArgs {
    pub(crate) fn cache(&self) -> Option<Cache> {
        if self.no_cache { None } else { Cache::of_user() }
    }
}

/// Which fixes are made.
#[derive(Debug, Args)]
pub(crate) struct FixArgs {
    /// Apply the fixes that do not change what a migration does.
    #[arg(long)]
    pub(crate) fix: bool,
    /// Also apply the fixes that need a review; implies `--fix`, unless `--diff` shows them.
    #[arg(long)]
    pub(crate) unsafe_fixes: bool,
    /// Show what `--fix` would change without changing it; exit with 1 if anything would change.
    #[arg(long)]
    pub(crate) diff: bool,
}

impl FixArgs {
    pub(crate) fn any(&self) -> bool {
        self.fix || self.unsafe_fixes || self.diff
    }

    pub(crate) fn applicability(&self) -> Applicability {
        if self.unsafe_fixes { Applicability::Unsafe } else { Applicability::Safe }
    }
}

/// Which findings are known.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct BaselineFileArgs {
    /// The file with known findings [default: pgvet-baseline.json, if it is there].
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Report known findings as well.
    #[arg(long)]
    pub(crate) no_baseline: bool,
}

impl CheckArgs {
    /// The least severity that makes the exit status 1 under this configuration.
    pub(crate) fn fails(&self, config: &Config) -> Option<Severity> {
        self.fail_on.map_or_else(|| config.fails(), FailOn::severity)
    }

    pub(crate) fn settings(&self, config: &Config) -> Settings {
        self.rules.apply(config, self.fails(config), self.input.settings(config))
    }
}

#[derive(Debug, Args)]
pub(crate) struct RewriteArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Write the files to this folder.
    #[arg(long, value_name = "DIR", conflicts_with = "in_place")]
    pub(crate) out: Option<PathBuf>,
    /// Write the first in place of the original, the others beside it with the tool's next versions.
    #[arg(long)]
    pub(crate) in_place: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// The database, such as `postgres://USER@HOST/DATABASE` or `service=NAME`. Passwords come from PGPASSWORD, ~/.pgpass
    /// or a service, or are asked for on a terminal.
    #[arg(value_name = "URL")]
    pub(crate) database: String,
    /// Where to write the statistics; `-` is standard output.
    #[arg(long, value_name = "FILE", default_value = pgvet_workspace::config::STATISTICS_NAME)]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct BaselineArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    #[command(flatten)]
    pub(crate) file: BaselineFileArgs,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Print the file instead of writing it.
    #[arg(long)]
    pub(crate) print: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// List every file with SQL, what it is (up, down, repeatable, seed, baseline, skipped or other) and why.
    #[arg(long)]
    pub(crate) files: bool,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = ConfigFormat::Text)]
    pub(crate) format: ConfigFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConfigFormat {
    Text,
    Json,
}

#[derive(Debug, Args)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Error,
    Warning,
    Info,
    Never,
}

impl FailOn {
    /// The least severity that makes the exit status 1.
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
pub(crate) enum ConfidenceArg {
    /// Only what follows from PostgreSQL and from facts of the history
    Certain,
    /// Also what holds for an ordinary production table or application
    Likely,
    /// Also what there is evidence against
    Possible,
}

impl ConfidenceArg {
    fn confidence(self) -> Confidence {
        match self {
            Self::Certain => Confidence::Certain,
            Self::Likely => Confidence::Likely,
            Self::Possible => Confidence::Possible,
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
