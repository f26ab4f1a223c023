//! From the text of a configuration file to settings.

use super::duration::parse_duration;
use super::error::{ConfigError, did_you_mean};
use super::file::{
    CaptureSetting, ConfigFile, LockModeSetting, MaxHeldSetting, MigrationsSetting, OverrideSetting, Preset, RuleLevel,
    RuleOptions, RuleSetting,
};
use super::limit::Limit;
use super::{CaptureConfig, Config, Override, Patterns, absolute};
use crate::boundary::Boundary;
use crate::read;
use pgvet_linter::meta::Category;
use pgvet_linter::rules;
use pgvet_linter::rules::transaction::many_tables_locked;
use pgvet_linter::settings::Levels;
use pgvet_model::production::{FunctionSettings, TableSettings};
use pgvet_model::version::VersionRange;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Most files that extend each other.
const MAX_CHAIN: usize = 16;

/// Most placeholders of one file, and most bytes of a name: each name is searched for in every migration.
const MAX_PLACEHOLDERS: usize = 1000;
const MAX_NAME: usize = 256;

/// Who says that a configuration file is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedBy {
    /// The user, on the command line.
    User,
    /// Nobody: it lies in or above the migrations, and may name only files of its repository or folder.
    Checkout,
}

/// Reads `path` into `config`, after what it extends. `chain` are the files that extend it.
pub(super) fn read_into(
    config: &mut Config,
    path: &Path,
    named_by: NamedBy,
    chain: &mut Vec<PathBuf>,
) -> Result<(), ConfigError> {
    let full = absolute(path);
    let root = full.parent().unwrap_or(Path::new(""));
    let boundary = match named_by {
        NamedBy::User => Boundary::around(&full),
        NamedBy::Checkout => Boundary::of_folder(root),
    };
    if named_by == NamedBy::Checkout
        && let Some(why) = boundary.refusal(&full)
    {
        return Err(ConfigError::new(path, why));
    }
    let text = read::text(path).map_err(|error| {
        let message = match error.kind() {
            std::io::ErrorKind::NotFound => "does not exist".to_owned(),
            std::io::ErrorKind::InvalidData => "is not UTF-8".to_owned(),
            _ => format!("cannot be read: {error}"),
        };
        ConfigError::new(path, message)
    })?;
    let file: ConfigFile = toml::from_str(&text).map_err(|error| ConfigError::from_toml(path, &text, &error))?;
    let path = full.clone();
    let layer = Layer { path: &path, text: &text, root, boundary };
    if let Some(base) = &file.extend {
        let base_path = absolute(&layer.root.join(base.get_ref()));
        chain.push(path.clone());
        if chain.len() > MAX_CHAIN {
            return Err(layer.error(base.span(), format!("more than {MAX_CHAIN} files extend each other")));
        }
        if chain.contains(&base_path) {
            return Err(layer.error(base.span(), "this file extends itself"));
        }
        layer.inside(base)?;
        if base_path.extension() != path.extension() {
            return Err(layer.error(base.span(), "this is not a configuration file"));
        }
        if !base_path.is_file() {
            return Err(layer.error(base.span(), format!("there is no file `{}`", base.get_ref())));
        }
        read_into(config, &base_path, named_by, chain)?;
    }
    layer.apply(file, config)?;
    config.files.insert(0, path);
    Ok(())
}

/// One file of a chain of configuration files.
struct Layer<'a> {
    path: &'a Path,
    text: &'a str,
    root: &'a Path,
    boundary: Boundary,
}

impl Layer<'_> {
    fn error(&self, span: Range<usize>, message: impl Into<String>) -> ConfigError {
        ConfigError::at(self.path, self.text, span, message)
    }

    fn apply(&self, file: ConfigFile, config: &mut Config) -> Result<(), ConfigError> {
        let settings = &mut config.settings;
        if let Some(version) = &file.pg_version {
            settings.versions = self.versions(version)?;
            settings.versions_configured = true;
        }
        if let Some(preset) = file.preset {
            settings.strict = preset == Preset::Strict;
        }
        if let Some(level) = file.level {
            settings.level = level;
            config.level_configured = true;
        }
        if let Some(confidence) = file.confidence {
            settings.confidence = confidence;
        }
        if let Some(lock_timeout) = file.lock_timeout {
            settings.lock_timeout = lock_timeout.into();
        }
        if let Some(require) = file.require_reasons {
            settings.require_reasons = require;
        }
        for (name, setting) in &file.rules {
            let name_of_rule = self.rule(name)?;
            if let Some(level) = self.rule_setting(name_of_rule, setting, &mut settings.max_locked_tables)? {
                settings.levels.rules.insert(name_of_rule.to_owned(), level.severity());
            }
        }
        settings.levels.categories.extend(categories(&file.categories));
        for limit in self.limits(&file.trace.max_held)? {
            config.max_held.set(limit);
        }
        for (name, table) in file.tables {
            for limit in self.limits(&table.max_held)? {
                config.max_held.set_for(&name, limit);
            }
            let table =
                TableSettings { rows: table.rows, hot: table.hot, ignore: table.ignore, ..TableSettings::default() };
            settings.tables.insert(name, table);
        }
        for (name, function) in file.functions {
            settings.functions.insert(name, FunctionSettings { calls_per_hour: function.calls_per_hour });
        }
        if let Some(deployed) = file.releases.deployed {
            settings.releases.deployed = Vec::from(deployed).into_iter().map(Into::into).collect();
        }
        config.fail_on = file.fail_on.or(config.fail_on);
        config.baseline = self.file(file.baseline, "json")?.or(config.baseline.take());
        config.against = self.file(file.against, "json")?.or(config.against.take());
        config.precheck = self.file(file.precheck, "json")?.or(config.precheck.take());
        config.statistics = self.file(file.statistics, "json")?.or(config.statistics.take());
        if file.placeholders.len() > MAX_PLACEHOLDERS {
            return Err(ConfigError::new(self.path, format!("has more than {MAX_PLACEHOLDERS} placeholders")));
        }
        if file.placeholders.keys().any(|name| name.len() > MAX_NAME) {
            return Err(ConfigError::new(self.path, format!("has a placeholder of more than {MAX_NAME} bytes")));
        }
        config.placeholders.extend(file.placeholders);
        for entry in &file.overrides {
            config.overrides.push(self.override_entry(entry)?);
        }
        self.capture(file.capture, &mut config.capture)?;
        self.migrations(file.migrations, config)
    }

    fn migrations(&self, setting: MigrationsSetting, config: &mut Config) -> Result<(), ConfigError> {
        let migrations = &mut config.migrations;
        if !setting.paths.is_empty() {
            let paths = setting.paths.iter().map(|path| self.inside(path).map(|path| absolute(&path)));
            migrations.paths = paths.collect::<Result<_, _>>()?;
        }
        if !setting.include.is_empty() {
            migrations.include.push(self.patterns(&setting.include)?);
        }
        if !setting.exclude.is_empty() {
            migrations.exclude.push(self.patterns(&setting.exclude)?);
        }
        migrations.tool = setting.tool.or(migrations.tool);
        migrations.transaction = setting.transaction.map(Into::into).or(migrations.transaction);
        if let Some(start_after) = setting.start_after {
            migrations.start_after = start_after.into();
        }
        migrations.schema = self.file(setting.schema, "sql")?.or(migrations.schema.take());
        Ok(())
    }

    fn capture(&self, setting: CaptureSetting, capture: &mut CaptureConfig) -> Result<(), ConfigError> {
        if let Some(command) = setting.command {
            if command.get_ref().first().is_none_or(String::is_empty) {
                let help = "write each word of the command: [\"python\", \"manage.py\", \"migrate\"]".to_owned();
                return Err(self.error(command.span(), "this command has no program").help(Some(help)));
            }
            capture.command = command.into_inner();
            capture.file = Some(self.path.to_owned());
        }
        capture.env.extend(setting.env);
        match (setting.table, setting.column) {
            (None, None) => {}
            (Some(table), Some(column)) => capture.table = Some((table.into_inner(), column.into())),
            (table, _) => {
                let message = "`[capture]` needs both `table` and `column`, or neither";
                return Err(match table {
                    Some(table) => self.error(table.span(), message),
                    None => ConfigError::new(self.path, message),
                });
            }
        }
        if let Some(save) = &setting.save {
            capture.save = Some(self.inside(save)?);
        }
        Ok(())
    }

    /// The path that the file names, which must lie in the checkout.
    fn inside(&self, path: &Spanned<impl AsRef<Path>>) -> Result<PathBuf, ConfigError> {
        let named = self.root.join(path.get_ref());
        match self.boundary.refusal(&named) {
            Some(why) => Err(self.error(path.span(), format!("this {why}"))),
            None => Ok(named),
        }
    }

    /// The same, for a file whose kind its name must say: nothing else is read for it, or overwritten with it.
    fn file(&self, path: Option<Spanned<String>>, extension: &str) -> Result<Option<PathBuf>, ConfigError> {
        let Some(path) = path else { return Ok(None) };
        if !Path::new(path.get_ref()).extension().is_some_and(|actual| actual.eq_ignore_ascii_case(extension)) {
            return Err(self.error(path.span(), format!("this is not a `.{extension}` file")));
        }
        self.inside(&path).map(Some)
    }

    fn versions(&self, value: &Spanned<toml::Value>) -> Result<VersionRange, ConfigError> {
        let text = match value.get_ref() {
            toml::Value::Integer(major) => major.to_string(),
            toml::Value::String(text) => text.clone(),
            _ => {
                let help = "write 16, or \"14-18\" for a range".to_owned();
                return Err(self.error(value.span(), "this is not a PostgreSQL version").help(Some(help)));
            }
        };
        VersionRange::parse(&text).map_err(|message| self.error(value.span(), message))
    }

    fn limits(&self, setting: &MaxHeldSetting) -> Result<Vec<Limit>, ConfigError> {
        let limit = |(mode, held): (&LockModeSetting, &Spanned<String>)| {
            let duration = parse_duration(held.get_ref()).map_err(|message| self.error(held.span(), message))?;
            Ok(Limit { mode: (*mode).into(), held: duration })
        };
        setting.iter().map(limit).collect()
    }

    /// The name of a rule that there is.
    fn rule<'n>(&self, name: &'n Spanned<String>) -> Result<&'n str, ConfigError> {
        let text = name.get_ref();
        if rules::find(text).is_some() {
            return Ok(text);
        }
        let is_category = category_names().any(|category| category == text);
        let help = if is_category {
            "this is a category: its level belongs under `[categories]`".to_owned()
        } else {
            let known = rules::all().iter().map(|rule| rule.meta.name);
            did_you_mean(text, known).unwrap_or_else(|| "`pgvet rules` lists all rules".to_owned())
        };
        Err(self.error(name.span(), format!("there is no rule `{text}`")).help(Some(help)))
    }

    fn rule_setting(
        &self,
        name: &str,
        setting: &Spanned<RuleSetting>,
        max_locked_tables: &mut usize,
    ) -> Result<Option<RuleLevel>, ConfigError> {
        match setting.get_ref() {
            RuleSetting::Level(level) => Ok(Some(*level)),
            RuleSetting::Options(RuleOptions { level, max_tables }) => {
                if let Some(number) = max_tables {
                    if name != many_tables_locked::RULE.meta.name {
                        let message = format!("`{name}` has no option `max-tables`");
                        return Err(self.error(setting.span(), message));
                    }
                    *max_locked_tables = *number;
                }
                Ok(*level)
            }
        }
    }

    fn override_entry(&self, entry: &OverrideSetting) -> Result<Override, ConfigError> {
        let mut levels = Levels::default();
        for (name, level) in &entry.rules {
            levels.rules.insert(self.rule(name)?.to_owned(), level.severity());
        }
        levels.categories.extend(categories(&entry.categories));
        Ok(Override { patterns: self.patterns(&entry.paths)?, levels })
    }

    fn patterns(&self, patterns: &[Spanned<String>]) -> Result<Patterns, ConfigError> {
        Patterns::new(self.root, patterns.iter().map(|pattern| pattern.get_ref().as_str())).map_err(|wrong| match wrong
            .at
            .and_then(|at| patterns.get(at))
        {
            Some(pattern) => self.error(pattern.span(), wrong.message),
            None => ConfigError::new(self.path, wrong.message),
        })
    }
}

fn categories(
    levels: &BTreeMap<Spanned<Category>, RuleLevel>,
) -> impl Iterator<Item = (Category, Option<pgvet_linter::severity::Severity>)> {
    levels.iter().map(|(category, level)| (*category.get_ref(), level.severity()))
}

fn category_names() -> impl Iterator<Item = &'static str> {
    rules::all().iter().map(|rule| rule.meta.category.as_str())
}
