//! Actions for a finding.

use crate::analysis::Analysis;
use crate::diagnostics::SOURCE;
use crate::document::Document;
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionParams, Diagnostic, NumberOrString, TextEdit, Uri, WorkspaceEdit,
};
use pgvet_linter::diagnostic::Diagnostic as Finding;
use pgvet_linter::fix::{Applicability, Edit, Fix, apply};
use pgvet_linter::meta::Category;
use pgvet_linter::rules;
use pgvet_syntax::source::TextRange;
use pgvet_workspace::{inert, suppression};
use std::collections::HashMap;

pub(crate) const FIX_ALL: &str = "source.fixAll.pgvet";

/// The kinds of actions that there are.
pub(crate) fn kinds() -> Vec<CodeActionKind> {
    vec![CodeActionKind::QUICKFIX, CodeActionKind::REFACTOR, CodeActionKind::from(FIX_ALL)]
}

pub(crate) fn actions(
    analysis: &Analysis,
    document: &Document,
    uri: &Uri,
    params: &CodeActionParams,
) -> Vec<CodeAction> {
    let actions = Actions { document, uri, given: &params.context.diagnostics };
    let wanted = |kind: &str| {
        let only = params.context.only.as_deref();
        only.is_none_or(|only| only.iter().any(|asked| is_within(kind, asked.as_str())))
    };
    let asked = document.text_range(params.range);
    let touches = |finding: &&Finding| finding.range.start <= asked.end && asked.start <= finding.range.end;
    let mut found = Vec::new();
    for finding in analysis.findings().iter().filter(touches) {
        if wanted(CodeActionKind::QUICKFIX.as_str()) {
            found.extend(finding.fixes.iter().filter_map(|fix| actions.fix(finding, fix)));
            found.extend(actions.ignore(finding));
        }
        if wanted(CodeActionKind::REFACTOR.as_str()) {
            found.extend(actions.sequence(finding));
        }
    }
    if wanted(FIX_ALL) {
        found.extend(actions.fix_all(analysis.findings()));
    }
    found
}

/// Whether a kind of action is the requested one, or a kind of it.
fn is_within(kind: &str, asked: &str) -> bool {
    kind.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || asked.is_empty())
}

struct Actions<'a> {
    document: &'a Document,
    uri: &'a Uri,
    /// The diagnostics that the client asks about.
    given: &'a [Diagnostic],
}

impl Actions<'_> {
    fn fix(&self, finding: &Finding, fix: &Fix) -> Option<CodeAction> {
        if fix.applicability == Applicability::DisplayOnly {
            return None;
        }
        let is_safe = fix.applicability == Applicability::Safe;
        let note = if is_safe { "" } else { " (check the result)" };
        Some(CodeAction {
            title: inert::line(&format!("pgvet: {}{note}", fix.title)).into_owned(),
            kind: Some(CodeActionKind::QUICKFIX),
            is_preferred: Some(is_safe),
            ..self.action(finding, self.edits(fix))
        })
    }

    /// The statements that can replace this one, in a comment after it. `pgvet rewrite` makes files of them.
    fn sequence(&self, finding: &Finding) -> Option<CodeAction> {
        if finding.steps.is_empty() {
            return None;
        }
        let mut text = String::from("\n-- Safer steps that do not block for long, each in a transaction of its own:\n");
        for step in &finding.steps {
            let note = step.note.iter().map(|note| format!("({note})"));
            let sql = format!("{};", step.sql);
            for line in note.chain([sql]).flat_map(|part| part.lines().map(str::to_owned).collect::<Vec<_>>()) {
                text.push_str(format!("--     {line}").trim_end());
                text.push('\n');
            }
        }
        let end = self.document.line(finding.statement.end).end;
        let text = text.trim_end().replace('\n', self.document.line_end());
        let edit = TextEdit::new(self.document.range(TextRange::at(end)), text);
        Some(CodeAction {
            title: "pgvet: show the safer statements below, as a comment".to_owned(),
            kind: Some(CodeActionKind::REFACTOR),
            ..self.action(finding, vec![edit])
        })
    }

    /// A comment before the statement. The reason is the author's to write: where the project asks for one, the comment is
    /// reported until it has one.
    fn ignore(&self, finding: &Finding) -> Option<CodeAction> {
        let rule = &rules::find(finding.rule)?.meta;
        if rule.category == Category::Engine {
            return None;
        }
        let start = if finding.statement.is_empty() { finding.range.start } else { finding.statement.start };
        let edit = suppression(self.document.text(), start, &[rule.name], "");
        let text = edit.text.replace('\n', self.document.line_end());
        let edit = TextEdit::new(self.document.range(edit.range), text);
        Some(CodeAction {
            title: format!("pgvet: ignore {} here", rule.name),
            kind: Some(CodeActionKind::QUICKFIX),
            ..self.action(finding, vec![edit])
        })
    }

    /// All safe fixes that do not touch each other: one round of `pgvet check --fix`.
    fn fix_all(&self, findings: &[Finding]) -> Option<CodeAction> {
        let is_safe = |fix: &&Fix| fix.applicability == Applicability::Safe;
        let fixes: Vec<&Fix> = findings.iter().flat_map(|finding| finding.fixes.iter().filter(is_safe)).collect();
        let made = apply(self.document.text(), fixes.iter().copied()).made;
        let edits: Vec<TextEdit> = made.into_iter().flat_map(|at| self.edits(fixes[at])).collect();
        (!edits.is_empty()).then(|| CodeAction {
            title: "pgvet: apply all safe fixes".to_owned(),
            kind: Some(CodeActionKind::from(FIX_ALL)),
            edit: Some(self.workspace_edit(edits)),
            ..CodeAction::default()
        })
    }

    fn action(&self, finding: &Finding, edits: Vec<TextEdit>) -> CodeAction {
        let is_same = |given: &&Diagnostic| {
            given.source.as_deref() == Some(SOURCE)
                && given.code == Some(NumberOrString::String(finding.rule.to_owned()))
                && given.range == self.document.range(finding.range)
        };
        let diagnostics: Vec<Diagnostic> = self.given.iter().filter(is_same).cloned().collect();
        CodeAction {
            diagnostics: (!diagnostics.is_empty()).then_some(diagnostics),
            edit: Some(self.workspace_edit(edits)),
            ..CodeAction::default()
        }
    }

    fn edits(&self, fix: &Fix) -> Vec<TextEdit> {
        let new_text = |text: &str| text.replace('\n', self.document.line_end());
        let edit = |edit: &Edit| TextEdit::new(self.document.range(edit.range), new_text(&edit.text));
        fix.edits.iter().map(edit).collect()
    }

    fn workspace_edit(&self, edits: Vec<TextEdit>) -> WorkspaceEdit {
        WorkspaceEdit::new(HashMap::from([(self.uri.clone(), edits)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_holds_the_kinds_below_it() {
        for asked in ["", "source", "source.fixAll", "source.fixAll.pgvet"] {
            assert!(is_within(FIX_ALL, asked), "{asked}");
        }
        for asked in ["quickfix", "source.fix", "source.fixAll.pgvet.more"] {
            assert!(!is_within(FIX_ALL, asked), "{asked}");
        }
    }
}
