//! The arguments of `pgvet check`.

use super::input::{FILES, InputArgs, OUTPUT};
use super::names;
use super::output::Output;
use super::rules::RuleArgs;
use clap::{Args, ValueEnum};
use pgvet_linter::fix::Applicability;
use pgvet_linter::settings::Settings;
use pgvet_linter::severity::Severity;
use pgvet_workspace::Cache;
use pgvet_workspace::config::Config;
use std::path::{Path, PathBuf};

/// Heading of the options that change files.
const FIXES: &str = "Fixes";
/// Heading of the options about findings that are known.
const KNOWN: &str = "Known findings";

/// The meaning of the exit status, for the help.
const CHECK_STATUS: &str = "Exit status:\n  \
    0  no finding at or above --fail-on\n  \
    1  a finding at or above --fail-on; with --diff, something would change\n  \
    2  something could not be checked, or the arguments or the configuration are wrong";

/// Checks the reason of a suppression.
fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("a suppression needs a reason".to_owned());
    }
    if text.contains(|character: char| character.is_control()) || text.contains("*/") {
        return Err("a reason must be one line of text without `*/`".to_owned());
    }
    Ok(text.to_owned())
}

/// Reports the problems in migrations.
#[derive(Debug, Args)]
#[command(after_help = CHECK_STATUS)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) against: AgainstArgs,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    /// Output format; `FORMAT=FILE` writes to a file. May be repeated.
    ///
    /// Formats: full, concise, json, sarif, github, gitlab, sonarqube, markdown, junit, checkstyle.
    #[arg(long, value_name = "FORMAT[=FILE]", value_parser = names::output(), default_value = "full",
        hide_possible_values = true, help_heading = OUTPUT)]
    pub(crate) format: Vec<Output>,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output_file: Option<PathBuf>,
    /// Count the findings of each rule instead of listing them (formats full, concise and json).
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) statistics: bool,
    /// Exit with 1 if there is a finding of this severity or a higher one [default: error].
    #[arg(long, value_name = "SEVERITY", value_enum, help_heading = OUTPUT)]
    pub(crate) fail_on: Option<FailOn>,
    /// Also show the findings that comments suppress; they never make the exit status 1.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) report_suppressed: bool,
    /// Check again whenever a migration or the configuration changes, until interrupted.
    #[arg(long, conflicts_with_all = ["fix", "unsafe_fixes", "diff", "add_ignore"], help_heading = OUTPUT)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) baseline: BaselineFileArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    #[command(flatten)]
    pub(crate) fix: FixArgs,
}

/// What production has.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AgainstArgs {
    /// Check migrations against the schema of production: a file with the output of `pgvet drift --format json`.
    #[arg(long, value_name = "FILE", help_heading = FILES)]
    against: Option<PathBuf>,
    /// Judge findings by counts of existing rows: a file with the output of
    /// `pgvet precheck --database URL --format json`.
    #[arg(long, value_name = "FILE", help_heading = FILES)]
    precheck: Option<PathBuf>,
}

impl AgainstArgs {
    /// The schema of production.
    pub(crate) fn schema(&self) -> Option<&Path> {
        self.against.as_deref()
    }

    /// Its counts of rows.
    pub(crate) fn precheck(&self) -> Option<&Path> {
        self.precheck.as_deref()
    }
}

/// Use of the cache of earlier runs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CacheArgs {
    /// Neither read nor write the cache of earlier runs (in the folder `PGVET_CACHE_DIR`).
    #[arg(long, help_heading = OUTPUT)]
    no_cache: bool,
}

impl CacheArgs {
    pub(crate) fn cache(&self) -> Option<Cache> {
        if self.no_cache { None } else { Cache::of_user() }
    }
}

/// Which fixes are made.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FixArgs {
    /// Apply the fixes that do not change what a migration does.
    #[arg(long, help_heading = FIXES)]
    pub(crate) fix: bool,
    /// Also apply the fixes that need a review. Implies `--fix`, unless `--diff` is given.
    #[arg(long, help_heading = FIXES)]
    pub(crate) unsafe_fixes: bool,
    /// Show what `--fix` would change without changing it; exit with 1 if anything would change.
    #[arg(long, help_heading = FIXES)]
    pub(crate) diff: bool,
    /// Suppress all findings: write a comment with this reason before each statement with findings. With `--diff`, only
    /// show the comments. Use a baseline instead if the tool refuses to run after an applied migration was edited.
    #[arg(long, value_name = "REASON", value_parser = reason, conflicts_with_all = ["fix", "unsafe_fixes"],
        help_heading = FIXES)]
    pub(crate) add_ignore: Option<String>,
}

impl FixArgs {
    pub(crate) fn any(&self) -> bool {
        self.fix || self.unsafe_fixes || (self.diff && self.add_ignore.is_none())
    }

    pub(crate) fn applicability(&self) -> Applicability {
        if self.unsafe_fixes { Applicability::Unsafe } else { Applicability::Safe }
    }
}

/// Which findings are known.
#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub(crate) struct BaselineFileArgs {
    /// The file with known findings [default: pgvet-baseline.json, if it exists].
    #[arg(long, value_name = "FILE", help_heading = KNOWN)]
    pub(crate) baseline: Option<PathBuf>,
    /// Report known findings as well.
    #[arg(long, help_heading = KNOWN)]
    pub(crate) no_baseline: bool,
}

impl CheckArgs {
    /// Lowest severity that makes the exit status 1 under this configuration.
    pub(crate) fn fails(&self, config: &Config) -> Option<Severity> {
        self.fail_on.map_or_else(|| config.fails(), FailOn::severity)
    }

    pub(crate) fn settings(&self, config: &Config) -> Settings {
        self.rules.apply(config, self.fails(config), self.input.settings(config))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Error,
    Warning,
    Info,
    Never,
}

impl FailOn {
    /// Lowest severity that makes the exit status 1.
    pub(crate) fn severity(self) -> Option<Severity> {
        match self {
            Self::Error => Some(Severity::Error),
            Self::Warning => Some(Severity::Warning),
            Self::Info => Some(Severity::Info),
            Self::Never => None,
        }
    }

    /// Whether a judgement about a schema makes the exit status 1.
    pub(crate) fn fails(self, severity: pgvet_schema::Severity) -> bool {
        match self {
            Self::Error => severity == pgvet_schema::Severity::Error,
            Self::Warning | Self::Info => true,
            Self::Never => false,
        }
    }
}
