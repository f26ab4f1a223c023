//! What a run is asked to do, after configuration and flags are resolved. No files, no serde: see the workspace crate.

use crate::confidence::Confidence;
use crate::diagnostic::{REFUSALS, Severity};
use crate::fix::Edit;
use crate::rule::{Category, RuleMeta};
use crate::statistics::Throughput;
use crate::version::{DEFAULT_RANGE, VersionRange};
use rustc_hash::FxHashMap;

/// Resolved settings of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    pub versions: VersionRange,
    /// Was `versions` configured? If not, what only an older version refuses is not reported.
    pub versions_configured: bool,
    /// Also run the opt-in rules.
    pub strict: bool,
    /// The least severity that is kept.
    pub level: Severity,
    /// The least confidence that is kept.
    pub confidence: Confidence,
    /// If not empty, only these rules run.
    pub only: Vec<String>,
    /// These rules do not run.
    pub ignore: Vec<String>,
    /// What is configured about the severity of rules.
    pub levels: Levels,
    /// The same for single migrations, by their index in the run; goes before `levels`.
    pub file_levels: FxHashMap<u32, Levels>,
    /// What takes single migrations, by their index in the run, out of the transaction that the tool opens.
    pub opt_outs: FxHashMap<u32, Edit>,
    /// Must a suppression say why?
    pub require_reasons: bool,
    /// Are migrations that lead back judged as well? Each is run on what the migrations before it have made, and
    /// leaves nothing behind.
    pub lint_down: bool,
    /// What is known about tables, by `schema.name`, or `name` for any schema.
    pub tables: FxHashMap<String, TableSettings>,
    /// What is known about functions, by `schema.name`, or `name` for any schema.
    pub functions: FxHashMap<String, FunctionSettings>,
    /// How fast the server works, for estimates of time.
    pub throughput: Throughput,
    pub lock_timeout: LockTimeout,
    /// Above how many tables under `AccessExclusive` in one transaction `many-tables-locked` reports.
    pub max_locked_tables: usize,
}

/// Severities that configuration gives to rules; `None` switches a rule off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Levels {
    /// By the name of the rule. A rule that is not part of the preset runs, too.
    pub rules: FxHashMap<String, Option<Severity>>,
    /// For the rules of a category that the preset runs.
    pub categories: FxHashMap<Category, Option<Severity>>,
}

/// What configuration and statistics say about one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableSettings {
    /// Estimated rows.
    pub rows: Option<u64>,
    /// Without indexes; from statistics.
    pub bytes: Option<u64>,
    /// Of all its indexes; from statistics.
    pub index_bytes: Option<u64>,
    /// From statistics.
    pub writes_per_second: Option<u64>,
    /// Used all the time.
    pub hot: bool,
    /// Nothing about it is reported, unless another relation is concerned as well.
    pub ignore: bool,
}

/// What configuration says about one function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FunctionSettings {
    /// How often it is called in an hour of normal use.
    pub calls_per_hour: Option<u64>,
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

/// How large configuration says that a table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableSize {
    Small,
    Unknown,
    Large,
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

impl TableSettings {
    /// Work on so many rows takes no time that anybody notices.
    pub const SMALL: u64 = 10_000;
    /// Work on so many rows takes minutes.
    const LARGE: u64 = 10_000_000;
    /// The same for its bytes, where rows are wide.
    const LARGE_BYTES: u64 = 10_000_000_000;
    /// With so many writes in a second, a queue behind a lock grows faster than it goes away.
    const BUSY: u64 = 100;

    pub fn size(self) -> TableSize {
        let busy = self.hot || self.writes_per_second.is_some_and(|writes| writes >= Self::BUSY);
        let has_many_bytes = self.bytes.is_some_and(|bytes| bytes >= Self::LARGE_BYTES);
        match self.rows {
            _ if busy || has_many_bytes => TableSize::Large,
            Some(rows) if rows >= Self::LARGE => TableSize::Large,
            Some(rows) if rows <= Self::SMALL => TableSize::Small,
            _ => TableSize::Unknown,
        }
    }
}

impl Settings {
    /// Does the rule run for any migration, and at which severity? `None`: it does not.
    pub fn severity_of(&self, rule: &RuleMeta) -> Option<Severity> {
        self.severity_with(None, rule)
    }

    /// Does the rule run for the migration with this index, and at which severity?
    pub fn severity_in(&self, file: u32, rule: &RuleMeta) -> Option<Severity> {
        self.severity_with(self.file_levels.get(&file), rule)
    }

    /// Is the severity of the rule configured, so that a finding cannot choose its own?
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

    /// The same, with the rules that say that PostgreSQL refuses a statement.
    #[must_use]
    pub fn with_refusals(mut self) -> Self {
        self.ignore.retain(|rule| REFUSALS.iter().all(|refusal| refusal.meta.name != rule.as_str()));
        for rule in REFUSALS {
            if !self.only.is_empty() {
                self.only.push(rule.meta.name.to_owned());
            }
            self.levels.rules.insert(rule.meta.name.to_owned(), Some(Severity::Error));
        }
        self
    }

    /// What is configured for the relation `schema.name`.
    pub fn table(&self, schema: &str, name: &str) -> TableSettings {
        lookup(&self.tables, schema, name)
    }

    /// How often configuration says that the function `schema.name` is called in an hour; `None` where it does not.
    pub fn calls_per_hour(&self, schema: &str, name: &str) -> Option<u64> {
        lookup(&self.functions, schema, name).calls_per_hour
    }
}

/// The entry of the qualified name, or else that of the name alone.
fn lookup<T: Copy + Default>(entries: &FxHashMap<String, T>, schema: &str, name: &str) -> T {
    if entries.is_empty() {
        return T::default();
    }
    let qualified = entries.get(format!("{schema}.{name}").as_str());
    qualified.or_else(|| entries.get(name)).copied().unwrap_or_default()
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
            require_reasons: false,
            lint_down: false,
            tables: FxHashMap::default(),
            functions: FxHashMap::default(),
            throughput: Throughput::default(),
            lock_timeout: LockTimeout::default(),
            max_locked_tables: 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Rule;
    use crate::rules::compatibility::drop_column;

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
    fn a_qualified_function_goes_before_the_name_alone() {
        let calls = |calls_per_hour| FunctionSettings { calls_per_hour: Some(calls_per_hour) };
        let functions = [("f".to_owned(), calls(5)), ("app.f".to_owned(), calls(40_000))].into_iter().collect();
        let settings = Settings { functions, ..Settings::default() };
        assert_eq!(settings.calls_per_hour("app", "f"), Some(40_000));
        assert_eq!(settings.calls_per_hour("public", "f"), Some(5));
        assert_eq!(settings.calls_per_hour("public", "g"), None);
    }

    #[test]
    fn refusals_are_said_whatever_was_asked_for() {
        let off = |rule: &Rule| (rule.meta.name.to_owned(), None);
        let asked = Settings {
            only: vec!["drop-table".to_owned()],
            ignore: vec!["syntax-error".to_owned()],
            levels: Levels { rules: REFUSALS.map(off).into_iter().collect(), ..Levels::default() },
            ..Settings::default()
        };
        let severity = |settings: &Settings, rule: &Rule| settings.severity_of(&rule.meta);
        for rule in REFUSALS {
            assert_eq!(severity(&asked, rule), None, "{}", rule.meta.name);
            assert_eq!(severity(&asked.clone().with_refusals(), rule), Some(Severity::Error), "{}", rule.meta.name);
        }
        assert_eq!(severity(&asked.with_refusals(), &drop_column::RULE), None);
    }
}
