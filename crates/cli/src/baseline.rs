//! Findings that are known: written once, and held back by later runs.

use crate::error::Failure;
use crate::report::{Finding, Report, relative_path};
use pgvet_linter::settings::Settings;
use pgvet_workspace::KnownFinding;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Known findings.
#[derive(Debug)]
pub(crate) struct Baseline {
    path: PathBuf,
    entries: BTreeMap<String, KnownFinding>,
    /// The settings of the run, which say which findings it can have.
    settings: Settings,
}

impl Baseline {
    pub(crate) fn read(path: &Path, settings: Settings) -> Result<Self, Failure> {
        let wrong = |what: String| {
            let shown = path.display();
            Failure::new(format!("the baseline `{shown}` {what}")).help("write it again with `pgvet baseline`")
        };
        let entries = KnownFinding::read_all(path).map_err(wrong)?;
        let entries = entries.into_iter().map(|entry| (entry.fingerprint.clone(), entry)).collect();
        Ok(Self { path: path.to_owned(), entries, settings })
    }

    pub(crate) fn shown_path(&self) -> String {
        relative_path(&self.path.to_string_lossy())
    }

    pub(crate) fn knows(&self, finding: &Finding<'_>) -> bool {
        self.entries.contains_key(&finding.fingerprint)
    }

    /// Entries of reported files that were searched for and not found.
    pub(crate) fn fixed(&self, report: &Report<'_>) -> impl Iterator<Item = &KnownFinding> {
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

/// The text of a baseline with these findings.
pub(crate) fn text(findings: &[Finding<'_>]) -> String {
    let entry = |finding: &Finding<'_>| KnownFinding {
        fingerprint: finding.fingerprint.clone(),
        rule: finding.diagnostic.rule.to_owned(),
        path: finding.file.stable_path(),
        message: finding.diagnostic.message.clone(),
    };
    KnownFinding::text_of(findings.iter().map(entry).collect())
}
