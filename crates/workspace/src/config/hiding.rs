//! What configuration hides, for the summary of a report: a checkout can bring a configuration of its own.

use super::Config;
use pgvet_linter::rules;
use pgvet_linter::settings::Settings;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Settings of configuration that hide files or findings, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hiding {
    /// Migrations that are not reported because of `start-after`.
    pub before_start: usize,
    /// Whether only the folders that `paths` names were searched.
    pub only_paths: bool,
    /// Rules that run by default, or in the configured preset, and are turned off.
    pub rules_off: usize,
    /// Tables whose findings are not reported.
    pub ignored_tables: usize,
    /// Sections that change levels of rules for some files.
    pub overrides: usize,
    /// Values that replace placeholders.
    pub placeholders: usize,
}

impl Hiding {
    /// Counts each setting of the configurations once, whichever of them share it.
    pub(crate) fn count<'c>(configs: impl Iterator<Item = &'c Config>) -> Self {
        let mut files: BTreeSet<&[PathBuf]> = BTreeSet::new();
        let (mut rules_off, mut tables, mut placeholders) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut hiding = Self::default();
        for config in configs {
            if !files.insert(&config.files) {
                continue;
            }
            let settings = &config.settings;
            let preset = Settings { strict: settings.strict, ..Settings::default() };
            let is_off = |rule: &&&'static pgvet_linter::rule::Rule| {
                preset.severity_of(&rule.meta).is_some() && settings.severity_of(&rule.meta).is_none()
            };
            rules_off.extend(rules::all().iter().filter(is_off).map(|rule| rule.meta.name));
            tables.extend(settings.tables.iter().filter(|(_, table)| table.ignore).map(|(name, _)| name));
            placeholders.extend(config.placeholders.keys());
            hiding.overrides += config.overrides.len();
        }
        Self { rules_off: rules_off.len(), ignored_tables: tables.len(), placeholders: placeholders.len(), ..hiding }
    }
}
