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

/// Configuration of pgvet. The nearest `pgvet.toml` in or above a folder of migrations holds for it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(title = "pgvet.toml", extend("x-taplo-info" = { "authors": ["pgvet"] }))]
pub(crate) struct ConfigFile {
    /// Another configuration file that this one refines, relative to this file.
    #[schemars(with = "Option<String>")]
    pub(crate) extend: Option<Spanned<String>>,
    /// The PostgreSQL major version that runs the migrations, or a range of them: `16`, `"14-18"`.
    #[schemars(with = "Option<VersionSchema>")]
    pub(crate) pg_version: Option<Spanned<toml::Value>>,
    /// Which rules run: those that nearly everybody wants (`recommended`, the default), or the opt-in ones too.
    pub(crate) preset: Option<Preset>,
    /// From which severity on findings make the exit status 1. The default is `error`.
    pub(crate) fail_on: Option<FailOn>,
    /// Lowest severity that is shown. The default is `warning`.
    #[schemars(with = "Option<SeveritySchema>")]
    pub(crate) level: Option<Severity>,
    /// Lowest confidence that is shown: `certain`, `likely` (the default) or `possible`.
    #[schemars(with = "Option<ConfidenceSchema>")]
    pub(crate) confidence: Option<Confidence>,
    /// Who sets `lock_timeout`: each migration, or what runs them (the tool, the role or the database).
    pub(crate) lock_timeout: Option<LockTimeoutSetting>,
    /// Whether suppressions must give a reason.
    pub(crate) require_reasons: Option<bool>,
    /// The file with known findings, relative to this file. The default is `pgvet-baseline.json`, if it is there.
    #[schemars(with = "Option<String>")]
    pub(crate) baseline: Option<Spanned<String>>,
    /// What production has, as `pgvet drift --format json` writes it, relative to this file: migrations that production has
    /// not applied are judged by it.
    #[schemars(with = "Option<String>")]
    pub(crate) against: Option<Spanned<String>>,
    /// The file with statistics of production that `pgvet snapshot` writes, relative to this file. The default is
    /// `pgvet.stats.json`, if it is there.
    #[schemars(with = "Option<String>")]
    pub(crate) statistics: Option<Spanned<String>>,
    /// Levels of single rules, by name.
    #[schemars(with = "BTreeMap<String, RuleSetting>")]
    pub(crate) rules: BTreeMap<Spanned<String>, Spanned<RuleSetting>>,
    /// Levels of whole categories, for those of their rules that the preset runs.
    #[schemars(with = "BTreeMap<String, RuleLevel>")]
    pub(crate) categories: BTreeMap<Spanned<Category>, RuleLevel>,
    /// Facts about tables, by `schema.name`, or `name` for any schema.
    pub(crate) tables: BTreeMap<String, TableSetting>,
    /// Facts about functions, by `schema.name`, or `name` for any schema.
    pub(crate) functions: BTreeMap<String, FunctionSetting>,
    /// For `pgvet trace`.
    pub(crate) trace: TraceSetting,
    /// Values of placeholders, by name: `schema = "app"` is for `${schema}`, `{{ schema }}` and `:schema`.
    pub(crate) placeholders: BTreeMap<String, String>,
    /// Where migrations are and how they are run, where pgvet cannot see it itself.
    pub(crate) migrations: MigrationsSetting,
    /// Levels that hold for some files only; later ones take precedence over earlier ones.
    pub(crate) overrides: Vec<OverrideSetting>,
}

/// Which rules run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Preset {
    Recommended,
    Strict,
}

/// From which severity on findings make the exit status 1.
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
    /// For `many-tables-locked`: how many tables a transaction may lock.
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

/// For `pgvet trace`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct TraceSetting {
    /// The longest that locks of at least this strength may be held on any relation, such as `"500ms"`.
    #[schemars(with = "BTreeMap<LockModeSetting, String>")]
    pub(crate) max_held: MaxHeldSetting,
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
    /// About how many rows it has. Up to 10,000, findings about it are notes; from 10 million on, warnings are errors.
    pub(crate) rows: Option<u64>,
    /// Whether it is used all the time, so that it is treated as large however few rows it has.
    pub(crate) hot: bool,
    /// Report nothing about it.
    pub(crate) ignore: bool,
    /// For `pgvet trace`: the longest that locks of at least this strength may be held on it, such as `"200ms"`.
    #[schemars(with = "BTreeMap<LockModeSetting, String>")]
    pub(crate) max_held: MaxHeldSetting,
}

/// Facts about a function.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FunctionSetting {
    /// How often it is called in an hour of normal use.
    pub(crate) calls_per_hour: Option<u64>,
}

/// Where migrations are and how they are run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct MigrationsSetting {
    /// The folders of migrations, relative to this file; each is the history of one database.
    #[schemars(with = "Vec<String>")]
    pub(crate) paths: Vec<Spanned<String>>,
    /// Files that are migrations although pgvet skips them: patterns relative to this file, such as `"tests/db/**"`.
    #[schemars(with = "Vec<String>")]
    pub(crate) include: Vec<Spanned<String>>,
    /// Files that are not migrations: patterns relative to this file, such as `"seeds/**"`.
    #[schemars(with = "Vec<String>")]
    pub(crate) exclude: Vec<Spanned<String>>,
    /// The tool that runs them.
    pub(crate) tool: Option<Tool>,
    /// The transaction that the tool opens, where it is not the tool's usual one.
    pub(crate) transaction: Option<TransactionSetting>,
    /// The last migration that is not reported, by file name, path, folder or version; a list where there are several
    /// folders. It and all before it are only replayed.
    pub(crate) start_after: Option<OneOrMany>,
    /// A dump of the schema from before the first migration (`pg_dump --schema-only`), relative to this file.
    #[schemars(with = "Option<String>")]
    pub(crate) schema: Option<Spanned<String>>,
}

/// A text, or a list of them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a text in quotes, or a list of them")]
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
