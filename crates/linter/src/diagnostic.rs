//! Findings, independent of how they are shown.

use crate::confidence::{Assumption, Confidence};
use crate::effect::Evidence;
use crate::fix::{Fix, Step};
use crate::rule::Rule;
use crate::rules::{engine, transaction};
use crate::source::TextRange;
use crate::version::PgVersion;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// How bad a finding is. Errors would hurt at production size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    Warning,
    Error,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Another place that explains a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Index of the file in the run.
    pub file: u32,
    pub range: TextRange,
    pub message: String,
}

/// The name of a rule. Under this name serde does not take it for a part of what it reads.
pub type RuleName = &'static str;

/// One finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// The rule's name.
    #[serde(deserialize_with = "name_of_rule")]
    pub rule: RuleName,
    pub severity: Severity,
    /// How sure it is that this happens.
    pub confidence: Confidence,
    /// What it assumes, in the order in which the rule said it.
    pub assumptions: Vec<Assumption>,
    /// One sentence without period: object, lock, consequence.
    pub message: String,
    /// The next step; may be several lines, SQL on lines of its own indented by four spaces.
    pub help: Option<String>,
    /// Index of the file in the run.
    pub file: u32,
    /// The narrowest range that shows the problem.
    pub range: TextRange,
    /// The statement that the finding is about; suppressions refer to it.
    pub statement: TextRange,
    pub labels: Vec<Label>,
    /// Qualified names of the relations concerned.
    pub relations: Vec<String>,
    /// The configured versions for which it holds; all of them unless it says otherwise.
    pub pg_versions: Vec<PgVersion>,
    /// Edits to choose from.
    pub fixes: Vec<Fix>,
    /// The statements that can take the place of this one, those that must not share a transaction apart; empty where
    /// there are none.
    pub steps: Vec<Step>,
    /// Why there are none, where that needs to be said: what they could not take along.
    pub obstacle: Option<String>,
    pub evidence: Evidence,
}

/// The rules that say that PostgreSQL refuses a statement.
pub(crate) static REFUSALS: [&Rule; 3] =
    [&engine::syntax_error::RULE, &engine::statement_will_fail::RULE, &transaction::concurrently_in_transaction::RULE];

impl Diagnostic {
    /// Lowers the confidence to what the assumption allows.
    pub(crate) fn assume(&mut self, assumption: Assumption) {
        self.confidence = self.confidence.min(assumption.confidence());
        self.assumptions.push(assumption);
    }

    /// Whether the rule reported it.
    pub fn is_of(&self, rule: &Rule) -> bool {
        self.rule == rule.meta.name
    }

    /// Whether it says that PostgreSQL refuses the statement.
    pub fn is_refusal(&self) -> bool {
        REFUSALS.iter().any(|rule| self.is_of(rule))
    }

    /// Message and help in plain text.
    pub fn message_with_help(&self) -> String {
        match &self.help {
            Some(help) => format!("{}\n\nhelp: {help}", self.message),
            None => self.message.clone(),
        }
    }
}

fn name_of_rule<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RuleName, D::Error> {
    let name = String::deserialize(deserializer)?;
    let rule = crate::rules::find(&name).ok_or_else(|| D::Error::custom(format!("there is no rule `{name}`")))?;
    Ok(rule.meta.name)
}
