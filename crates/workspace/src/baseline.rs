//! The file with findings that are known.

use crate::config::Config;
use crate::read;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where the baseline is unless configuration says otherwise: beside it.
const FILE_NAME: &str = "pgvet-baseline.json";

const SCHEMA_VERSION: u32 = 1;

/// A known finding. Only the fingerprint counts; the rest is for people.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KnownFinding {
    pub fingerprint: String,
    pub rule: String,
    pub path: String,
    pub message: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    schema_version: u32,
    findings: Vec<KnownFinding>,
}

impl KnownFinding {
    /// Reads a baseline.
    ///
    /// # Errors
    /// Why it cannot be read, as the end of the sentence "the baseline ...".
    pub fn read_all(path: &Path) -> Result<Vec<Self>, String> {
        let text = read::text(path).map_err(|error| format!("cannot be read: {error}"))?;
        let document: Document = serde_json::from_str(&text).map_err(|error| format!("is not a baseline: {error}"))?;
        if document.schema_version != SCHEMA_VERSION {
            return Err(format!("has version {}, but this pgvet reads version 1", document.schema_version));
        }
        Ok(document.findings)
    }

    /// Whether a file is there that is no baseline and is not called one. A baseline that cannot be read, as after a
    /// merge, has its usual name or is removed before it is written again.
    pub fn is_of_others(path: &Path) -> bool {
        !path.ends_with(FILE_NAME) && path.exists() && Self::read_all(path).is_err()
    }

    /// The text of a baseline, in an order that makes for small differences.
    pub fn text_of(mut findings: Vec<Self>) -> String {
        let key = |finding: &Self| (finding.path.clone(), finding.rule.clone(), finding.fingerprint.clone());
        findings.sort_by_key(key);
        let document = Document { schema_version: SCHEMA_VERSION, findings };
        // Serializing strings and a number into memory cannot fail.
        let text = serde_json::to_string_pretty(&document).unwrap_or_default();
        text + "\n"
    }
}

impl Config {
    /// Where the baseline is, or would be.
    pub fn baseline_path(&self) -> PathBuf {
        self.baseline.clone().unwrap_or_else(|| self.root().unwrap_or(Path::new("")).join(FILE_NAME))
    }
}
