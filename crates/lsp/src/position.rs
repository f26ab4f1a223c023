//! Places of the protocol, which are lines and columns, and bytes.

use lsp_types::{Position, PositionEncodingKind};
use pgvet_syntax::source::LineIndex;

/// The unit of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    Utf8,
    #[default]
    Utf16,
    Utf32,
}

impl Encoding {
    /// The best of those that a client offers: bytes need no counting.
    pub(crate) fn choose(offered: &[PositionEncodingKind]) -> Self {
        let offers = |kind: PositionEncodingKind| offered.contains(&kind);
        if offers(PositionEncodingKind::UTF8) {
            Self::Utf8
        } else if offers(PositionEncodingKind::UTF32) && !offers(PositionEncodingKind::UTF16) {
            Self::Utf32
        } else {
            Self::Utf16
        }
    }

    pub(crate) fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
            Self::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    fn width(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    fn length(self, text: &str) -> usize {
        match self {
            Self::Utf8 => text.len(),
            _ if text.is_ascii() => text.len(),
            _ => text.chars().map(|character| self.width(character)).sum(),
        }
    }

    pub(crate) fn position(self, lines: &LineIndex, text: &str, offset: u32) -> Position {
        let offset = offset.min(text.len() as u32);
        let line = lines.line_of(offset);
        let start = lines.start(line).unwrap_or(offset);
        let before = text.get(start as usize..offset as usize).unwrap_or_default();
        Position::new(line as u32, self.length(before) as u32)
    }

    /// The byte at a position. A column after the end of its line is that end, and so is a line after the last one.
    pub(crate) fn offset(self, lines: &LineIndex, text: &str, position: Position) -> u32 {
        let line = position.line as usize;
        let Some(start) = lines.start(line) else { return text.len() as u32 };
        let next = lines.start(line + 1).map_or(text.len(), |next| next as usize);
        let line = text.get(start as usize..next).unwrap_or_default().trim_end_matches(['\n', '\r']);
        let mut left = position.character as usize;
        let mut bytes = 0;
        for character in line.chars() {
            let width = self.width(character);
            if left < width {
                break;
            }
            left -= width;
            bytes += character.len_utf8() as u32;
        }
        start + bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_what_was_agreed() {
        let text = "a\n\u{1f418}ü x\r\nlast";
        let lines = LineIndex::new(text);
        let x = text.find('x').unwrap() as u32;
        for (encoding, column) in [(Encoding::Utf8, 7), (Encoding::Utf16, 4), (Encoding::Utf32, 3)] {
            let position = Position::new(1, column);
            assert_eq!(encoding.position(&lines, text, x), position);
            assert_eq!(encoding.offset(&lines, text, position), x);
        }
    }

    #[test]
    fn what_lies_behind_an_end_is_that_end() {
        let text = "ab\r\ncd";
        let lines = LineIndex::new(text);
        let offset = |line, column| Encoding::Utf16.offset(&lines, text, Position::new(line, column));
        assert_eq!((offset(0, 9), offset(1, 9), offset(7, 0)), (2, 6, 6));
    }

    #[test]
    fn the_best_encoding_is_chosen() {
        let (utf8, utf16, utf32) =
            (PositionEncodingKind::UTF8, PositionEncodingKind::UTF16, PositionEncodingKind::UTF32);
        assert_eq!(Encoding::choose(&[]), Encoding::Utf16);
        assert_eq!(Encoding::choose(&[utf16, utf8]), Encoding::Utf8);
        assert_eq!(Encoding::choose(&[utf32]), Encoding::Utf32);
    }
}
