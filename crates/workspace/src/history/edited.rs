//! Whether an edit of a migration changes what runs.

use crate::config::Config;
use crate::layout::{self, Folders, Layout, Tool};
use pgvet_model::migration::Direction;
use pgvet_syntax::lexer::tokenize;
use pgvet_syntax::source::TextRange;
use std::path::Path;

/// Returns whether more than comments and white space have changed in the forward part of a file; `None` if nothing has
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

/// The tokens of what runs forward.
fn forward_tokens<'t>(text: &'t str, layout: &Layout) -> Vec<&'t str> {
    let forward = layout.sections.iter().filter(|section| section.direction == Direction::Up);
    let whole = TextRange { start: 0, end: text.len() as u32 };
    let tokens = forward.flat_map(|section| tokenize(text, section.range.unwrap_or(whole)));
    tokens.map(|token| token.text(text)).collect()
}

/// Whether Sqitch keeps the earlier text of a change beside it, as `sqitch rework` does.
fn is_reworked(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let entries = path.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with(&format!("{stem}@")))
}
