//! Metadata of rules.

use crate::confidence::Confidence;
use crate::severity::Severity;
use serde::{Deserialize, Serialize};

/// Groups of rules; the folder of a rule is its category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Problems of the text itself; they belong to no preset.
    Engine,
    Locking,
    Transaction,
    Compatibility,
    Data,
    Bloat,
    Plpgsql,
    Schema,
    Security,
    /// Migrations that databases have applied, and those that come after them.
    History,
}

impl Category {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Locking => "locking",
            Self::Transaction => "transaction",
            Self::Compatibility => "compatibility",
            Self::Data => "data",
            Self::Bloat => "bloat",
            Self::Plpgsql => "plpgsql",
            Self::Schema => "schema",
            Self::Security => "security",
            Self::History => "history",
        }
    }

    /// Whether findings of its rules are worse the more rows and traffic a table has.
    pub(crate) fn grows_with_tables(self) -> bool {
        match self {
            Self::Locking | Self::Transaction | Self::Data | Self::Bloat | Self::Plpgsql | Self::Schema => true,
            Self::Engine | Self::Compatibility | Self::Security | Self::History => false,
        }
    }

    /// How sure its findings are, as far as nothing else is assumed than that tables are large. [`RuleMeta::confidence`]
    /// can say otherwise.
    pub(crate) const fn confidence(self) -> Confidence {
        match self {
            Self::Locking | Self::Engine => Confidence::Certain,
            _ => Confidence::Likely,
        }
    }

    /// Whether findings of its rules do harm only if the statement is committed. [`RuleMeta::needs_commit`] can say
    /// otherwise.
    pub(crate) const fn needs_commit(self) -> bool {
        matches!(self, Self::Compatibility | Self::Security)
    }
}

/// How far a rule may still change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Preview,
    Stable,
    Deprecated,
}

/// Metadata of a rule.
#[derive(Debug)]
pub struct RuleMeta {
    /// Kebab-case name of the hazard.
    pub name: &'static str,
    pub category: Category,
    pub severity: Severity,
    /// How sure a finding is whose assumptions hold.
    pub confidence: Confidence,
    pub status: Status,
    /// Part of the default preset; otherwise only of `strict`.
    pub recommended: bool,
    /// Whether a finding may carry a fix.
    pub fixable: bool,
    /// Equivalent rules of other linters, such as `squawk/require-concurrent-index-creation`.
    pub sources: &'static [&'static str],
    /// Rules whose finding at the same place says it better, so that this rule reports nothing there.
    pub yields_to: &'static [&'static RuleMeta],
    /// Whether a finding is about the migration as a whole, so that rules which yield to it report nothing in all of it.
    pub covers_migration: bool,
    /// Whether it harms only if the statement is committed. Such a rule ignores statements that a ROLLBACK of the
    /// migration undoes.
    pub needs_commit: bool,
    /// The version of pgvet that has it first.
    pub since: &'static str,
    /// The rule's doc comment: its page in markdown.
    pub docs: &'static str,
    /// The file that declares it.
    pub file: &'static str,
}

impl RuleMeta {
    /// The first paragraph of the documentation, on one line.
    pub fn summary(&self) -> String {
        let paragraph = self.docs.trim_start().split("\n\n").next().unwrap_or_default();
        paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The address of its page.
    pub fn url(&self) -> String {
        format!("{}/blob/main/rules/{}.md", env!("CARGO_PKG_REPOSITORY"), self.name)
    }

    /// Its page without the title.
    pub fn page(&self) -> String {
        // Doc comments keep the blank after their slashes.
        let lines = self.docs.trim().lines().map(|line| line.strip_prefix(' ').unwrap_or(line));
        lines.collect::<Vec<_>>().join("\n")
    }
}
