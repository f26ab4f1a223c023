//! Findings, independent of how they are shown.

use crate::assumption::Assumption;
use crate::cause::Cause;
use crate::confidence::Confidence;
use crate::fix::{Fix, Step};
use crate::meta::RuleMeta;
use crate::severity::Severity;
use pgvet_model::effect::Evidence;
use pgvet_model::version::PgVersion;
use pgvet_syntax::source::TextRange;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Another place that explains a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Index of the file in the run.
    pub file: u32,
    pub range: TextRange,
    pub message: String,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnostic<Name = &'static str> {
    /// The rule's name. One that was read from somewhere is a text of its own until
    /// [`Diagnostic::named`] replaces it by that of a rule that there is.
    pub rule: Name,
    pub severity: Severity,
    /// How sure it is that this happens.
    pub confidence: Confidence,
    /// Its assumptions, in the order in which the rule stated them.
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
    /// Findings of the rule in the file with the same cause are one in reports. Without one, those at the same place are.
    pub cause: Option<Cause>,
}

impl Diagnostic {
    /// Lowers the confidence to what the assumption allows.
    pub(crate) fn assume(&mut self, assumption: Assumption) {
        self.confidence = self.confidence.min(assumption.confidence());
        self.assumptions.push(assumption);
    }

    /// Whether the rule reported it.
    pub fn is_of(&self, rule: &RuleMeta) -> bool {
        self.rule == rule.name
    }

    /// Message and help in plain text.
    pub fn message_with_help(&self) -> String {
        self.with_help(&self.message)
    }

    /// A message with the help of this finding, in plain text.
    pub fn with_help(&self, message: &str) -> String {
        match &self.help {
            Some(help) => format!("{message}\n\nhelp: {help}"),
            None => message.to_owned(),
        }
    }
}

impl Diagnostic<SmolStr> {
    /// The same with the name of a rule.
    pub fn named(self, rule: &'static str) -> Diagnostic {
        Diagnostic {
            rule,
            severity: self.severity,
            confidence: self.confidence,
            assumptions: self.assumptions,
            message: self.message,
            help: self.help,
            file: self.file,
            range: self.range,
            statement: self.statement,
            labels: self.labels,
            relations: self.relations,
            pg_versions: self.pg_versions,
            fixes: self.fixes,
            steps: self.steps,
            obstacle: self.obstacle,
            evidence: self.evidence,
            cause: self.cause,
        }
    }
}
