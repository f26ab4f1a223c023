//! Characters that do something where text is shown: a checkout chooses names and SQL, and nobody's screen or program must
//! obey them.

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

/// Returns the text with such characters written out: `\u{202e}`.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if acts(character) {
            // Writing into a text cannot fail.
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_written_out() {
        assert_eq!(visible("a\n\té\u{1b}[2J\u{202e}\u{e0041}"), "a\n\té\\u{1b}[2J\\u{202e}\\u{e0041}");
    }
}
