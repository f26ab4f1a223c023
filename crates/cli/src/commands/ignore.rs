//! `pgvet check --add-ignore`: a comment before each statement with findings, which suppresses them.

use super::{baseline, fix};
use crate::args::CheckArgs;
use crate::error::Failure;
use crate::inert;
use crate::report::{Finding, Report, plural};
use crate::style::Style;
use pgvet_linter::fix::{Applicability, Fix, apply};
use pgvet_linter::meta::Category;
use pgvet_workspace::{Change, Project, suppression, write_changes};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Whether the comments were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    /// They are in the files, and in the project.
    Written,
    /// They are shown only.
    Shown,
}

/// Rules of the findings of each statement, by the index of the file and where the statement begins.
type Statements<'a> = BTreeMap<usize, BTreeMap<u32, BTreeSet<&'a str>>>;

/// Writes the comments, or shows them with `--diff`.
pub(super) fn run(args: &CheckArgs, reason: &str, project: &mut Project, out: &mut dyn Write) -> Result<Done, Failure> {
    if args.input.paths.iter().any(|path| path.as_os_str() == "-") {
        return Err(Failure::new("standard input cannot be changed"));
    }
    let outcome = super::check(project, &|config| args.settings(config));
    let mut report = Report::new(project, &outcome);
    if let Some(baseline) = baseline::known(project, &args.baseline, &|config| args.settings(config))? {
        report = report.without_known(&baseline);
    }
    let statements = statements(project, &report);
    let count = statements.values().map(BTreeMap::len).sum();
    let mut changes = Vec::new();
    for (index, starts) in statements {
        let file = &project.files[index];
        let before = file.shown().text.clone();
        let comments = starts.iter().map(|(start, rules)| {
            let rules: Vec<&str> = rules.iter().copied().collect();
            let edits = vec![suppression(&before, *start, &rules, reason)];
            Fix { title: "suppress it".to_owned(), applicability: Applicability::Safe, edits }
        });
        let after = apply(&before, &comments.collect::<Vec<_>>()).text;
        changes.push((index, Change { path: file.path.clone(), before, after }));
    }
    if args.fix.diff {
        let style = Style::new(args.input.color);
        inert::through_if_seen(out, |out| changes.iter().try_for_each(|(_, one)| fix::write_change(one, style, out)))?;
        return Ok(Done::Shown);
    }
    let (indexes, changes): (Vec<usize>, Vec<Change>) = changes.into_iter().unzip();
    write_changes(&changes).map_err(|problem| Failure::from(&problem))?;
    if !changes.is_empty() {
        let (comments, files) = (plural(count, "suppression"), plural(changes.len(), "file"));
        writeln!(io::stderr().lock(), "Wrote {comments} to {files}")?;
    }
    for (index, change) in indexes.into_iter().zip(changes) {
        project.replace_text(index, change.after);
    }
    Ok(Done::Written)
}

fn statements<'a>(project: &Project, report: &Report<'a>) -> Statements<'a> {
    let indexes = project.file_indexes();
    let mut statements = Statements::new();
    for finding in report.findings.iter().filter(|finding| can_be_suppressed(finding)) {
        let found = finding.diagnostic;
        let start = if found.statement.is_empty() { found.range.start } else { found.statement.start };
        let of_file = statements.entry(indexes[found.file as usize]).or_default();
        of_file.entry(start).or_default().insert(found.rule);
    }
    statements
}

/// Comments suppress no findings about the text itself, and files with other encodings, or that are gone, are not written.
fn can_be_suppressed(finding: &Finding<'_>) -> bool {
    let is_written = finding.file.encoding.is_none() && !finding.file.is_removed();
    finding.rule().is_some_and(|rule| rule.category != Category::Engine) && is_written
}
