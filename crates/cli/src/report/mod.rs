//! Reports of a run, in each format. One file per format.

pub(crate) mod checkstyle;
pub(crate) mod concise;
pub(crate) mod config_error;
pub(crate) mod crash;
pub(crate) mod diff;
pub(crate) mod drift;
pub(crate) mod effects;
pub(crate) mod effects_json;
pub(crate) mod effects_table;
mod entry;
mod excerpt;
pub(crate) mod full;
pub(crate) mod github;
pub(crate) mod gitlab;
pub(crate) mod json;
pub(crate) mod json_schema;
pub(crate) mod junit;
pub(crate) mod markdown;
pub(crate) mod precheck;
mod remedies;
mod repeated;
mod repository;
pub(crate) mod roundtrip;
pub(crate) mod sarif;
pub(crate) mod schema;
pub(crate) mod sonarqube;
pub(crate) mod squash;
pub(crate) mod statistics;
pub(crate) mod trace;
pub(crate) mod trace_html;
pub(crate) mod trace_json;
pub(crate) mod trace_markdown;
pub(crate) mod trace_table;
mod xml;

use crate::baseline::Baseline;
use crate::inert;
use pgvet_linter::check::Outcome;
use pgvet_linter::diagnostic::Diagnostic;
use pgvet_linter::meta::RuleMeta;
use pgvet_linter::passes::Hidden;
use pgvet_linter::rules;
use pgvet_linter::severity::Severity;
use pgvet_syntax::source::{Position, SourceFile, TextRange};
use pgvet_workspace::config::Hiding;
use pgvet_workspace::{KnownFinding, Project, ProjectFile, Role, fingerprints, skipped_by_reason};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// Everything that a format may show.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) project: &'a Project,
    /// The file of each migration of the run.
    files: Vec<&'a ProjectFile>,
    /// In the order of files, and of places in them; without known ones.
    pub(crate) findings: Vec<Finding<'a>>,
    /// Findings that comments suppress, if they were requested.
    pub(crate) suppressed: Vec<Finding<'a>>,
    pub(crate) known: Option<Known>,
    pub(crate) summary: Summary,
    /// Counts of findings that the settings of the run hide.
    hidden: Hidden,
    /// Whether only findings are shown to people, without what is said about them.
    pub(crate) is_quiet: bool,
}

/// A finding with what most formats say about it.
#[derive(Debug, Clone)]
pub(crate) struct Finding<'a> {
    pub(crate) diagnostic: &'a Diagnostic,
    pub(crate) file: &'a ProjectFile,
    /// As the user named it.
    pub(crate) path: &'a str,
    pub(crate) start: Position,
    pub(crate) end: Position,
    pub(crate) fingerprint: String,
    /// The reason that a comment gives for suppressing it.
    pub(crate) reason: Option<&'a str>,
    /// Whether it makes the run fail.
    pub(crate) fails: bool,
    /// Those that [`Report::folded`] has made a part of it, in the order of the report.
    pub(crate) repeats: Vec<Self>,
}

/// The baseline of the run.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Known {
    /// Where it is.
    pub(crate) path: String,
    /// How many findings it holds back.
    pub(crate) findings: usize,
    /// Findings in it that no longer exist.
    #[schemars(with = "Vec<json_schema::KnownFinding>")]
    pub(crate) fixed: Vec<KnownFinding>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(project: &'a Project, outcome: &'a Outcome) -> Self {
        let files = project.files_of_migrations();
        let found = outcome.found.iter().map(|found| (found, None));
        let suppressed = outcome.suppressed.iter().map(|one| (&one.diagnostic, Some(one.reason.as_str())));
        let all: Vec<_> = found.chain(suppressed).collect();
        let in_files: Vec<_> = all.iter().map(|(found, _)| (files[found.file as usize], *found)).collect();
        let finding = |((found, reason), fingerprint)| Finding::new(&files, found, reason, fingerprint);
        let mut findings: Vec<_> = all.into_iter().zip(fingerprints(&in_files)).map(finding).collect();
        let suppressed = findings.split_off(outcome.found.len());
        let mut report = Self {
            project,
            files,
            findings,
            suppressed,
            known: None,
            summary: Summary::default(),
            hidden: outcome.hidden,
            is_quiet: false,
        };
        report.summarize();
        report
    }

    /// Omits what comments suppress.
    #[must_use]
    pub(crate) fn without_suppressed(mut self) -> Self {
        self.suppressed.clear();
        self.summarize();
        self
    }

    /// Omits the findings of other migrations than the wanted ones, which are given by index.
    #[must_use]
    pub(crate) fn of_migrations(mut self, wanted: &BTreeSet<usize>) -> Self {
        self.findings.retain(|finding| wanted.contains(&(finding.diagnostic.file as usize)));
        self.summarize();
        self
    }

    /// Marks the findings that make the run fail.
    #[must_use]
    pub(crate) fn with_failing(mut self, fails: impl Fn(&Finding<'_>) -> bool) -> Self {
        for at in 0..self.findings.len() {
            self.findings[at].fails = fails(&self.findings[at]);
        }
        self
    }

    /// Omits what the baseline knows.
    #[must_use]
    pub(crate) fn without_known(mut self, baseline: &Baseline) -> Self {
        let all = self.findings.len();
        let fixed = baseline.fixed(&self).cloned().collect();
        self.findings.retain(|finding| !baseline.knows(finding));
        let findings = all - self.findings.len();
        self.known = Some(Known { path: baseline.shown_path(), findings, fixed });
        self.summarize();
        self
    }

    fn summarize(&mut self) {
        let count = |severity| self.findings.iter().filter(|finding| finding.diagnostic.severity == severity).count();
        let paths: BTreeSet<&str> = self.findings.iter().map(|finding| finding.path).collect();
        // Unlisted files must parse, and are judged with `--down`.
        let is_judged =
            |file: &&ProjectFile| file.role == Role::Reported && file.layout.unlisted && paths.contains(file.named());
        let judged = self.project.files.iter().filter(is_judged).count();
        self.summary = Summary {
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            infos: count(Severity::Info),
            files: self.project.reported_files() + judged,
            unlisted: self.project.unlisted_files() - judged,
            files_with_findings: paths.len(),
            rollbacks: self.project.rollback_files(),
            history_files: self.project.history_files(),
            known: self.known.as_ref().map_or(0, |known| known.findings),
            suppressed: self.suppressed.len(),
            hidden_below_level: self.hidden.below_level,
            hidden_below_confidence: self.hidden.below_confidence,
            configuration: self.project.hiding.clone(),
            skipped: self.project.skipped.len(),
            skipped_by_reason: skipped_by_reason(&self.project.skipped),
            not_checked: self.project.problems.len(),
        };
    }

    /// The names of the rules with findings, each once, in the order of the report.
    pub(crate) fn rules(&self) -> Vec<&'a str> {
        let mut seen = BTreeSet::new();
        let rules = self.findings.iter().map(|finding| finding.diagnostic.rule);
        rules.filter(|rule| seen.insert(*rule)).collect()
    }

    /// The file with the index that diagnostics use.
    pub(crate) fn file(&self, index: u32) -> &'a SourceFile {
        self.project_file(index).shown()
    }

    /// The same with what is known about it.
    pub(crate) fn project_file(&self, index: u32) -> &'a ProjectFile {
        self.files[index as usize]
    }

    pub(crate) fn path(&self, index: u32) -> &'a str {
        self.project_file(index).named()
    }

    /// `path:line:col`.
    pub(crate) fn place(&self, file: u32, range: TextRange) -> String {
        let (start, _) = self.project_file(file).positions(range);
        format!("{}:{}:{}", self.path(file), start.line, start.column)
    }
}

impl<'a> Finding<'a> {
    fn new(
        files: &[&'a ProjectFile],
        diagnostic: &'a Diagnostic,
        reason: Option<&'a str>,
        fingerprint: String,
    ) -> Self {
        let file = files[diagnostic.file as usize];
        let (start, end) = file.positions(diagnostic.range);
        Self {
            diagnostic,
            file,
            path: file.named(),
            start,
            end,
            fingerprint,
            reason,
            fails: false,
            repeats: Vec::new(),
        }
    }

    pub(crate) fn rule(&self) -> Option<&'static RuleMeta> {
        rules::find(self.diagnostic.rule).map(|rule| &rule.meta)
    }

    /// The path from the current folder, as other programs expect it.
    pub(crate) fn relative_path(&self) -> String {
        relative_path(self.path)
    }
}

pub(crate) fn relative_path(path: &str) -> String {
    let current = std::env::current_dir().unwrap_or_default();
    let relative = std::path::Path::new(path).strip_prefix(&current);
    relative.map_or_else(|_| path.to_owned(), |relative| relative.to_string_lossy().replace('\\', "/"))
}

/// The counts at the end of a report.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Summary {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
    pub(crate) infos: usize,
    /// Files that were asked for, without the unlisted ones.
    pub(crate) files: usize,
    /// Files without findings that are not run, because the tool's own list does not name them.
    pub(crate) unlisted: usize,
    pub(crate) files_with_findings: usize,
    /// Files that are treated as rollback migrations because of their names alone.
    pub(crate) rollbacks: usize,
    /// Migrations that were replayed and not reported on.
    pub(crate) history_files: usize,
    /// Findings that the baseline holds back.
    pub(crate) known: usize,
    /// Findings that comments suppress, where they were asked for.
    pub(crate) suppressed: usize,
    /// Findings below the level that is shown.
    pub(crate) hidden_below_level: usize,
    /// Findings below the confidence that is shown.
    pub(crate) hidden_below_confidence: usize,
    /// What configuration hides, besides the files that it excludes.
    pub(crate) configuration: Hiding,
    /// Files with SQL that were found and are skipped.
    pub(crate) skipped: usize,
    /// How many of them for which reason; programs have the list of the files.
    #[serde(skip)]
    pub(crate) skipped_by_reason: String,
    /// Paths that could not be read.
    pub(crate) not_checked: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [(self.errors, "error"), (self.warnings, "warning"), (self.infos, "info")];
        let found: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, noun)| plural(*count, noun)).collect();
        if found.is_empty() {
            write!(f, "No problems found in {}", plural(self.files, "file"))?;
        } else {
            write!(f, "{} in {} of {}", found.join(", "), self.files_with_findings, plural(self.files, "file"))?;
        }
        if self.history_files > 0 {
            write!(f, "; {} replayed, not reported", plural(self.history_files, "earlier migration"))?;
        }
        if self.unlisted > 0 {
            let them = if self.unlisted == 1 { "it" } else { "them" };
            let files = plural(self.unlisted, "file");
            write!(f, "; {files} only parsed, because the migration tool does not run {them} (see pgvet config)")?;
        }
        if self.rollbacks > 0 {
            let files = match self.rollbacks {
                1 => "1 file treated as a rollback migration because of its name".to_owned(),
                count => format!("{count} files treated as rollback migrations because of their names"),
            };
            write!(f, "; {files} (see pgvet config --files)")?;
        }
        if self.known > 0 {
            write!(f, "; {} not shown (in the baseline)", plural(self.known, "finding"))?;
        }
        if self.suppressed > 0 {
            write!(f, "; {} suppressed", self.suppressed)?;
        }
        if self.hidden_below_level > 0 {
            let findings = plural(self.hidden_below_level, "finding");
            write!(f, "; {findings} hidden by severity (show with --level info)")?;
        }
        if self.hidden_below_confidence > 0 {
            let findings = plural(self.hidden_below_confidence, "finding");
            write!(f, "; {findings} hidden by confidence (show with --confidence possible)")?;
        }
        if let Some(settings) = hidden_by(&self.configuration) {
            write!(f, "; pgvet.toml affects this result: {settings} (see pgvet config)")?;
        }
        if self.configuration.only_paths {
            f.write_str("; only `paths` of pgvet.toml searched")?;
        }
        if self.skipped > 0 {
            let reasons = &self.skipped_by_reason;
            write!(f, "; {} skipped: {reasons} (see pgvet config --files)", plural(self.skipped, "file"))?;
        }
        match self.not_checked {
            0 => Ok(()),
            count => write!(f, "; {} not checked", plural(count, "path")),
        }
    }
}

pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A statement on one line, cut.
pub(crate) fn excerpt(sql: &str) -> String {
    const LENGTH: usize = 72;
    let mut line = String::new();
    for word in sql.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&inert::line(word));
        if line.chars().count() > LENGTH {
            return line.chars().take(LENGTH).chain(['…']).collect();
        }
    }
    line
}

/// What configuration hides, in words; `None` if that is nothing.
fn hidden_by(hiding: &Hiding) -> Option<String> {
    let Hiding { before_start, only_paths: _, rules_off, ignored_tables, overrides, placeholders } = hiding;
    let counts = [
        (*before_start, "migration", "not reported because of `start-after`"),
        (*rules_off, "rule", "off"),
        (*ignored_tables, "table", "ignored"),
        (*overrides, "override", ""),
        (*placeholders, "placeholder", "replaced"),
    ];
    let named = counts.iter().filter(|(count, ..)| *count > 0);
    let named = named.map(|(count, noun, what)| format!("{} {what}", plural(*count, noun)).trim_end().to_owned());
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// A range as programs see it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JsonRange {
    #[schemars(with = "json_schema::Position")]
    pub(crate) start: Position,
    #[schemars(with = "json_schema::Position")]
    end: Position,
}

impl JsonRange {
    pub(crate) fn new(file: &SourceFile, range: TextRange) -> Self {
        Self { start: file.position(range.start), end: file.position(range.end) }
    }

    /// The same in the file that a person changes.
    pub(crate) fn of(file: &ProjectFile, range: TextRange) -> Self {
        let (start, end) = file.positions(range);
        Self { start, end }
    }
}

/// The page of a rule.
pub(crate) fn rule_url(rule: &str) -> String {
    rules::find(rule).map(|rule| rule.meta.url()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_in_english() {
        let summary = Summary { errors: 3, warnings: 1, files: 14, files_with_findings: 2, ..Summary::default() };
        assert_eq!(summary.to_string(), "3 errors, 1 warning in 2 of 14 files");
        let clean = Summary { files: 1, not_checked: 2, ..Summary::default() };
        assert_eq!(clean.to_string(), "No problems found in 1 file; 2 paths not checked");
        let adopted = Summary { files: 2, history_files: 40, known: 1, suppressed: 3, ..Summary::default() };
        assert_eq!(
            adopted.to_string(),
            "No problems found in 2 files; 40 earlier migrations replayed, not reported; 1 finding not shown (in the \
             baseline); 3 suppressed"
        );
        let skipped = "2 for tests, 1 with application queries".to_owned();
        let partial = Summary { files: 2, skipped: 3, skipped_by_reason: skipped, ..Summary::default() };
        assert_eq!(
            partial.to_string(),
            "No problems found in 2 files; 3 files skipped: 2 for tests, 1 with application queries (see pgvet config --files)"
        );
        let hidden = Summary { files: 1, hidden_below_level: 2, hidden_below_confidence: 1, ..Summary::default() };
        assert_eq!(
            hidden.to_string(),
            "No problems found in 1 file; 2 findings hidden by severity (show with --level info); \
             1 finding hidden by confidence (show with --confidence possible)"
        );
    }

    #[test]
    fn the_summary_says_what_configuration_hides() {
        let configuration = Hiding {
            before_start: 3,
            only_paths: true,
            rules_off: 2,
            ignored_tables: 1,
            overrides: 1,
            placeholders: 1,
        };
        let summary = Summary { files: 1, configuration, ..Summary::default() };
        assert_eq!(
            summary.to_string(),
            "No problems found in 1 file; pgvet.toml affects this result: 3 migrations not reported because of \
             `start-after`, 2 rules off, 1 table ignored, 1 override, 1 placeholder replaced (see pgvet config); only \
             `paths` of pgvet.toml searched"
        );
    }

    #[test]
    fn statements_are_cut_by_characters() {
        assert_eq!(excerpt("SELECT\n  1"), "SELECT 1");
        assert_eq!(excerpt(&"ä".repeat(100)).chars().count(), 73);
    }
}
