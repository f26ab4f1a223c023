//! How sure a finding is.

use serde::{Deserialize, Serialize};

/// How sure it is that the harm happens; how bad it is if it does is its severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// There is evidence against an assumption of the finding, or it needs an unusual situation.
    Possible,
    /// Needs an assumption that holds for an ordinary production table or application.
    #[default]
    Likely,
    /// Follows from PostgreSQL and from facts of the history.
    Certain,
}

impl Confidence {
    /// Returns the word that options, configuration and reports use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }
}
