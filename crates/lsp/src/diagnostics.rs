//! Findings as diagnostics of the protocol.

use crate::analysis::Analysis;
use crate::client::Client;
use crate::document::Document;
use crate::uri;
use lsp_types::{
    CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, Location,
    NumberOrString, Position, Range, Uri,
};
use pgvet_linter::diagnostic::{Diagnostic as Finding, Label};
use pgvet_linter::rules;
use pgvet_linter::rules::engine::unused_suppression;
use pgvet_linter::severity::Severity;
use pgvet_syntax::source::LineIndex;
use pgvet_workspace::config::ConfigError;
use pgvet_workspace::{ProjectFile, inert};
use std::str::FromStr;

pub(crate) const SOURCE: &str = "pgvet";

/// Everything that was found in a document.
pub(crate) fn all(analysis: &Analysis, document: &Document, uri: &Uri, client: Client) -> Vec<Diagnostic> {
    let files = analysis.open().project().files_of_migrations();
    let places = Places { analysis, files, document, uri, client };
    analysis.findings().iter().map(|finding| places.diagnostic(finding)).collect()
}

/// Finds places in the files that labels name.
struct Places<'a> {
    analysis: &'a Analysis,
    /// The files by the indexes that findings use.
    files: Vec<&'a ProjectFile>,
    document: &'a Document,
    uri: &'a Uri,
    client: Client,
}

impl Places<'_> {
    fn diagnostic(&self, finding: &Finding) -> Diagnostic {
        let labels = if self.client.related_information { finding.labels.as_slice() } else { &[] };
        let related: Vec<_> = labels.iter().filter_map(|label| self.related(label)).collect();
        Diagnostic {
            range: self.document.range(finding.range),
            severity: Some(severity(finding.severity)),
            code: Some(NumberOrString::String(finding.rule.to_owned())),
            code_description: self.client.code_description.then(|| page(finding.rule)).flatten(),
            source: Some(SOURCE.to_owned()),
            message: inert::lines(&finding.message_with_help()),
            related_information: (!related.is_empty()).then_some(related),
            tags: finding.is_of(&unused_suppression::RULE.meta).then(|| vec![DiagnosticTag::UNNECESSARY]),
            data: None,
        }
    }

    fn related(&self, label: &Label) -> Option<DiagnosticRelatedInformation> {
        let file = *self.files.get(label.file as usize)?;
        let is_own = self.analysis.open().file().is_some_and(|own| std::ptr::eq(own, file));
        let location = if is_own {
            Location::new(self.uri.clone(), self.document.range(label.range))
        } else {
            let shown = file.shown();
            let position = |offset| self.client.encoding.position(shown.lines(), &shown.text, offset);
            let range = Range::new(position(label.range.start), position(label.range.end));
            Location::new(uri::from_path(&file.path)?, range)
        };
        Some(DiagnosticRelatedInformation { location, message: inert::lines(&label.message) })
    }
}

fn severity(severity: Severity) -> DiagnosticSeverity {
    match severity {
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
        Severity::Info => DiagnosticSeverity::INFORMATION,
    }
}

/// The page of a rule.
fn page(rule: &str) -> Option<CodeDescription> {
    let href = Uri::from_str(&rules::find(rule)?.meta.url()).ok()?;
    Some(CodeDescription { href })
}

/// Returns the error of a configuration file, at its place in that file.
pub(crate) fn of_config(error: &ConfigError, client: Client) -> Diagnostic {
    let lines = LineIndex::new(&error.text);
    let position = |offset: usize| client.encoding.position(&lines, &error.text, offset as u32);
    let start = Position::new(0, 0);
    let range = error
        .span
        .as_ref()
        .map_or(Range::new(start, start), |span| Range::new(position(span.start), position(span.end)));
    let message = match &error.help {
        Some(help) => format!("{}\n\nhelp: {help}", error.message),
        None => error.message.clone(),
    };
    Diagnostic {
        range,
        severity: Some(DiagnosticSeverity::ERROR),
        code: Some(NumberOrString::String("configuration".to_owned())),
        source: Some(SOURCE.to_owned()),
        message: inert::lines(&message),
        ..Diagnostic::default()
    }
}
