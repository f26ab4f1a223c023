//! The settings of a run, after configuration and flags are resolved. No files, no serde: see the workspace crate.

use crate::confidence::Confidence;
use crate::fix::Edit;
use crate::meta::{Category, RuleMeta};
use crate::phase::Releases;
use crate::repository::RepositoryEvidence;
use crate::row_counts::RowCounts;
use crate::severity::Severity;
use pgvet_model::application::Application;
use pgvet_model::production::{ByName, FunctionSettings, Functions, IndexUse, TableSettings, lookup};
use pgvet_model::statistics::Statistics;
use pgvet_model::throughput::Throughput;
use pgvet_model::version::{DEFAULT_RANGE, VersionRange};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::sync::Arc;

/// Resolved settings of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    pub versions: VersionRange,
    /// Whether `versions` is configured. If not, what only an older version refuses is not reported.
    pub versions_configured: bool,
    /// Also run the opt-in rules.
    pub strict: bool,
    /// The lowest severity that is kept.
    pub level: Severity,
    /// The lowest confidence that is kept.
    pub confidence: Confidence,
    /// If not empty, only these rules run.
    pub only: Vec<String>,
    /// These rules do not run.
    pub ignore: Vec<String>,
    /// Configured severities of rules.
    pub levels: Levels,
    /// The same for single migrations, by their index in the run; goes before `levels`.
    pub file_levels: FxHashMap<u32, Levels>,
    /// Edits that take single migrations, by their index in the run, out of the transaction that the tool opens.
    pub opt_outs: FxHashMap<u32, Edit>,
    /// What the repository shows about single migrations, by their index in the run.
    pub repository: FxHashMap<u32, RepositoryEvidence>,
    /// Whether a suppression must give a reason.
    pub require_reasons: bool,
    /// Whether rollback migrations are judged as well. Each is run on the state after the migrations before it, and
    /// leaves nothing behind.
    pub lint_down: bool,
    /// Settings of tables, by `schema.name`, or `name` for any schema.
    pub tables: ByName<TableSettings>,
    /// Settings of functions, by `schema.name`, or `name` for any schema.
    pub functions: Functions,
    /// Indexes that production has used, by `schema.name`.
    pub used_indexes: ByName<IndexUse>,
    /// What a database has answered about rows that make statements of single migrations fail, by their index in the run.
    pub row_counts: FxHashMap<u32, RowCounts>,
    /// How fast the server works, for estimates of time.
    pub throughput: Throughput,
    pub lock_timeout: LockTimeout,
    /// Above how many tables under `AccessExclusive` in one transaction `many-tables-locked` reports.
    pub max_locked_tables: usize,
    /// What deployed code is known to run.
    pub application: Arc<Application>,
    /// The releases whose code runs.
    pub releases: Releases,
}

/// Severities that configuration gives to rules; `None` switches a rule off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Levels {
    /// By the name of the rule. A rule that is not part of the preset runs, too.
    pub rules: FxHashMap<String, Option<Severity>>,
    /// For the rules of a category that the preset runs.
    pub categories: FxHashMap<Category, Option<Severity>>,
}

/// Who sets `lock_timeout`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LockTimeout {
    /// The migrations themselves.
    #[default]
    Migration,
    /// The program that runs them, or the role or database.
    Runner,
}

impl Levels {
    /// The level of a rule that would have the level `otherwise`.
    fn apply(&self, rule: &RuleMeta, otherwise: Option<Severity>) -> Option<Severity> {
        if let Some(level) = self.rules.get(rule.name) {
            return *level;
        }
        let category = self.categories.get(&rule.category).filter(|_| otherwise.is_some());
        category.copied().unwrap_or(otherwise)
    }

    fn name(&self, rule: &RuleMeta) -> bool {
        self.rules.contains_key(rule.name) || self.categories.contains_key(&rule.category)
    }
}

impl Settings {
    /// The severity at which the rule runs for any migration, or `None` if it does not run.
    pub fn severity_of(&self, rule: &RuleMeta) -> Option<Severity> {
        self.severity_with(None, rule)
    }

    /// The severity at which the rule runs for the migration with this index, or `None` if it does not run.
    pub fn severity_in(&self, file: u32, rule: &RuleMeta) -> Option<Severity> {
        self.severity_with(self.file_levels.get(&file), rule)
    }

    /// The script that runs a migration and others in a different order from the tool.
    pub(crate) fn script_of_other_order(&self, file: u32) -> Option<SmolStr> {
        self.repository.get(&file)?.psql.as_ref()?.order.clone()
    }

    /// Whether the severity of the rule is configured, so that a finding cannot choose its own.
    pub(crate) fn is_configured(&self, file: u32, rule: &RuleMeta) -> bool {
        self.levels.name(rule) || self.file_levels.get(&file).is_some_and(|levels| levels.name(rule))
    }

    fn severity_with(&self, own: Option<&Levels>, rule: &RuleMeta) -> Option<Severity> {
        if self.ignore.iter().any(|name| name == rule.name) {
            return None;
        }
        if !self.only.is_empty() {
            return self.only.iter().any(|name| name == rule.name).then_some(rule.severity);
        }
        let preset = (rule.recommended || self.strict).then_some(rule.severity);
        let general = self.levels.apply(rule, preset);
        own.map_or(general, |own| own.apply(rule, general))
    }

    /// Adds what statistics say; what is configured about a table goes before.
    pub fn add_statistics(&mut self, statistics: &Statistics) {
        for (name, table) in &statistics.tables {
            let unqualified = name.split_once('.').map_or(name.as_str(), |(_, name)| name);
            let known = self.tables.get(name).or_else(|| self.tables.get(unqualified)).copied();
            let known = known.unwrap_or_default();
            let combined = TableSettings {
                rows: known.rows.or(table.rows),
                bytes: table.bytes,
                index_bytes: table.bytes.map(|_| table.indexes.values().sum()),
                writes_per_second: table.writes_per_second,
                ..known
            };
            self.tables.insert(name.clone(), combined);
            let schema = name.split_once('.').map_or("public", |(schema, _)| schema);
            for (index, scans) in table.index_scans.iter().filter(|(_, scans)| **scans > 0) {
                let used = IndexUse { scans: *scans, seconds: statistics.counted_seconds };
                self.used_indexes.insert(format!("{schema}.{index}"), used);
            }
        }
        for (name, function) in &statistics.functions {
            let calls = FunctionSettings { calls_per_hour: Some(function.calls_per_hour) };
            self.functions.entry(name.clone()).or_insert(calls);
        }
        self.throughput = statistics.throughput.unwrap_or_default();
    }

    /// How often production has used an index; `None` where nothing shows that it has.
    pub fn index_use(&self, schema: &str, index: &str) -> Option<IndexUse> {
        self.used_indexes.get(&format!("{schema}.{index}")).copied()
    }

    /// The settings of the relation `schema.name`.
    pub fn table(&self, schema: &str, name: &str) -> TableSettings {
        lookup(&self.tables, schema, name)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            versions: DEFAULT_RANGE,
            versions_configured: false,
            strict: false,
            level: Severity::Warning,
            confidence: Confidence::Likely,
            only: Vec::new(),
            ignore: Vec::new(),
            levels: Levels::default(),
            file_levels: FxHashMap::default(),
            opt_outs: FxHashMap::default(),
            repository: FxHashMap::default(),
            require_reasons: false,
            lint_down: false,
            tables: FxHashMap::default(),
            functions: FxHashMap::default(),
            used_indexes: FxHashMap::default(),
            row_counts: FxHashMap::default(),
            throughput: Throughput::default(),
            lock_timeout: LockTimeout::default(),
            max_locked_tables: 3,
            application: Arc::default(),
            releases: Releases::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_model::statistics::{SCHEMA_VERSION, TableStatistics};

    #[test]
    fn the_nearest_level_wins_and_a_category_switches_nothing_on() {
        let mut rule = crate::rule::NO_HOOKS.meta;
        rule.name = "a-rule";
        let rules = |level| [("a-rule".to_owned(), level)].into_iter().collect();
        let categories = |level| [(Category::Engine, level)].into_iter().collect();
        let named = |level| Levels { rules: rules(level), ..Levels::default() };
        let of_category = |level| Levels { categories: categories(level), ..Levels::default() };
        let severity = |recommended, levels: Levels, own: Levels| {
            let rule = RuleMeta { recommended, ..rule };
            let file_levels = [(0, own)].into_iter().collect();
            Settings { levels, file_levels, ..Settings::default() }.severity_in(0, &rule)
        };
        let (none, info, warning) = (Levels::default(), Some(Severity::Info), Some(Severity::Warning));
        assert_eq!(severity(true, named(warning), none.clone()), warning);
        assert_eq!(severity(true, named(warning), of_category(info)), info);
        assert_eq!(severity(true, of_category(warning), named(None)), None);
        assert_eq!(severity(false, of_category(warning), none.clone()), None);
        assert_eq!(severity(false, named(warning), none), warning);
    }

    #[test]
    fn configuration_goes_before_statistics() {
        let mut settings = Settings::default();
        let small = TableSettings { rows: Some(100), ignore: true, ..TableSettings::default() };
        settings.tables.insert("orders".to_owned(), small);
        let tables = [(
            "public.orders".to_owned(),
            TableStatistics { rows: Some(5), bytes: Some(8), ..TableStatistics::default() },
        )];
        let statistics = Statistics { schema_version: SCHEMA_VERSION, tables: tables.into(), ..Statistics::default() };
        settings.add_statistics(&statistics);
        let found = settings.table("public", "orders");
        assert_eq!((found.rows, found.bytes, found.ignore), (Some(100), Some(8), true));
    }
}
