//! Findings that are known: written once, and held back by later runs.

use crate::error::Failure;
use crate::report::{Finding, Report, relative_path};
use pgvet_linter::settings::Settings;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the baseline is unless configuration says otherwise.
pub(crate) const FILE_NAME: &str = "pgvet-baseline.json";

const SCHEMA_VERSION: u32 = 1;

/// Known findings.
#[derive(Debug)]
pub(crate) struct Baseline {
    path: PathBuf,
    entries: BTreeMap<String, Entry>,
    /// What the run looks for; what it does not look for cannot be found.
    settings: Settings,
}

/// One of them. Only the fingerprint counts; the rest is for people.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    fingerprint: String,
    pub(crate) rule: String,
    pub(crate) path: String,
    pub(crate) message: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    schema_version: u32,
    findings: Vec<Entry>,
}

impl Baseline {
    pub(crate) fn read(path: &Path, settings: Settings) -> Result<Self, Failure> {
        let wrong = |what: String| {
            let shown = path.display();
            Failure::new(format!("the baseline `{shown}` {what}")).help("`pgvet baseline` writes it anew")
        };
        let text = fs::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let document: Document = serde_json::from_str(&text).map_err(|error| wrong(format!("is none: {error}")))?;
        if document.schema_version != SCHEMA_VERSION {
            return Err(wrong(format!("has version {}, and this program reads 1", document.schema_version)));
        }
        let entries = document.findings.into_iter().map(|entry| (entry.fingerprint.clone(), entry)).collect();
        Ok(Self { path: path.to_owned(), entries, settings })
    }

    pub(crate) fn shown_path(&self) -> String {
        relative_path(&self.path.to_string_lossy())
    }

    pub(crate) fn knows(&self, finding: &Finding<'_>) -> bool {
        self.entries.contains_key(&finding.fingerprint)
    }

    /// Entries of reported files that were looked for and not found.
    pub(crate) fn fixed(&self, report: &Report<'_>) -> impl Iterator<Item = &Entry> {
        let reported = report.project.files.iter().filter(|file| file.role == pgvet_workspace::Role::Reported);
        let paths: BTreeSet<String> = reported.map(pgvet_workspace::ProjectFile::stable_path).collect();
        let found: BTreeSet<String> = report.findings.iter().map(|finding| finding.fingerprint.clone()).collect();
        self.entries.values().filter(move |entry| {
            paths.contains(&entry.path) && self.looks_for(&entry.rule) && !found.contains(&entry.fingerprint)
        })
    }

    fn looks_for(&self, rule: &str) -> bool {
        let is_named = |names: &[String]| names.iter().any(|name| name == rule);
        !is_named(&self.settings.ignore) && (self.settings.only.is_empty() || is_named(&self.settings.only))
    }
}

/// The text of a baseline with these findings, in an order that makes for small differences.
pub(crate) fn text(findings: &[Finding<'_>]) -> String {
    let mut entries: Vec<Entry> = findings
        .iter()
        .map(|finding| Entry {
            fingerprint: finding.fingerprint.clone(),
            rule: finding.diagnostic.rule.to_owned(),
            path: finding.file.stable_path(),
            message: finding.diagnostic.message.clone(),
        })
        .collect();
    entries.sort_by(|left, right| {
        (&left.path, &left.rule, &left.fingerprint).cmp(&(&right.path, &right.rule, &right.fingerprint))
    });
    let document = Document { schema_version: SCHEMA_VERSION, findings: entries };
    // Serializing strings and a number into memory cannot fail.
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text + "\n"
}
