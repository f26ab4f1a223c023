//! How many findings each rule has, in place of the findings.

use super::{Report, plural};
use crate::style::Style;
use pgvet_linter::meta::Category;
use pgvet_linter::severity::Severity;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// The findings of one rule with one severity.
#[derive(Debug, Serialize)]
struct Count<'a> {
    rule: &'a str,
    category: Option<Category>,
    severity: Severity,
    findings: usize,
    files: usize,
    /// How many of them offer a fix.
    fixable: usize,
}

/// The most frequent first.
fn counts<'a>(report: &Report<'a>) -> Vec<Count<'a>> {
    let mut by_rule: BTreeMap<(&str, Severity), Vec<&super::Finding<'a>>> = BTreeMap::new();
    for finding in &report.findings {
        by_rule.entry((finding.diagnostic.rule, finding.diagnostic.severity)).or_default().push(finding);
    }
    let count = |((rule, severity), findings): ((&'a str, Severity), Vec<&super::Finding<'a>>)| Count {
        rule,
        category: findings.first().and_then(|finding| finding.rule()).map(|rule| rule.category),
        severity,
        findings: findings.len(),
        files: findings.iter().map(|finding| finding.path).collect::<BTreeSet<_>>().len(),
        fixable: findings.iter().filter(|finding| !finding.diagnostic.fixes.is_empty()).count(),
    };
    let mut counts: Vec<Count<'a>> = by_rule.into_iter().map(count).collect();
    counts.sort_by(|one, other| other.findings.cmp(&one.findings).then_with(|| one.rule.cmp(other.rule)));
    counts
}

pub(crate) fn write(report: &Report<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let counts = counts(report);
    let width = counts.iter().map(|count| count.rule.len()).max().unwrap_or(0);
    for count in &counts {
        let severity = style.severity(count.severity, &format!("{:7}", count.severity.as_str()));
        let fixable = if count.fixable > 0 { format!(", {} with a fix", count.fixable) } else { String::new() };
        let files = plural(count.files, "file");
        writeln!(out, "{:6}  {severity}  {:width$}  in {files}{fixable}", count.findings, count.rule)?;
    }
    if report.is_quiet {
        return Ok(());
    }
    if !counts.is_empty() {
        writeln!(out)?;
    }
    writeln!(out, "{}", report.summary)?;
    report.remedies().iter().try_for_each(|line| writeln!(out, "{line}"))
}

pub(crate) fn write_json(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let document = serde_json::json!({ "schema_version": 1, "statistics": counts(report), "summary": report.summary });
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}
