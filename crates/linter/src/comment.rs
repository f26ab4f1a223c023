//! Comments that speak to pgvet: `-- pgvet: ...`.

use pgvet_syntax::source::TextRange;

/// How they begin.
pub(crate) const MARK: &str = "pgvet:";

/// The text of a comment without its signs.
pub(crate) fn inner(text: &str, comment: TextRange) -> Option<&str> {
    let inner = text.get(comment.as_usize())?;
    let inner = inner.strip_prefix("--").or_else(|| inner.strip_prefix("/*"))?.trim_start();
    Some(inner.strip_suffix("*/").unwrap_or(inner).trim_end())
}

/// What a comment says to pgvet.
pub(crate) fn directive(text: &str, comment: TextRange) -> Option<&str> {
    inner(text, comment)?.strip_prefix(MARK).map(str::trim_start)
}
