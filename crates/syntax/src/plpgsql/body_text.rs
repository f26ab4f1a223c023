//! The text of a function body, and the map from its offsets to the file.

use crate::lexer::{TokenKind, tokenize};
use crate::source::TextRange;
use std::borrow::Cow;

/// The text between the quotes of a function body.
#[derive(Debug, Clone)]
pub struct BodyText<'a> {
    source: Cow<'a, str>,
    range: TextRange,
    map: Map,
}

#[derive(Debug, Clone)]
enum Map {
    /// The body is in the file as it is; `source` is the file.
    Verbatim,
    /// The body had escapes; `source` is the text that PostgreSQL sees.
    Pieces(Vec<Piece>),
}

/// From here on, text and file count alike, up to the next piece.
#[derive(Debug, Clone, Copy)]
struct Piece {
    text: u32,
    file: u32,
    /// Whether the character before it is an escape, which takes more bytes in the file.
    after_escape: bool,
}

impl<'a> BodyText<'a> {
    /// A body that is at `range` of the file as it is, without its quotes.
    pub fn verbatim(file: &'a str, range: TextRange) -> Self {
        Self { source: Cow::Borrowed(file), range, map: Map::Verbatim }
    }

    /// The body that the string literal at `literal` of the file stands for; any kind of string.
    pub fn from_literal(file: &'a str, literal: TextRange) -> Self {
        let quoted = &file[literal.as_usize()];
        if let Some(after) = quoted.strip_prefix('$') {
            let tag = after.find('$').map_or(quoted.len(), |at| at + 2);
            let end = if quoted.len() >= 2 * tag { literal.end - tag as u32 } else { literal.end };
            let start = (literal.start + tag as u32).min(end);
            return Self::verbatim(file, TextRange::new(start, end));
        }
        let prefix = quoted.find('\'').unwrap_or(0);
        let kind = if quoted.starts_with(['e', 'E']) {
            Quoting::Escape
        } else if quoted.starts_with(['u', 'U']) {
            Quoting::Unicode
        } else {
            Quoting::Plain
        };
        let start = literal.start as usize + prefix + 1;
        let inner = &file[start.min(literal.end as usize)..literal.end as usize];
        let mut unescaped = Unescaped { text: String::new(), pieces: Vec::new() };
        unescaped.piece(start, false);
        unescaped.string(inner, start, kind);
        if unescaped.pieces.len() == 1 {
            return Self::verbatim(file, TextRange::new(start as u32, (start + unescaped.text.len()) as u32));
        }
        let range = TextRange::new(0, unescaped.text.len() as u32);
        Self { source: Cow::Owned(unescaped.text), range, map: Map::Pieces(unescaped.pieces) }
    }

    /// The text that [`Self::range`] and [`super::SqlText::place`] are offsets in.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Where the body is in [`Self::source`].
    pub fn range(&self) -> TextRange {
        self.range
    }

    pub fn text(&self) -> &str {
        &self.source[self.range.as_usize()]
    }

    pub fn is_verbatim(&self) -> bool {
        matches!(self.map, Map::Verbatim)
    }

    /// The file offset of an offset in [`Self::source`].
    pub fn to_file(&self, offset: u32) -> u32 {
        match &self.map {
            Map::Verbatim => offset,
            Map::Pieces(pieces) => {
                let after = pieces.partition_point(|piece| piece.text <= offset);
                let piece = pieces[after.saturating_sub(1)];
                piece.file + offset.saturating_sub(piece.text)
            }
        }
    }

    /// The file range of a range in [`Self::source`].
    pub fn to_file_range(&self, range: TextRange) -> TextRange {
        if range.is_empty() {
            return TextRange::at(self.to_file(range.start));
        }
        TextRange::new(self.to_file(range.start), self.end_in_file(range.end))
    }

    /// Where the body is in the file, without its quotes, and the body in as many bytes: every token is where it
    /// is in the file, so that offsets agree. A token with escapes is shorter than there, and has blanks around it.
    pub fn aligned(&self) -> (TextRange, Cow<'_, str>) {
        let range = self.to_file_range(self.range);
        if self.is_verbatim() {
            return (range, Cow::Borrowed(self.text()));
        }
        let mut bytes = vec![b' '; (range.end - range.start) as usize];
        for token in tokenize(&self.source, self.range) {
            let text = token.text(&self.source).as_bytes();
            // What is inside the quotes matters more than the quote before it, which is an escape mostly.
            let opening = text.iter().position(|byte| *byte == b'\'').filter(|_| token.kind == TokenKind::String);
            let first = opening.map_or(0, |quote| quote as u32 + 1);
            let start = self.to_file(token.range.start + first).saturating_sub(first + range.start) as usize;
            if let Some(place) = bytes.get_mut(start..start + text.len()) {
                place.copy_from_slice(text);
            }
        }
        (range, Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The end of the last byte, not the start of the next: the literal may be interrupted between them.
    fn end_in_file(&self, end: u32) -> u32 {
        if let Map::Pieces(pieces) = &self.map {
            let next = pieces.get(pieces.partition_point(|piece| piece.text < end));
            if let Some(piece) = next.filter(|piece| piece.text == end && piece.after_escape) {
                return piece.file;
            }
        }
        self.to_file(end - 1) + 1
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Plain,
    Escape,
    Unicode,
}

struct Unescaped {
    text: String,
    pieces: Vec<Piece>,
}

impl Unescaped {
    /// From here on, the text is at `file`.
    fn piece(&mut self, file: usize, after_escape: bool) {
        self.pieces.push(Piece { text: self.text.len() as u32, file: file as u32, after_escape });
    }

    /// `inner` starts after the opening quote, which is before file offset `start`.
    fn string(&mut self, inner: &str, start: usize, kind: Quoting) {
        let bytes = inner.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'\'' if bytes.get(at + 1) == Some(&b'\'') => {
                    self.text.push('\'');
                    at += 2;
                    self.piece(start + at, true);
                }
                // Either the end, or the literal continues in the next line.
                b'\'' => match continuation(&inner[at + 1..]) {
                    Some(length) => {
                        at += 1 + length;
                        self.piece(start + at, false);
                    }
                    None => return,
                },
                b'\\' if kind != Quoting::Plain => {
                    let (character, length) = match kind {
                        Quoting::Escape => escape(&inner[at + 1..]),
                        _ => unicode_escape(&inner[at + 1..]),
                    };
                    self.text.extend(character);
                    at += 1 + length;
                    self.piece(start + at, true);
                }
                _ => {
                    let length = inner[at..].chars().next().map_or(1, char::len_utf8);
                    self.text.push_str(&inner[at..at + length]);
                    at += length;
                }
            }
        }
    }
}

/// After a closing quote: how far it is to the content of the next piece of the same literal.
fn continuation(rest: &str) -> Option<usize> {
    let quote = rest.find('\'')?;
    let between = rest[..quote].lines().map(|line| line.split_once("--").map_or(line, |(before, _)| before));
    let blank = between.into_iter().all(|line| line.trim().is_empty());
    (blank && rest[..quote].contains(['\n', '\r'])).then_some(quote + 1)
}

/// The character after a backslash in `E'...'`, and how many bytes it takes.
fn escape(rest: &str) -> (Option<char>, usize) {
    let Some(first) = rest.chars().next() else { return (None, 0) };
    let number = |from: usize, most: usize, radix: u32| {
        let digits = rest[from..].chars().take(most).take_while(|digit| digit.is_digit(radix)).count();
        let value = u32::from_str_radix(&rest[from..from + digits], radix).ok();
        (value.and_then(char::from_u32), from + digits)
    };
    match first {
        'n' => (Some('\n'), 1),
        't' => (Some('\t'), 1),
        'r' => (Some('\r'), 1),
        'b' => (Some('\u{8}'), 1),
        'f' => (Some('\u{c}'), 1),
        'x' => number(1, 2, 16),
        'u' => number(1, 4, 16),
        'U' => number(1, 8, 16),
        '0'..='7' => number(0, 3, 8),
        other => (Some(other), other.len_utf8()),
    }
}

/// The character after a backslash in `U&'...'`, and how many bytes it takes.
fn unicode_escape(rest: &str) -> (Option<char>, usize) {
    if rest.starts_with('\\') {
        return (Some('\\'), 1);
    }
    let (from, digits) = if rest.starts_with('+') { (1, 6) } else { (0, 4) };
    match rest.get(from..from + digits) {
        Some(hex) => (u32::from_str_radix(hex, 16).ok().and_then(char::from_u32), from + digits),
        None => (None, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(file: &str) -> BodyText<'_> {
        let start = file.find(['\'', 'E', '$', 'U']).unwrap();
        BodyText::from_literal(file, TextRange::new(start as u32, file.len() as u32))
    }

    /// The file text of a part of the body.
    fn in_file<'a>(file: &'a str, part: &str) -> &'a str {
        let body = body(file);
        let at = body.source().find(part).unwrap() as u32;
        &file[body.to_file_range(TextRange::new(at, at + part.len() as u32)).as_usize()]
    }

    #[test]
    fn dollar_quotes_and_quotes_without_escapes_are_verbatim() {
        for (file, text) in [("AS $x$ a $x$", " a "), ("AS $$$$", ""), ("AS 'a b'", "a b"), ("AS E'a'", "a")] {
            assert_eq!((body(file).text(), body(file).is_verbatim()), (text, true));
        }
        assert_eq!(in_file("AS $x$ a := 1 $x$", "a :="), "a :=");
    }

    #[test]
    fn escapes_are_accounted_for() {
        let file = "AS 'x := ''it''; RETURN y;'";
        assert_eq!(body(file).text(), "x := 'it'; RETURN y;");
        assert_eq!(in_file(file, "RETURN"), "RETURN");
        assert_eq!(in_file(file, "it"), "it");
        let file = "AS E'a\\n\\x41\\'b\\u00e4c' 'rest'";
        assert_eq!(body(file).text(), "a\nA'bäc");
        assert_eq!(in_file(file, "c"), "c");
        let file = "U&'\\0061\\+000062 c'";
        assert_eq!(body(file).text(), "ab c");
    }

    #[test]
    fn continued_literals_are_one_text() {
        let file = "AS 'BEGIN '\n -- note\n  'END'";
        assert_eq!(body(file).text(), "BEGIN END");
        assert_eq!(in_file(file, "END"), "END");
    }

    #[test]
    fn the_aligned_text_has_every_token_at_its_place_in_the_file() {
        let file = "AS E'BEGIN x := ''it''; -- note\\n RETURN ''\\u00e4'';END'";
        let (range, text) = {
            let body = body(file);
            let (range, text) = body.aligned();
            (range, text.into_owned())
        };
        assert_eq!(text.len(), (range.end - range.start) as usize);
        assert_eq!(text, "BEGIN x :=  'it' ;           RETURN  'ä'     ;END");
        for part in ["BEGIN", "RETURN", "END"] {
            let at = text.find(part).unwrap() + range.start as usize;
            assert_eq!(&file[at..at + part.len()], part);
        }
    }

    #[test]
    fn broken_literals_do_no_harm() {
        for file in ["'", "E'\\", "$x$ no end", "E'\\x", "U&'\\00"] {
            let _ = body(file).text();
        }
    }
}
