//! Names of rules in suppressions.

use crate::document::Document;
use crate::markup::markup;
use lsp_types::{CompletionItem, CompletionItemKind, CompletionTextEdit, Documentation, TextEdit};
use pgvet_linter::meta::Category;
use pgvet_linter::rules;
use pgvet_syntax::source::TextRange;

/// Characters after which a client asks.
pub(crate) const TRIGGERS: [&str; 3] = ["[", ",", ":"];

pub(crate) fn at(document: &Document, offset: u32, shows_markdown: bool) -> Vec<CompletionItem> {
    let line = document.line(offset);
    let before = document.slice(TextRange::new(line.start, offset));
    let Some(directive) = before.rfind("pgvet:").map(|at| &before[at + "pgvet:".len()..]) else { return Vec::new() };
    match directive.split_once('[') {
        None => directives(document, directive, offset),
        Some((_, list)) if !list.contains(']') => names(document, list, offset, shows_markdown),
        Some(_) => Vec::new(),
    }
}

/// `ignore[` and `ignore-file[`.
fn directives(document: &Document, typed: &str, offset: u32) -> Vec<CompletionItem> {
    let typed = typed.trim_start();
    if typed.contains(char::is_whitespace) {
        return Vec::new();
    }
    let range = document.range(TextRange::new(offset - typed.len() as u32, offset));
    let item = |(directive, detail): (&str, &str)| CompletionItem {
        label: directive.to_owned(),
        kind: Some(CompletionItemKind::KEYWORD),
        detail: Some(detail.to_owned()),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit::new(range, format!("{directive}[")))),
        ..CompletionItem::default()
    };
    let directives = [("ignore", "for this statement"), ("ignore-file", "for this file")];
    directives.into_iter().filter(|(directive, _)| directive.starts_with(typed)).map(item).collect()
}

fn names(document: &Document, list: &str, offset: u32, shows_markdown: bool) -> Vec<CompletionItem> {
    let typed = list.rsplit(',').next().unwrap_or_default().trim_start();
    let others: Vec<&str> = list.split(',').map(str::trim).collect();
    let range = document.range(TextRange::new(offset - typed.len() as u32, offset));
    let can_be_suppressed = rules::all()
        .iter()
        .map(|rule| &rule.meta)
        .filter(|rule| rule.category != Category::Engine && (!others.contains(&rule.name) || typed == rule.name));
    let item = |rule: &pgvet_linter::meta::RuleMeta| CompletionItem {
        label: rule.name.to_owned(),
        kind: Some(CompletionItemKind::VALUE),
        detail: Some(format!("{}, {}", rule.category.as_str(), rule.severity.as_str())),
        documentation: Some(Documentation::MarkupContent(markup(rule.summary(), shows_markdown))),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit::new(range, rule.name.to_owned()))),
        ..CompletionItem::default()
    };
    can_be_suppressed.map(item).collect()
}
