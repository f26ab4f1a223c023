//! Every range of a value, whatever its type: ranges print themselves as `3..8`.

use pgvet_syntax::source::TextRange;
use std::fmt::Debug;

/// Panics unless every range in `value` lies in `text`, between characters.
#[track_caller]
pub(crate) fn assert_inside(text: &str, value: &impl Debug) {
    let shown = format!("{value:?}");
    for range in all(&shown) {
        assert!(text.get(range.as_usize()).is_some(), "{range:?} is no range of {text:?}, in {shown}");
    }
}

/// The ranges in the output of `Debug`, without texts in quotes.
fn all(shown: &str) -> Vec<TextRange> {
    // A character in quotes must not begin a text.
    let plain = shown.replace(r#"'"'"#, "").replace(r"\\", "").replace(r#"\""#, "");
    let words = plain.split('"').step_by(2).flat_map(|part| part.split(|c: char| !c.is_ascii_digit() && c != '.'));
    let range = |word: &str| {
        let (start, end) = word.split_once("..")?;
        Some(TextRange::new(start.parse().ok()?, end.parse().ok()?))
    };
    words.filter_map(range).collect()
}
