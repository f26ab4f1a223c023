//! squawk, the linter that pgvet is measured against: `pip install squawk-cli`.

use pgvet_model::version::PgVersion;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Its rules that claim long work under a lock, or a lock that long work follows from.
const LOCK_RULES: &[&str] = &[
    "adding-field-with-default",
    "adding-foreign-key-constraint",
    "adding-not-nullable-field",
    "adding-serial-primary-key-field",
    "changing-column-type",
    "constraint-missing-not-valid",
    "disallowed-unique-constraint",
    "require-concurrent-index-creation",
    "require-concurrent-reindex",
];

/// One finding.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Finding {
    pub file: PathBuf,
    #[serde(rename = "rule_name")]
    pub rule: String,
}

impl Finding {
    pub(super) fn is_about_locks(&self) -> bool {
        LOCK_RULES.contains(&self.rule.as_str())
    }
}

/// Runs it over files for one major.
pub(super) fn run(squawk: &Path, version: PgVersion, files: &[PathBuf]) -> Result<Vec<Finding>, String> {
    let mut command = Command::new(squawk);
    command.args(["--reporter", "json", "--pg-version", &format!("{version}.0")]).args(files);
    let output = command.output().map_err(|error| format!("{}: {error}", squawk.display()))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{}: {error}: {}", squawk.display(), String::from_utf8_lossy(&output.stderr)))
}
