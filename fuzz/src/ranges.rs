//! Every range of a value, whatever its type: ranges print themselves as `3..8`.

use pgvet_linter::source::TextRange;
use std::fmt::Debug;

/// Panics unless every range in `value` lies in `text`, between characters.
#[track_caller]
pub(crate) fn assert_inside(text: &str, value: &impl Debug) {
    let shown = format!("{value:?}");
    for range in all(&shown) {
        assert!(text.get(range.as_usize()).is_some(), "{range:?} is no range of {text:?}, in {shown}");
    }
}

/// The ranges in what `Debug` writes, texts in quotes left out.
fn all(shown: &str) -> impl Iterator<Item = TextRange> {
    // A character in quotes must not begin a text.
    let plain = shown.replace(r#"'"'"#, "").replace(r"\\", "").replace(r#"\""#, "");
    let outside: String = plain.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let words: Vec<String> = outside
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .filter(|word| word.contains(".."))
        .map(str::to_owned)
        .collect();
    words.into_iter().filter_map(|word| {
        let (start, end) = word.split_once("..")?;
        Some(TextRange::new(start.parse().ok()?, end.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_and_texts_are_not() {
        let value = (TextRange::new(1, 2), r#"a "3..4" \"#, '"', Some(TextRange::at(5)));
        assert_eq!(all(&format!("{value:?}")).collect::<Vec<_>>(), [TextRange::new(1, 2), TextRange::at(5)]);
    }
}
