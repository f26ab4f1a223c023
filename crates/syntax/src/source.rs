//! Text and positions. Everything inside the engine counts bytes; lines exist only where a person reads them.

use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::OnceLock;

/// A half-open range of bytes in one file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct TextRange {
    pub start: u32,
    pub end: u32,
}

impl TextRange {
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The empty range at `offset`.
    pub const fn at(offset: u32) -> Self {
        Self { start: offset, end: offset }
    }

    /// The smallest range that holds both; an empty default range is treated as absent.
    #[must_use]
    pub fn cover(self, other: Self) -> Self {
        if self == Self::default() {
            other
        } else if other == Self::default() {
            self
        } else {
            Self { start: self.start.min(other.start), end: self.end.max(other.end) }
        }
    }

    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// The same range, `by` bytes further on: from statement-relative to file-relative.
    #[must_use]
    pub fn shifted(self, by: u32) -> Self {
        Self { start: self.start + by, end: self.end + by }
    }

    pub fn as_usize(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl std::fmt::Debug for TextRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A place as people count: line and column from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Position {
    pub line: u32,
    pub column: u32,
    /// Byte offset from the start of the file, from 0.
    pub offset: u32,
}

/// Where the lines of a text begin. A line ends with `\n`, `\r\n` or `\r`.
#[derive(Debug, Clone)]
pub struct LineIndex {
    starts: Vec<u32>,
    /// How many characters are before each block of bytes: a line may be as long as the file, and have many findings.
    characters: Vec<u32>,
}

/// Number of bytes of a block.
const BLOCK: usize = 4096;

/// Number of characters that begin in these bytes of a UTF-8 text.
fn count_characters(bytes: &[u8]) -> u32 {
    bytes.iter().map(|byte| u32::from(byte & 0xc0 != 0x80)).sum()
}

impl LineIndex {
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends_line = |at: usize, byte: u8| byte == b'\n' || byte == b'\r' && bytes.get(at + 1) != Some(&b'\n');
        let breaks = text.bytes().enumerate().filter(|(at, byte)| ends_line(*at, *byte)).map(|(at, _)| at as u32 + 1);
        let mut characters = vec![0];
        characters.extend(bytes.chunks(BLOCK).scan(0, |before, block| {
            *before += count_characters(block);
            Some(*before)
        }));
        Self { starts: std::iter::once(0).chain(breaks).collect(), characters }
    }

    /// The line that holds a byte, from 0.
    pub fn line_of(&self, offset: u32) -> usize {
        self.starts.partition_point(|start| *start <= offset) - 1
    }

    /// Where a line begins, counted from 0; `None` after the last one.
    pub fn start(&self, line: usize) -> Option<u32> {
        self.starts.get(line).copied()
    }

    /// The position of a byte offset in the text that this index was made from.
    pub fn position(&self, text: &str, offset: u32) -> Position {
        let line = self.line_of(offset);
        let start = self.starts[line] as usize;
        let end = (offset as usize).min(text.len());
        let column = if text.is_char_boundary(end) {
            self.characters_before(text, end) - self.characters_before(text, start)
        } else {
            (end - start) as u32
        };
        Position { line: line as u32 + 1, column: column + 1, offset }
    }

    fn characters_before(&self, text: &str, offset: usize) -> u32 {
        let block = offset / BLOCK;
        self.characters[block] + count_characters(&text.as_bytes()[block * BLOCK..offset])
    }
}

/// One migration file: its path as the user named it, and its text.
#[derive(Debug, Clone, Default)]
pub struct SourceFile {
    pub path: String,
    pub text: String,
    /// Most files have no finding, and nobody asks for their lines.
    lines: OnceLock<LineIndex>,
}

impl SourceFile {
    pub fn new(path: String, text: String) -> Self {
        Self { path, text, lines: OnceLock::new() }
    }

    pub fn lines(&self) -> &LineIndex {
        self.lines.get_or_init(|| LineIndex::new(&self.text))
    }

    pub fn position(&self, offset: u32) -> Position {
        self.lines().position(&self.text, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let text = "a\näb c\n";
        let index = LineIndex::new(text);
        assert_eq!(index.position(text, 0), Position { line: 1, column: 1, offset: 0 });
        assert_eq!(index.position(text, 4), Position { line: 2, column: 2, offset: 4 });
        assert_eq!(index.position(text, 6), Position { line: 2, column: 4, offset: 6 });
    }

    #[test]
    fn positions_in_long_lines_are_those_of_their_characters() {
        let text = format!("ä\r\n{}\n{}", "aä€\u{1f600}".repeat(3000), "x".repeat(BLOCK));
        let index = LineIndex::new(&text);
        for (offset, _) in text.char_indices().step_by(7).chain([(text.len(), ' ')]) {
            let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
            let column = text[start..offset].chars().count() as u32 + 1;
            assert_eq!(index.position(&text, offset as u32).column, column, "{offset}");
        }
    }

    #[test]
    fn every_kind_of_line_end_counts_once() {
        let text = "a\r\nb\rc\nd";
        let index = LineIndex::new(text);
        let lines: Vec<_> = [0, 3, 5, 7].map(|offset| index.position(text, offset).line).into();
        assert_eq!(lines, [1, 2, 3, 4]);
    }
}
