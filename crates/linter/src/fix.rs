//! Changes of text that a finding offers.

use crate::source::TextRange;
use serde::{Deserialize, Serialize};

/// How far a fix can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Applicability {
    /// Only to be shown.
    DisplayOnly,
    /// The result may mean something else.
    Unsafe,
    /// The result means the same.
    Safe,
}

/// A replacement of one range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub range: TextRange,
    pub text: String,
}

/// A set of edits of one file that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    pub title: String,
    pub applicability: Applicability,
    pub edits: Vec<Edit>,
}
