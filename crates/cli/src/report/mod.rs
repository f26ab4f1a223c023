//! What a run found, in each format. One file per format.

pub(crate) mod concise;
pub(crate) mod effects;
pub(crate) mod effects_json;
pub(crate) mod effects_table;
pub(crate) mod full;
pub(crate) mod json;
pub(crate) mod trace;
pub(crate) mod trace_json;
pub(crate) mod trace_table;

use pgvet_linter::check::{Migration, ParsedFile};
use pgvet_linter::diagnostic::{Diagnostic, Severity};
use pgvet_linter::source::{Position, TextRange};
use pgvet_workspace::Project;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// Everything that a format may show.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) project: &'a Project,
    migrations: &'a [Migration<'a>],
    /// In the order of files, and of places in them.
    pub(crate) diagnostics: &'a [Diagnostic],
    pub(crate) summary: Summary,
}

impl<'a> Report<'a> {
    pub(crate) fn new(project: &'a Project, migrations: &'a [Migration<'a>], diagnostics: &'a [Diagnostic]) -> Self {
        let count = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
        let mut report = Self {
            project,
            migrations,
            diagnostics,
            summary: Summary {
                errors: count(Severity::Error),
                warnings: count(Severity::Warning),
                infos: count(Severity::Info),
                files: project.reported_files(),
                files_with_findings: 0,
                not_checked: project.problems.len(),
            },
        };
        let paths: BTreeSet<&str> = diagnostics.iter().map(|found| report.path(found.file)).collect();
        report.summary.files_with_findings = paths.len();
        report
    }

    /// The file with the index that diagnostics use.
    pub(crate) fn file(&self, index: u32) -> &'a ParsedFile {
        self.migrations[index as usize].file
    }

    pub(crate) fn path(&self, index: u32) -> &'a str {
        &self.file(index).source.path
    }

    /// `path:line:col`.
    pub(crate) fn place(&self, file: u32, range: TextRange) -> String {
        let start = position(self.file(file), range.start);
        format!("{}:{}:{}", self.path(file), start.line, start.column)
    }
}

/// The counts at the end of a report.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Summary {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
    pub(crate) infos: usize,
    pub(crate) files: usize,
    pub(crate) files_with_findings: usize,
    /// Paths that could not be read.
    pub(crate) not_checked: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [(self.errors, "error"), (self.warnings, "warning"), (self.infos, "note")];
        let found: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, noun)| plural(*count, noun)).collect();
        if found.is_empty() {
            write!(f, "No problems found in {}", plural(self.files, "file"))?;
        } else {
            write!(f, "{} in {} of {}", found.join(", "), self.files_with_findings, plural(self.files, "file"))?;
        }
        match self.not_checked {
            0 => Ok(()),
            count => write!(f, "; {} not checked", plural(count, "path")),
        }
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

pub(crate) fn position(file: &ParsedFile, offset: u32) -> Position {
    file.lines.position(&file.source.text, offset)
}

/// A range as programs see it.
#[derive(Debug, Serialize)]
pub(crate) struct JsonRange {
    start: Position,
    end: Position,
}

impl JsonRange {
    pub(crate) fn new(file: &ParsedFile, range: TextRange) -> Self {
        Self { start: position(file, range.start), end: position(file, range.end) }
    }
}

/// The page of a rule.
pub(crate) fn rule_url(rule: &str) -> String {
    format!("{}/blob/main/rules/{rule}.md", env!("CARGO_PKG_REPOSITORY"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_in_english() {
        let summary = Summary { errors: 3, warnings: 1, infos: 0, files: 14, files_with_findings: 2, not_checked: 0 };
        assert_eq!(summary.to_string(), "3 errors, 1 warning in 2 of 14 files");
        let clean = Summary { errors: 0, warnings: 0, infos: 0, files: 1, files_with_findings: 0, not_checked: 2 };
        assert_eq!(clean.to_string(), "No problems found in 1 file; 2 paths not checked");
    }
}
