//! Findings for people: those of a group are one entry. Formats for programs list every finding.

use super::{Finding, Report, plural};
use std::cmp::Reverse;
use std::collections::HashMap;

/// How many similar findings an entry shows; `--format concise` lists all of them.
const SHOWN: usize = 5;

/// One entry of a report: a finding, and those that are similar to it.
#[derive(Debug)]
pub(crate) struct Entry<'r, 'a> {
    /// The first of the most severe.
    pub(crate) finding: &'r Finding<'a>,
    /// In the order of the report.
    pub(crate) similar: Vec<&'r Finding<'a>>,
}

impl<'r, 'a> Entry<'r, 'a> {
    /// Folds the findings of each group, in the order in which the groups begin.
    pub(crate) fn of(report: &'r Report<'a>) -> Vec<Self> {
        let mut groups: Vec<Vec<&Finding<'a>>> = Vec::new();
        let mut known: HashMap<(&str, u32), usize> = HashMap::new();
        for finding in &report.findings {
            let at = *known.entry(group(finding)).or_insert(groups.len());
            if at == groups.len() {
                groups.push(Vec::new());
            }
            groups[at].push(finding);
        }
        groups.into_iter().filter_map(Self::fold).collect()
    }

    fn fold(mut findings: Vec<&'r Finding<'a>>) -> Option<Self> {
        let most_severe = |(at, finding): &(usize, &&Finding<'_>)| (Reverse(finding.diagnostic.severity), *at);
        let (at, _) = findings.iter().enumerate().min_by_key(most_severe)?;
        let finding = findings.remove(at);
        let repeats = finding.repeats.iter();
        Some(Self { finding, similar: repeats.chain(findings.into_iter().flat_map(Finding::with_repeats)).collect() })
    }

    /// How many findings are similar; `None` if none is.
    pub(crate) fn title(&self) -> Option<String> {
        (!self.similar.is_empty()).then(|| format!("{}:", plural(self.similar.len(), "similar finding")))
    }

    /// The place and the message of each similar finding that is shown, as their files have them.
    pub(crate) fn shown(&self, report: &Report<'_>) -> impl Iterator<Item = (String, &'r str)> {
        self.similar.iter().take(SHOWN).map(|finding| {
            let found = finding.diagnostic;
            (report.place(found.file, found.range), found.message.as_str())
        })
    }

    /// How many similar findings are not shown; `None` if all are.
    pub(crate) fn rest(&self) -> Option<String> {
        let rest = self.similar.len().saturating_sub(SHOWN);
        (rest > 0).then(|| format!("and {rest} more (--format concise lists them)"))
    }
}

/// The key that the findings of a group share: the rule and the file.
fn group<'a>(finding: &Finding<'a>) -> (&'a str, u32) {
    (finding.diagnostic.rule, finding.diagnostic.file)
}

impl Finding<'_> {
    /// Names its group for programs: the rule and the path.
    pub(crate) fn group(&self) -> String {
        format!("{}:{}", self.diagnostic.rule, self.relative_path())
    }
}
