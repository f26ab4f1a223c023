//! Whether an edit of a migration changes what runs.

use crate::config::Config;
use crate::layout::{self, Folders, Layout, Tool};
use pgvet_model::migration::Direction;
use pgvet_syntax::lexer::{TokenKind, tokenize};
use pgvet_syntax::source::TextRange;
use std::path::Path;

/// Returns whether more than comments, white space and guards have changed in the forward part of a file; `None` if nothing has
/// changed, or if the tool has a way to run the new text.
pub(super) fn changes_sql(
    (path, text): (&Path, &str),
    before: &str,
    layout: &Layout,
    folders: &Folders,
    config: &Config,
) -> Option<bool> {
    let lines = |text: &str| text.replace("\r\n", "\n");
    if lines(text) == lines(before) || (layout.tool == Tool::Sqitch && is_reworked(path)) {
        return None;
    }
    let earlier = layout::detect(path, before, folders, config);
    Some(forward_tokens(text, layout) != forward_tokens(before, &earlier))
}

/// The tokens of what runs forward, without what changes nothing for a database on which it succeeds once: the case of
/// words, and guards.
fn forward_tokens(text: &str, layout: &Layout) -> Vec<String> {
    let forward = layout.sections.iter().filter(|section| section.direction == Direction::Up);
    let whole = TextRange { start: 0, end: text.len() as u32 };
    let tokens = forward.flat_map(|section| tokenize(text, section.range.unwrap_or(whole)));
    let words: Vec<String> = tokens
        .map(|token| match token.kind {
            TokenKind::Word => token.text(text).to_ascii_lowercase(),
            _ => token.text(text).to_owned(),
        })
        .collect();
    let mut kept = Vec::with_capacity(words.len());
    let mut rest = words.as_slice();
    while let Some((first, others)) = rest.split_first() {
        let starts = |guard: &&&[&str]| rest.len() >= guard.len() && rest.iter().zip(**guard).all(|(a, b)| a == b);
        let guard = GUARDS.iter().find(starts);
        rest = guard.map_or(others, |guard| &rest[guard.len()..]);
        kept.extend(guard.is_none().then(|| first.clone()));
    }
    kept
}

/// Words that only matter where an object exists, or does not.
const GUARDS: [&[&str]; 3] = [&["if", "not", "exists"], &["if", "exists"], &["or", "replace"]];

/// Whether Sqitch keeps the earlier text of a change beside it, as `sqitch rework` does.
fn is_reworked(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let entries = path.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with(&format!("{stem}@")))
}
