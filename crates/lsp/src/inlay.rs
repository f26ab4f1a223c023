//! The strongest lock of a statement, at the end of its line.

use crate::analysis::Analysis;
use crate::document::Document;
use lsp_types::{InlayHint, InlayHintLabel, Position};
use pgvet_model::effect::Effects;
use pgvet_syntax::ast::LockMode;
use pgvet_syntax::source::TextRange;
use pgvet_workspace::inert;

pub(crate) fn hints(analysis: &Analysis, document: &Document, wanted: TextRange) -> Vec<InlayHint> {
    let visible = analysis
        .statements()
        .filter(|statement| statement.range.start <= wanted.end && wanted.start <= statement.range.end);
    let hint = |effects: &Effects, end: u32| {
        let label = label(effects)?;
        let position: Position = document.position(document.line(end).end);
        Some(InlayHint {
            position,
            label: InlayHintLabel::String(label),
            kind: None,
            text_edits: None,
            tooltip: None,
            padding_left: Some(true),
            padding_right: None,
            data: None,
        })
    };
    visible.filter_map(|statement| hint(statement.run.effects, statement.range.end)).collect()
}

/// `ACCESS EXCLUSIVE orders · rewrites`; nothing where nobody else is concerned.
fn label(effects: &Effects) -> Option<String> {
    let exposed = |name: &str| {
        effects.locks.iter().any(|lock| lock.relation.visibility.is_exposed() && lock.relation.to_string() == name)
    };
    let locks = effects.strongest_locks();
    let mut strong = locks.iter().filter(|(_, mode)| *mode >= LockMode::ShareUpdateExclusive);
    let (relation, mode) = strong.find(|(relation, _)| exposed(&relation.to_string()))?;
    let schema = if relation.schema == "public" { String::new() } else { format!("{}.", relation.schema) };
    let mut label = format!("{} {schema}{}", mode.sql(), relation.name);
    let work = [
        (!effects.rewrites.is_empty(), "rewrites"),
        (effects.rewrites.is_empty() && !effects.scans.is_empty(), "scans"),
        (effects.rewrites.is_empty() && !effects.index_builds.is_empty(), "builds an index"),
        (effects.fails.is_some(), "fails"),
    ];
    for (_, word) in work.into_iter().filter(|(is_done, _)| *is_done) {
        label.push_str(" · ");
        label.push_str(word);
    }
    Some(inert::line(&label).into_owned())
}
