//! How many findings can be dealt with by a command, and by which.

use super::{Report, plural};
use crate::inert;
use pgvet_linter::fix::Applicability;
use std::collections::BTreeSet;
use std::path::Path;

impl Report<'_> {
    /// Returns a line for each command that deals with findings of the report.
    pub(crate) fn remedies(&self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.fixes());
        lines.extend(self.rewrites());
        lines
    }

    fn fixes(&self) -> Option<String> {
        let best = |finding: &&super::Finding<'_>| finding.diagnostic.fixes.iter().map(|fix| fix.applicability).max();
        let fixable = self.findings.iter().filter(|finding| finding.file.encoding.is_none());
        let (mut safe, mut others) = (0, 0);
        for finding in fixable {
            match best(&finding) {
                Some(Applicability::Safe) => safe += 1,
                Some(Applicability::Unsafe) => others += 1,
                Some(Applicability::DisplayOnly) | None => {}
            }
        }
        let found = |count| plural(count, "finding");
        match (safe, others) {
            (0, 0) => None,
            (safe, 0) => Some(format!("{} can be fixed with `pgvet check --fix`.", found(safe))),
            (0, others) => {
                Some(format!("{} can be fixed with `pgvet check --unsafe-fixes`; review the result.", found(others)))
            }
            (safe, others) => Some(format!(
                "{} can be fixed with `pgvet check --fix`, and {others} more with `--unsafe-fixes`; review the result.",
                found(safe)
            )),
        }
    }

    fn rewrites(&self) -> Option<String> {
        // A captured migration is changed in its source.
        let own = self.findings.iter().filter(|finding| finding.file.origin.is_none());
        let with_steps: Vec<_> = own.filter(|finding| !finding.diagnostic.steps.is_empty()).collect();
        let paths: BTreeSet<&str> = with_steps.iter().map(|finding| finding.path).collect();
        // Standard input may have no name.
        let is_file = |path: &str| Path::new(path).exists();
        let count = plural(with_steps.len(), "finding");
        match paths.iter().next() {
            None => None,
            Some(only) if paths.len() == 1 && is_file(only) => {
                Some(format!("`pgvet rewrite {}` writes safer migrations for {count}.", inert::line(only)))
            }
            Some(_) => {
                let files = plural(paths.len(), "file");
                Some(format!("`pgvet rewrite FILE` writes safer migrations for {count} in {files}."))
            }
        }
    }
}
