//! What a tool sends in place of the text of a file.

use super::{Folders, Tool, annotations, delimiter, detect, flyway};
use crate::config::Config;
use pgvet_syntax::source::TextRange;
use std::path::Path;

/// Parts of a text that the tool changes before it sends them, with what it sends.
pub(crate) fn sent_otherwise(
    path: &Path,
    text: &str,
    folders: &Folders,
    config: &Config,
) -> Vec<(TextRange, &'static str)> {
    let mut changed = annotations::play_escapes(text);
    changed.extend(delimiter::delimiters(text));
    changed.extend(flyway::dropped_spaces(path, text));
    let parentheses = flyway::dropped_parentheses(path, text);
    // Other tools read files with such names as well, and send the whole text.
    if !parentheses.is_empty() && detect(path, text, folders, config).tool == Tool::Flyway {
        changed.extend(parentheses);
    }
    changed
}
