//! What a rule is.

use crate::diagnostic::Severity;
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
}

/// How far a rule may still change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Preview,
    Stable,
    Deprecated,
}

/// What is known about a rule without running it.
#[derive(Debug)]
pub struct RuleMeta {
    /// Kebab-case name of the hazard.
    pub name: &'static str,
    pub category: Category,
    pub severity: Severity,
    pub status: Status,
    /// Part of the default preset; otherwise only of `strict`.
    pub recommended: bool,
    /// May a finding carry a fix?
    pub fixable: bool,
    /// Equivalent rules of other linters, such as `squawk/require-concurrent-index-creation`.
    pub sources: &'static [&'static str],
    /// The rule's doc comment: its page in markdown.
    pub docs: &'static str,
}

impl RuleMeta {
    /// The first sentence of the documentation.
    pub fn summary(&self) -> &'static str {
        self.docs.trim_start().split("\n\n").next().unwrap_or_default()
    }
}
