//! The format of `pgvet.toml`. What is written here is also what the JSON schema says.

use crate::layout::Tool;
use pgvet_linter::confidence::Confidence;
use pgvet_linter::meta::Category;
use pgvet_linter::settings::LockTimeout;
use pgvet_linter::severity::Severity;
use pgvet_model::migration::TransactionMode;
use pgvet_syntax::ast::LockMode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::StrDeserializer;
use std::collections::BTreeMap;
use toml::Spanned;

/// Configuration of pgvet. The nearest `pgvet.toml` in or above a folder of migrations applies to it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(title = "pgvet.toml", extend("x-taplo-info" = { "authors": ["pgvet"] }))]
pub(crate) struct ConfigFile {
    /// Another configuration file, relative to this one. Its settings apply unless this file sets them, too.
    #[schemars(with = "Option<String>")]
    pub(crate) extend: Option<Spanned<String>>,
    /// The PostgreSQL major version that runs the migrations, or a range of them: `16`, `"14-18"`.
    #[schemars(with = "Option<VersionSchema>")]
    pub(crate) pg_version: Option<Spanned<toml::Value>>,
    /// Which rules run: those that nearly everybody wants (`recommended`, the default), or also the opt-in rules
    /// (`strict`).
    pub(crate) preset: Option<Preset>,
    /// Lowest severity of a finding at which the exit status is 1. The default is `error`.
    pub(crate) fail_on: Option<FailOn>,
    /// Lowest severity that is shown. The default is `warning`.
    #[schemars(with = "Option<SeveritySchema>")]
    pub(crate) level: Option<Severity>,
    /// Lowest confidence that is shown: `certain`, `likely` (the default) or `possible`.
    #[schemars(with = "Option<ConfidenceSchema>")]
    pub(crate) confidence: Option<Confidence>,
    /// Who sets `lock_timeout`: each migration (`migration`, the default), or the tool, role or database that runs them
    /// (`runner`).
    pub(crate) lock_timeout: Option<LockTimeoutSetting>,
    /// Whether suppressions without a reason are reported. The default is `false`.
    pub(crate) require_reasons: Option<bool>,
    /// The file with known findings, relative to this file. The default is `pgvet-baseline.json`, if it exists.
    #[schemars(with = "Option<String>")]
    pub(crate) baseline: Option<Spanned<String>>,
    /// A file with the schema of production, relative to this file, as `pgvet drift --format json` writes it.
    /// Migrations that production has not applied yet are checked against that schema.
    #[schemars(with = "Option<String>")]
    pub(crate) against: Option<Spanned<String>>,
    /// A file with counts of existing rows that make statements fail, relative to this file, as
    /// `pgvet precheck --database URL --format json` writes it.
    #[schemars(with = "Option<String>")]
    pub(crate) precheck: Option<Spanned<String>>,
    /// The file with production statistics, relative to this file, as `pgvet snapshot` writes it. The default is
    /// `pgvet.stats.json`, if it exists.
    #[schemars(with = "Option<String>")]
    pub(crate) statistics: Option<Spanned<String>>,
    /// Levels of rules, by name: `off`, `info`, `warning` or `error`. A rule that is named here runs, even if it is
    /// opt-in.
    #[schemars(with = "BTreeMap<String, RuleSetting>")]
    pub(crate) rules: BTreeMap<Spanned<String>, Spanned<RuleSetting>>,
    /// Levels of categories: `off`, `info`, `warning` or `error`. They apply to the rules of the category that the
    /// preset runs.
    #[schemars(with = "BTreeMap<String, RuleLevel>")]
    pub(crate) categories: BTreeMap<Spanned<Category>, RuleLevel>,
    /// Facts about tables. The key is `schema.name`, or `name` for any schema.
    pub(crate) tables: BTreeMap<String, TableSetting>,
    /// Facts about functions. The key is `schema.name`, or `name` for any schema.
    pub(crate) functions: BTreeMap<String, FunctionSetting>,
    /// Which release is deployed, for migrations that have to wait for a release.
    pub(crate) releases: ReleasesSetting,
    /// For `pgvet trace`.
    pub(crate) trace: TraceSetting,
    /// For `pgvet capture`. No other command of pgvet runs the command that is named here.
    pub(crate) capture: CaptureSetting,
    /// Values of placeholders, by name: `schema = "app"` replaces `${schema}`, `{{ schema }}` and `:schema` by `app`.
    pub(crate) placeholders: BTreeMap<String, String>,
    /// Where the migrations are and how they are run, if pgvet cannot detect that.
    pub(crate) migrations: MigrationsSetting,
    /// Levels for some files only. Later entries take precedence over earlier ones.
    pub(crate) overrides: Vec<OverrideSetting>,
}

/// Which rules run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Preset {
    Recommended,
    Strict,
}

/// Lowest severity of a finding at which the exit status is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FailOn {
    Error,
    Warning,
    Info,
    Never,
}

impl FailOn {
    /// The lowest severity that makes the exit status 1.
    pub(crate) fn severity(self) -> Option<Severity> {
        match self {
            Self::Error => Some(Severity::Error),
            Self::Warning => Some(Severity::Warning),
            Self::Info => Some(Severity::Info),
            Self::Never => None,
        }
    }
}

/// Who sets `lock_timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LockTimeoutSetting {
    Migration,
    Runner,
}

impl From<LockTimeoutSetting> for LockTimeout {
    fn from(setting: LockTimeoutSetting) -> Self {
        match setting {
            LockTimeoutSetting::Migration => Self::Migration,
            LockTimeoutSetting::Runner => Self::Runner,
        }
    }
}

/// The severity of a rule, or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RuleLevel {
    Off,
    Info,
    Warning,
    Error,
}

impl RuleLevel {
    pub(crate) fn severity(self) -> Option<Severity> {
        match self {
            Self::Off => None,
            Self::Info => Some(Severity::Info),
            Self::Warning => Some(Severity::Warning),
            Self::Error => Some(Severity::Error),
        }
    }
}

/// A level, or a table with a level and options.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum RuleSetting {
    Level(RuleLevel),
    Options(RuleOptions),
}

/// Options of a rule beside its level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RuleOptions {
    pub(crate) level: Option<RuleLevel>,
    /// For `many-tables-locked`: how many tables a transaction may lock without a finding.
    pub(crate) max_tables: Option<usize>,
}

// Derived, an error would name neither the value nor what is accepted.
impl<'de> Deserialize<'de> for RuleSetting {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = RuleSetting;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a level (`off`, `info`, `warning`, `error`) or a table with `level`")
            }

            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<RuleSetting, E> {
                RuleLevel::deserialize(StrDeserializer::new(value)).map(RuleSetting::Level)
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<RuleSetting, A::Error> {
                RuleOptions::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(RuleSetting::Options)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Which release is deployed. A migration names the release that it waits for: `-- pgvet: phase contract after 2.4`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ReleasesSetting {
    /// The release whose code runs everywhere, such as `"2.4"`. Releases with lower numbers are treated as deployed, too.
    /// If the names of releases have no order, a list of the deployed releases.
    pub(crate) deployed: Option<OneOrMany>,
}

/// For `pgvet trace`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct TraceSetting {
    /// Maximum time for which a lock of this mode or a stronger one may be held on any relation, such as `"500ms"`.
    #[schemars(with = "BTreeMap<LockModeSetting, String>")]
    pub(crate) max_held: MaxHeldSetting,
}

/// For `pgvet capture`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct CaptureSetting {
    /// The command that applies all migrations, as a list of words: `["python", "manage.py", "migrate"]`. It runs in the
    /// folder of this file if `pgvet capture` is called without a command.
    #[schemars(with = "Vec<String>")]
    pub(crate) command: Option<Spanned<Vec<String>>>,
    /// Further environment variables of the command. `{url}`, `{host}`, `{port}`, `{user}`, `{password}` and
    /// `{database}` are replaced.
    pub(crate) env: BTreeMap<String, String>,
    /// The table in which the tool records applied migrations, if pgvet does not know it.
    #[schemars(with = "Option<String>")]
    pub(crate) table: Option<Spanned<String>>,
    /// The column of that table that contains the migration's file name, or the number at its beginning; a list if it
    /// takes several columns to name a migration.
    pub(crate) column: Option<OneOrMany>,
    /// The folder in which the capture is saved, relative to this file.
    #[schemars(with = "Option<String>")]
    pub(crate) save: Option<Spanned<String>>,
}

/// Durations by lock mode.
pub(crate) type MaxHeldSetting = BTreeMap<LockModeSetting, Spanned<String>>;

/// A lock mode, as `--max-held` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LockModeSetting {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

impl From<LockModeSetting> for LockMode {
    fn from(setting: LockModeSetting) -> Self {
        // Both are in the order of strength.
        Self::ALL[setting as usize]
    }
}

impl LockModeSetting {
    /// The mode of that name: `access-exclusive`, or as SQL has it.
    pub(crate) fn named(text: &str) -> Option<LockMode> {
        let name = text.to_lowercase().replace([' ', '_'], "-");
        let name: StrDeserializer<'_, serde::de::value::Error> = StrDeserializer::new(&name);
        Self::deserialize(name).ok().map(Into::into)
    }
}

/// Facts about a table.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct TableSetting {
    /// About how many rows the table has. Up to 10,000 rows, findings about it get severity `info`; from 10 million
    /// rows on, warnings become errors.
    pub(crate) rows: Option<u64>,
    /// Whether the table is used all the time. It is then treated as large, even if it has few rows.
    pub(crate) hot: bool,
    /// Whether findings about the table are excluded.
    pub(crate) ignore: bool,
    /// For `pgvet trace`: maximum time for which a lock of this mode or a stronger one may be held on the table, such
    /// as `"200ms"`.
    #[schemars(with = "BTreeMap<LockModeSetting, String>")]
    pub(crate) max_held: MaxHeldSetting,
}

/// Facts about a function.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FunctionSetting {
    /// About how often the function is called in an hour of normal use.
    pub(crate) calls_per_hour: Option<u64>,
}

/// Where migrations are and how they are run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct MigrationsSetting {
    /// The folders of migrations, relative to this file; each is the history of one database.
    #[schemars(with = "Vec<String>")]
    pub(crate) paths: Vec<Spanned<String>>,
    /// Files to check even if pgvet would skip them: patterns relative to this file, such as `"tests/db/**"`.
    #[schemars(with = "Vec<String>")]
    pub(crate) include: Vec<Spanned<String>>,
    /// Files to skip because they are not migrations: patterns relative to this file, such as `"seeds/**"`.
    #[schemars(with = "Vec<String>")]
    pub(crate) exclude: Vec<Spanned<String>>,
    /// The migration tool. By default, it is recognized by the files.
    pub(crate) tool: Option<Tool>,
    /// The transaction in which the tool runs a file, if it is not the usual one of the tool.
    pub(crate) transaction: Option<TransactionSetting>,
    /// Report only migrations after this one: a file name, path, folder or version, or a list of them for several
    /// folders. This migration and all earlier ones are used to know the schema, but not reported.
    pub(crate) start_after: Option<OneOrMany>,
    /// A dump of the schema from before the first migration (`pg_dump --schema-only`), relative to this file.
    #[schemars(with = "Option<String>")]
    pub(crate) schema: Option<Spanned<String>>,
}

/// A string, or a list of strings.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Vec<String> {
    fn from(texts: OneOrMany) -> Self {
        match texts {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        }
    }
}

/// The transaction around a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TransactionSetting {
    /// The tool opens one around each file.
    Transaction,
    /// Each statement runs on its own, as in psql.
    Autocommit,
    /// The file is sent as one string, which makes several statements one transaction.
    SingleString,
}

impl From<TransactionSetting> for TransactionMode {
    fn from(setting: TransactionSetting) -> Self {
        match setting {
            TransactionSetting::Transaction => Self::Transaction,
            TransactionSetting::Autocommit => Self::Autocommit,
            TransactionSetting::SingleString => Self::SingleString,
        }
    }
}

/// Levels for some files.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct OverrideSetting {
    /// Patterns of paths relative to this file, such as `"legacy/**"`.
    #[schemars(with = "Vec<String>")]
    pub(crate) paths: Vec<Spanned<String>>,
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, RuleLevel>")]
    pub(crate) rules: BTreeMap<Spanned<String>, RuleLevel>,
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, RuleLevel>")]
    pub(crate) categories: BTreeMap<Spanned<Category>, RuleLevel>,
}

/// `16` or `"14-18"`, for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum VersionSchema {
    Major(#[schemars(range(min = 10, max = 18))] u8),
    Range(#[schemars(regex(pattern = r"^\s*1[0-8]\s*(-\s*1[0-8]\s*)?$"))] String),
}

/// The severities, for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(dead_code, reason = "only its schema is used")]
enum SeveritySchema {
    Info,
    Warning,
    Error,
}

/// The severities, for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(dead_code, reason = "only its schema is used")]
enum ConfidenceSchema {
    Certain,
    Likely,
    Possible,
}
