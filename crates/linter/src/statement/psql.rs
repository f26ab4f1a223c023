//! What psql reads itself: backslash commands and the data of COPY.

use crate::lexer::Token;
use crate::source::TextRange;

/// The end of the backslash command that begins at `start`; `None` when the backslash is just a wrong character.
pub(super) fn command_end(text: &str, start: usize) -> Option<usize> {
    let rest = &text[start..];
    let first = *rest.as_bytes().get(1)?;
    match first {
        // `\;` separates statements; the rest of the line is SQL again.
        b';' => Some(start + 2),
        b'a'..=b'z' | b'A'..=b'Z' | b'.' | b'!' | b'?' | b'\\' => {
            Some(start + rest.find(['\n', '\r']).map_or(rest.trim_end().len(), |end| rest[..end].trim_end().len()))
        }
        _ => None,
    }
}

/// Does this statement make psql read data from the lines after it?
pub(super) fn copies_from_stdin(text: &str, tokens: &[Token]) -> bool {
    tokens.first().is_some_and(|token| token.is_keyword(text, "COPY"))
        && tokens.windows(2).any(|pair| pair[0].is_keyword(text, "FROM") && pair[1].is_keyword(text, "STDIN"))
}

/// Does this `\copy` make psql read data from the lines after it?
pub(super) fn command_copies_from_stdin(command: &str) -> bool {
    let mut words = command.split_ascii_whitespace().map(str::to_ascii_lowercase);
    words.next().is_some_and(|word| word == "\\copy") && {
        let words: Vec<_> = words.collect();
        words.windows(2).any(|pair| pair[0] == "from" && pair[1] == "stdin")
    }
}

/// The lines of data that follow `after`, with the line `\.`, and whether that line was there. `None` when no data
/// follows at all.
pub(super) fn copy_data(text: &str, after: usize) -> Option<(TextRange, bool)> {
    let start = after + text[after..].find('\n')? + 1;
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        if line.trim_end_matches(['\n', '\r']) == "\\." {
            return Some((TextRange::new(start as u32, (at + 2) as u32), true));
        }
        at += line.len();
    }
    (!text[start..].trim().is_empty()).then(|| (TextRange::new(start as u32, text.len() as u32), false))
}
