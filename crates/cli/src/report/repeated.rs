//! Findings that say the same as another one: it comes with their places, and they are no findings of their own.

use super::{Finding, Report, plural};
use pgvet_linter::cause::Cause;
use pgvet_linter::confidence::Confidence;
use pgvet_linter::severity::Severity;
use pgvet_model::version::PgVersion;
use pgvet_syntax::source::TextRange;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

/// What findings that are shown as one have in common.
#[derive(PartialEq, Eq, Hash)]
enum Common<'a> {
    Cause(Cause),
    Message(&'a str),
    /// The statement has the same effect on several objects here.
    Place(TextRange),
}

/// The rule, the file if it matters, and what they have in common.
type Key<'a> = (&'a str, Option<u32>, Common<'a>, &'a [PgVersion]);

impl<'a> Report<'a> {
    /// Leaves of the findings with the same cause, or at the same place, the first of the surest and most severe. It takes
    /// the others along. This is the last step: a comment or the baseline concerns each of them.
    #[must_use]
    pub(crate) fn folded(mut self) -> Self {
        let mut groups: Vec<Vec<Finding<'a>>> = Vec::new();
        let mut known: HashMap<Key<'a>, usize> = HashMap::new();
        for finding in std::mem::take(&mut self.findings) {
            let at = *known.entry(key(&finding)).or_insert(groups.len());
            if at == groups.len() {
                groups.push(Vec::new());
            }
            groups[at].push(finding);
        }
        self.findings = groups.into_iter().filter_map(fold).collect();
        self.findings.sort_by_key(|finding| (finding.diagnostic.file, finding.diagnostic.range));
        self.summarize();
        self
    }
}

fn key<'a>(finding: &Finding<'a>) -> Key<'a> {
    let found = finding.diagnostic;
    let common = match found.cause {
        Some(Cause::Message) => Common::Message(&found.message),
        Some(cause) => Common::Cause(cause),
        None => Common::Place(found.range),
    };
    let spans_files = found.cause.is_some_and(|cause| cause.spans_files());
    (found.rule, (!spans_files).then_some(found.file), common, &found.pg_versions)
}

fn fold(mut findings: Vec<Finding<'_>>) -> Option<Finding<'_>> {
    let weight = |finding: &Finding<'_>| -> Reverse<(Confidence, Severity)> {
        Reverse((finding.diagnostic.confidence, finding.diagnostic.severity))
    };
    let (at, _) = findings.iter().enumerate().min_by_key(|(at, finding)| (weight(finding), *at))?;
    let mut first = findings.remove(at);
    first.fails |= findings.iter().any(|finding| finding.fails);
    first.repeats = findings;
    Some(first)
}

impl Finding<'_> {
    /// The message, with how often it holds.
    pub(crate) fn message(&self) -> Cow<'_, str> {
        let message = &self.diagnostic.message;
        match self.repeated() {
            Some(repeated) => Cow::Owned(format!("{message} (and {repeated})")),
            None => Cow::Borrowed(message),
        }
    }

    /// The message with the next step, in plain text.
    pub(crate) fn message_with_help(&self) -> String {
        self.diagnostic.with_help(&self.message())
    }

    fn repeated(&self) -> Option<String> {
        if self.repeats.is_empty() {
            return None;
        }
        let is_here = |finding: &Finding<'_>| finding.diagnostic.range == self.diagnostic.range;
        let what = if self.repeats.iter().all(is_here) { "more object" } else { "more place" };
        Some(plural(self.repeats.len(), what))
    }

    /// The finding, and those that it stands for.
    pub(crate) fn with_repeats(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.repeats)
    }
}
