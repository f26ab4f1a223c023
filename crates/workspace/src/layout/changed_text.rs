//! What a tool sends in place of the text of a file.

use super::{annotations, delimiter, flyway};
use pgvet_syntax::source::TextRange;
use std::path::Path;

/// Parts of a text that the tool changes before it sends them, with what it sends.
pub(crate) fn sent_otherwise(path: &Path, text: &str) -> Vec<(TextRange, &'static str)> {
    let mut changed = annotations::play_escapes(text);
    changed.extend(delimiter::delimiters(text));
    changed.extend(flyway::dropped_spaces(path, text));
    changed
}
