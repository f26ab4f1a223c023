//! Arguments that say which files a command reads, and by which configuration.

use clap::Args;
use pgvet_linter::settings::Settings;
use pgvet_model::version::VersionRange;
use pgvet_workspace::config::{Config, ConfigSource, Patterns};
use pgvet_workspace::{ChangeSelection, Request, Texts};
use std::path::{Path, PathBuf};

use super::ColorChoice;

/// Heading of the options that say which files are read.
pub(super) const FILES: &str = "Files";
/// Heading of the options that say how files are understood.
const CONFIGURATION: &str = "Configuration";
/// Heading of the options that say what is written.
pub(super) const OUTPUT: &str = "Output";

/// Which files a command reads, and for which versions.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Files or folders with SQL; `-` reads standard input [default: the configured folders, or the current folder].
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Ignore files that match, in addition to `exclude` in pgvet.toml; may be repeated.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', value_parser = pattern, help_heading = FILES)]
    pub(crate) exclude: Vec<String>,
    /// Report a file given on the command line only if the command without file names would report it. For hooks, which
    /// pass every changed file.
    #[arg(long, help_heading = FILES)]
    pub(crate) force_exclude: bool,
    /// A file or folder with earlier migrations, which define the schema but are not reported; may be repeated.
    #[arg(long, value_name = "PATH", help_heading = FILES)]
    pub(crate) history: Vec<PathBuf>,
    /// Ignore the earlier migrations of a file's folder.
    #[arg(long, conflicts_with = "history", help_heading = FILES)]
    pub(crate) no_history: bool,
    /// A dump of the schema before the first migration (`pg_dump --schema-only`).
    #[arg(long, value_name = "FILE", help_heading = FILES)]
    pub(crate) schema: Option<PathBuf>,
    /// Report only migrations after this one: a file name, a path or a version; may be repeated.
    #[arg(long, value_name = "MIGRATION", help_heading = FILES)]
    pub(crate) start_after: Vec<String>,
    #[command(flatten)]
    pub(crate) changes: ChangeArgs,
    /// Treat standard input as a file with this path.
    #[arg(long, value_name = "NAME", help_heading = FILES)]
    pub(crate) stdin_filename: Option<String>,
    /// Accept empty standard input. Without this option, empty input is an error, because the command before the pipe
    /// may have failed.
    #[arg(long, help_heading = FILES)]
    pub(crate) allow_empty: bool,
    /// The PostgreSQL major version, or a range of them: `16`, `14-18` [default: 14-18].
    #[arg(long, value_name = "VERSION", value_parser = VersionRange::parse, help_heading = CONFIGURATION)]
    pub(crate) pg_version: Option<VersionRange>,
    #[command(flatten)]
    pub(crate) source: ConfigSourceArgs,
    /// When to use color.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto, help_heading = OUTPUT)]
    pub(crate) color: ColorChoice,
    #[command(flatten)]
    pub(crate) loudness: LoudnessArgs,
}

/// How much is said besides findings.
#[derive(Debug, Clone, Default, Args)]
#[group(multiple = false)]
pub(crate) struct LoudnessArgs {
    /// Print findings and errors, without notes, hints and the summary.
    #[arg(long, short, help_heading = OUTPUT)]
    pub(crate) quiet: bool,
    /// Also list the configuration files, the files that are checked, earlier migrations, and skipped files.
    #[arg(long, short, help_heading = OUTPUT)]
    pub(crate) verbose: bool,
}

/// Which changes are reported.
#[derive(Debug, Clone, Default, Args)]
#[group(multiple = false)]
pub(crate) struct ChangeArgs {
    /// Report only files that changed since this branch left REV, committed or not.
    #[arg(long, value_name = "REV", help_heading = FILES)]
    pub(crate) since: Option<String>,
    /// Report only files that are staged in git, with the text that is staged.
    #[arg(long, help_heading = FILES)]
    pub(crate) staged: bool,
    /// Report only files with changes that are not committed.
    #[arg(long, help_heading = FILES)]
    pub(crate) changed: bool,
}

/// Where configuration comes from.
#[derive(Debug, Clone, Default, Args)]
#[group(multiple = false)]
pub(crate) struct ConfigSourceArgs {
    /// The configuration file [default: the nearest pgvet.toml in or above the migrations].
    #[arg(long, value_name = "FILE", help_heading = CONFIGURATION)]
    pub(crate) config: Option<PathBuf>,
    /// Read no configuration file.
    #[arg(long, help_heading = CONFIGURATION)]
    pub(crate) no_config: bool,
    /// The folder whose nearest configuration counts although the files are elsewhere.
    #[arg(skip)]
    pub(crate) nearest_to: Option<PathBuf>,
}

/// Checks a pattern of paths.
fn pattern(text: &str) -> Result<String, String> {
    match Patterns::new(Path::new(""), std::iter::once(text)) {
        Ok(_) => Ok(text.to_owned()),
        Err(wrong) => Err(wrong.message),
    }
}

impl ConfigSourceArgs {
    pub(crate) fn source(&self) -> ConfigSource {
        match &self.config {
            Some(file) => ConfigSource::File(file.clone()),
            None if self.no_config => ConfigSource::None,
            None => self.nearest_to.clone().map_or(ConfigSource::Nearest, ConfigSource::NearestTo),
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
            exclude: self.patterns(),
            force_exclude: self.force_exclude,
        }
    }

    /// The patterns of `--exclude`, which are relative to the current folder. Each of them has been checked.
    fn patterns(&self) -> Option<Patterns> {
        let patterns = self.exclude.iter().map(String::as_str);
        Patterns::new(Path::new(""), patterns).ok().filter(|_| !self.exclude.is_empty())
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
