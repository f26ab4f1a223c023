//! Text of a checkout in which nothing acts on its reader: a checkout chooses names and SQL.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character does something, or hides, instead of being seen: control characters, those that change the
/// direction of text, line separators, and those without width.
pub fn acts(character: char) -> bool {
    match character {
        '\t' | '\n' => false,
        '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control(),
    }
}

/// A text on one line: a name may hold line breaks.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |character| !acts(character) && !matches!(character, '\n' | '\t'))
}

/// A text of several lines, with its line breaks and tabs.
pub fn lines_and_tabs(text: &str) -> Cow<'_, str> {
    escaped(text, |character| !acts(character))
}

fn escaped(text: &str, is_shown: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&is_shown) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_shown(character) {
            shown.push(character);
        } else {
            // Writing into a text cannot fail.
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        }
    }
    Cow::Owned(shown)
}

/// The same for a text of several lines.
pub fn lines(text: &str) -> String {
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown_as_text() {
        assert_eq!(line("a\x1b[2J\n\u{202e}b\t"), "a\\u{1b}[2J\\u{a}\\u{202e}b\\u{9}");
        assert_eq!(lines("a\r\nb\u{feff}"), "a\\u{d}\nb\\u{feff}");
        assert!(matches!(line("é 漢 – x::int"), Cow::Borrowed(_)));
    }
}
