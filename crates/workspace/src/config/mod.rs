//! `pgvet.toml`: found, read, merged with what it extends, and resolved to the engine's settings.

mod duration;
mod error;
mod file;
mod hiding;
mod limit;
mod patterns;
mod resolve;
mod schema;

pub use duration::parse_duration;
pub use error::ConfigError;
use file::FailOn;
pub use hiding::Hiding;
pub use limit::{HeldLimits, Limit};
pub use patterns::Patterns;
use resolve::NamedBy;
pub use schema::json_schema;

use crate::layout::Tool;
use crate::read;
use pgvet_linter::settings::{Levels, Settings};
use pgvet_linter::severity::Severity;
use pgvet_model::migration::TransactionMode;
use pgvet_model::statistics::Statistics;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The name of a configuration file.
pub const FILE_NAME: &str = "pgvet.toml";

/// The name of a file with statistics.
pub const STATISTICS_NAME: &str = "pgvet.stats.json";

/// Where configuration comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ConfigSource {
    /// The nearest `pgvet.toml` in or above the migrations.
    #[default]
    Nearest,
    /// The nearest one in or above this folder, for everything.
    NearestTo(PathBuf),
    /// This file, for everything.
    File(PathBuf),
    /// Defaults only.
    None,
}

/// Resolved configuration of one folder of migrations.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The files that it was read from, the nearest first; none for the defaults.
    pub files: Vec<PathBuf>,
    pub settings: Settings,
    /// Whether the lowest severity to show is configured.
    pub(crate) level_configured: bool,
    pub(crate) fail_on: Option<FailOn>,
    pub baseline: Option<PathBuf>,
    /// The report of `pgvet drift` by which migrations are judged.
    pub against: Option<PathBuf>,
    /// The report of `pgvet precheck` by which findings are judged.
    pub precheck: Option<PathBuf>,
    /// The file with statistics of production.
    pub statistics: Option<PathBuf>,
    pub migrations: MigrationsConfig,
    /// Values of placeholders, by name.
    pub placeholders: BTreeMap<String, String>,
    /// How long `pgvet trace` may see locks held.
    pub max_held: HeldLimits,
    pub capture: CaptureConfig,
    overrides: Vec<Override>,
}

/// How `pgvet capture` runs the migrations.
#[derive(Debug, Clone, Default)]
pub struct CaptureConfig {
    /// The command; empty: none is configured.
    pub command: Vec<String>,
    /// The file that configures the command, in whose folder it runs.
    pub file: Option<PathBuf>,
    /// Further variables of its environment, as templates.
    pub env: BTreeMap<String, String>,
    /// The tool's own table, and the columns that name a migration.
    pub table: Option<(String, Vec<String>)>,
    /// The folder in which the capture is saved.
    pub save: Option<PathBuf>,
}

/// Where migrations are and how they are run, where configuration says so.
#[derive(Debug, Clone, Default)]
pub struct MigrationsConfig {
    pub paths: Vec<PathBuf>,
    pub tool: Option<Tool>,
    pub transaction: Option<TransactionMode>,
    /// The names or paths of the last migrations that are not reported.
    pub start_after: Vec<String>,
    pub schema: Option<PathBuf>,
    include: Vec<Patterns>,
    exclude: Vec<Patterns>,
}

/// Levels for some files.
#[derive(Debug, Clone)]
struct Override {
    patterns: Patterns,
    levels: Levels,
}

impl Config {
    /// The lowest severity that makes the exit status 1, when no option says so.
    pub fn fails(&self) -> Option<Severity> {
        self.fail_on.unwrap_or(FailOn::Error).severity()
    }

    /// The lowest severity that is shown when no option says so. What makes the run fail is shown, too, unless the
    /// configuration asks for less.
    pub fn level(&self, fails: Option<Severity>) -> Severity {
        if self.level_configured {
            return self.settings.level;
        }
        fails.map_or(Severity::Warning, |least| least.min(Severity::Warning))
    }

    /// Reads a file that the user has named, and what it extends.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::read_named_by(NamedBy::User, path)
    }

    fn read_named_by(named_by: NamedBy, path: &Path) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        resolve::read_into(&mut config, path, named_by, &mut Vec::new())?;
        if config.statistics.is_none() {
            let beside = config.root().map(|root| root.join(STATISTICS_NAME));
            config.statistics = beside.filter(|path| path.is_file());
        }
        config.read_statistics()?;
        Ok(config)
    }

    /// Defaults, with the statistics of this file.
    fn without_file(statistics: Option<PathBuf>) -> Result<Self, ConfigError> {
        let mut config = Self { statistics, ..Self::default() };
        config.read_statistics()?;
        Ok(config)
    }

    fn read_statistics(&mut self) -> Result<(), ConfigError> {
        let Some(path) = &self.statistics else { return Ok(()) };
        let text = read::text(path)
            .map_err(|error| ConfigError::new(path, format!("the statistics cannot be read: {error}")))?;
        let statistics = Statistics::parse(&text).map_err(|error| {
            ConfigError::new(path, format!("not a statistics file of pgvet: {error}"))
                .help(Some("write the file again with `pgvet snapshot`".to_owned()))
        })?;
        self.settings.add_statistics(&statistics);
        Ok(())
    }

    /// The folder of the configuration file.
    pub fn root(&self) -> Option<&Path> {
        self.files.first().and_then(|file| file.parent())
    }

    /// The levels of rules that overrides set for this file; `None` if they set none.
    pub fn levels_of(&self, path: &Path) -> Option<Levels> {
        let mut found: Option<Levels> = None;
        for matching in self.overrides.iter().filter(|entry| entry.patterns.matches(path)) {
            let levels = found.get_or_insert_default();
            levels.rules.extend(matching.levels.rules.iter().map(|(rule, level)| (rule.clone(), *level)));
            levels.categories.extend(matching.levels.categories.iter().map(|(name, level)| (*name, *level)));
        }
        found
    }

    /// The paths of overrides that match none of these files.
    pub fn unmatched_overrides(&self, files: &[&Path]) -> Vec<String> {
        let is_matched = |entry: &&Override| files.iter().any(|file| entry.patterns.matches(file));
        let unmatched = self.overrides.iter().filter(|entry| !is_matched(entry));
        unmatched.map(|entry| entry.patterns.texts().join(", ")).collect()
    }

    pub fn is_excluded(&self, path: &Path) -> bool {
        self.migrations.exclude.iter().any(|patterns| patterns.matches(path))
    }

    /// Whether the file is a migration whatever its names and its text say.
    pub(crate) fn is_included(&self, path: &Path) -> bool {
        self.migrations.include.iter().any(|patterns| patterns.matches(path))
    }

    pub(crate) fn has_includes(&self) -> bool {
        !self.migrations.include.is_empty()
    }

    /// The configured folder of migrations that holds the file: the inner one, if one holds the other.
    pub fn folder_of(&self, path: &Path) -> Option<&Path> {
        if self.migrations.paths.is_empty() {
            return None;
        }
        let path = absolute(path);
        let around = self.migrations.paths.iter().map(PathBuf::as_path).filter(|folder| path.starts_with(folder));
        around.max_by_key(|folder| folder.components().count())
    }
}

/// A path that does not depend on the current folder, without `.` and `..`.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    // The folder of `a.sql` is the empty path.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if !path.components().any(|part| part == std::path::Component::ParentDir) {
        return path;
    }
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}

/// Finds configuration, reading each file once.
#[derive(Debug, Default)]
pub struct Configs {
    source: ConfigSource,
    nearest: Mutex<FxHashMap<PathBuf, Nearest>>,
    /// By the file with the configuration, or else the one with statistics.
    read: Mutex<FxHashMap<Option<PathBuf>, Arc<Config>>>,
}

/// The files that hold for a folder: the nearest in or above it.
#[derive(Debug, Clone, Default)]
struct Nearest {
    config: Option<PathBuf>,
    statistics: Option<PathBuf>,
}

impl Configs {
    pub fn new(source: ConfigSource) -> Self {
        Self { source, nearest: Mutex::default(), read: Mutex::default() }
    }

    /// The configuration for a folder.
    pub fn of(&self, folder: &Path) -> Result<Arc<Config>, ConfigError> {
        match &self.source {
            ConfigSource::None => Ok(Arc::default()),
            ConfigSource::File(path) => self.read(Nearest { config: Some(path.clone()), statistics: None }),
            ConfigSource::Nearest => self.read(self.nearest(&absolute(folder))),
            ConfigSource::NearestTo(folder) => self.read(self.nearest(&absolute(folder))),
        }
    }

    fn named_by(&self) -> NamedBy {
        if matches!(self.source, ConfigSource::File(_)) { NamedBy::User } else { NamedBy::Checkout }
    }

    /// Each folder is examined once, whatever lies below it.
    fn nearest(&self, folder: &Path) -> Nearest {
        // A thread that panicked while holding a lock left a map of complete entries.
        let known = || self.nearest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(nearest) = known().get(folder) {
            return nearest.clone();
        }
        let own = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
        let mut nearest = folder.parent().map_or_else(Nearest::default, |above| self.nearest(above));
        nearest.config = own(FILE_NAME).or(nearest.config);
        nearest.statistics = own(STATISTICS_NAME).or(nearest.statistics);
        known().insert(folder.to_owned(), nearest.clone());
        nearest
    }

    fn read(&self, Nearest { config, statistics }: Nearest) -> Result<Arc<Config>, ConfigError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let key = config.clone().or_else(|| statistics.clone());
        if let Some(config) = read.get(&key) {
            return Ok(config.clone());
        }
        let found = match config {
            Some(path) => Config::read_named_by(self.named_by(), &path)?,
            None => Config::without_file(statistics)?,
        };
        let found = Arc::new(found);
        read.insert(key, Arc::clone(&found));
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
