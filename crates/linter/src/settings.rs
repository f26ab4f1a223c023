//! What a run is asked to do, after configuration and flags are resolved. No files, no serde: see the workspace crate.

use crate::diagnostic::Severity;
use crate::rule::RuleMeta;
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
    /// If not empty, only these rules run.
    pub only: Vec<String>,
    /// These rules do not run.
    pub ignore: Vec<String>,
    /// Severity by rule name, or `None` for off.
    pub rule_levels: FxHashMap<String, Option<Severity>>,
    /// What is known about tables, by `schema.name`, or `name` for any schema.
    pub tables: FxHashMap<String, TableSettings>,
    /// What is known about functions, by `schema.name`, or `name` for any schema.
    pub functions: FxHashMap<String, FunctionSettings>,
    pub lock_timeout: LockTimeout,
    /// Above how many tables under `AccessExclusive` in one transaction `many-tables-locked` reports.
    pub max_locked_tables: usize,
}

/// What configuration says about one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableSettings {
    /// Estimated rows.
    pub rows: Option<u64>,
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

impl TableSettings {
    /// Work on so many rows takes no time that anybody notices.
    const SMALL: u64 = 10_000;
    /// Work on so many rows takes minutes.
    const LARGE: u64 = 10_000_000;

    pub fn size(self) -> TableSize {
        match self.rows {
            Some(rows) if rows <= Self::SMALL && !self.hot => TableSize::Small,
            Some(rows) if rows >= Self::LARGE => TableSize::Large,
            _ if self.hot => TableSize::Large,
            _ => TableSize::Unknown,
        }
    }
}

impl Settings {
    /// Does the rule run, and at which severity? `None`: it does not.
    pub fn severity_of(&self, rule: &RuleMeta) -> Option<Severity> {
        if self.ignore.iter().any(|name| name == rule.name) {
            return None;
        }
        if !self.only.is_empty() {
            return self.only.iter().any(|name| name == rule.name).then_some(rule.severity);
        }
        match self.rule_levels.get(rule.name) {
            Some(level) => *level,
            None => (rule.recommended || self.strict).then_some(rule.severity),
        }
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
            only: Vec::new(),
            ignore: Vec::new(),
            rule_levels: FxHashMap::default(),
            tables: FxHashMap::default(),
            functions: FxHashMap::default(),
            lock_timeout: LockTimeout::default(),
            max_locked_tables: 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qualified_function_goes_before_the_name_alone() {
        let calls = |calls_per_hour| FunctionSettings { calls_per_hour: Some(calls_per_hour) };
        let functions = [("f".to_owned(), calls(5)), ("app.f".to_owned(), calls(40_000))].into_iter().collect();
        let settings = Settings { functions, ..Settings::default() };
        assert_eq!(settings.calls_per_hour("app", "f"), Some(40_000));
        assert_eq!(settings.calls_per_hour("public", "f"), Some(5));
        assert_eq!(settings.calls_per_hour("public", "g"), None);
    }
}
