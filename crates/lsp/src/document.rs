//! The text of a document, kept so that an edit moves as little as possible.
//!
//! Some lines that end with a statement's semicolon get blanks after it. An edit takes the bytes that it adds from the
//! next such blanks, or gives them those that it removes, so that every statement after them stays at its byte, and
//! need not be parsed again. Lines, and the columns of what the client wrote, are the same with the blanks and without.

use crate::position::Encoding;
use lsp_types::{Position, Range, TextDocumentContentChangeEvent};
use pgvet_syntax::source::{LineIndex, TextRange};
use pgvet_syntax::statement;

/// Blanks after a semicolon.
const SLACK: usize = 256;
/// Least number of bytes between two places with slack.
const DISTANCE: u32 = 4096;
/// Number of blanks in one place above which they are distributed again.
const MAX_SLACK: u32 = 8192;

#[derive(Debug)]
pub(crate) struct Document {
    /// With slack.
    text: String,
    lines: LineIndex,
    /// Where blanks were added, in order.
    slack: Vec<TextRange>,
    encoding: Encoding,
}

impl Document {
    pub(crate) fn new(text: String, encoding: Encoding) -> Self {
        let lines = LineIndex::new(&text);
        let mut document = Self { text, lines, slack: Vec::new(), encoding };
        document.deal_out();
        document
    }

    /// The text that is checked.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text that the client has.
    pub(crate) fn written(&self) -> String {
        let mut written = String::with_capacity(self.text.len());
        let mut at = 0;
        for slack in &self.slack {
            written.push_str(&self.text[at..slack.start as usize]);
            at = slack.end as usize;
        }
        written + &self.text[at..]
    }

    pub(crate) fn position(&self, offset: u32) -> Position {
        self.encoding.position(&self.lines, &self.text, self.before_slack(offset))
    }

    pub(crate) fn range(&self, range: TextRange) -> Range {
        Range::new(self.position(range.start), self.position(range.end))
    }

    pub(crate) fn offset(&self, position: Position) -> u32 {
        self.before_slack(self.encoding.offset(&self.lines, &self.text, position))
    }

    pub(crate) fn text_range(&self, range: Range) -> TextRange {
        TextRange::new(self.offset(range.start), self.offset(range.end))
    }

    /// The line that holds a byte, without its end.
    pub(crate) fn line(&self, offset: u32) -> TextRange {
        let line = self.lines.line_of(offset);
        let end = self.encoding.offset(&self.lines, &self.text, Position::new(line as u32, u32::MAX));
        TextRange::new(self.lines.start(line).unwrap_or(end), self.before_slack(end))
    }

    pub(crate) fn slice(&self, range: TextRange) -> &str {
        self.text.get(range.as_usize()).unwrap_or_default()
    }

    /// The end of lines that the document uses.
    pub(crate) fn line_end(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    pub(crate) fn change(&mut self, change: TextDocumentContentChangeEvent) {
        match change.range {
            Some(range) => {
                let (start, end) = (self.offset(range.start), self.offset(range.end));
                self.replace(TextRange::new(start.min(end), end.max(start)), &change.text);
            }
            None => self.replace_all(&change.text),
        }
    }

    /// Replaces only what differs.
    fn replace_all(&mut self, text: &str) {
        let written = self.written();
        let is_boundary = |at: &usize| written.is_char_boundary(*at) && text.is_char_boundary(*at);
        let same = common(written.bytes(), text.bytes());
        let before = (0..=same).rev().find(is_boundary).unwrap_or(0);
        let (old, new) = (&written[before..], &text[before..]);
        let same = common(old.bytes().rev(), new.bytes().rev());
        let is_boundary =
            |after: &usize| old.is_char_boundary(old.len() - after) && new.is_char_boundary(new.len() - after);
        let after = (0..=same).rev().find(is_boundary).unwrap_or(0);
        let (from, to) = (before as u32, (written.len() - after) as u32);
        if from as usize == written.len() && new.is_empty() {
            return;
        }
        let inserted = new[..new.len() - after].to_owned();
        let range = TextRange::new(self.with_slack(from), self.with_slack(to));
        self.replace(range, &inserted);
    }

    fn replace(&mut self, range: TextRange, inserted: &str) {
        self.text.replace_range(range.as_usize(), inserted);
        let added = inserted.len() as u32;
        let removed = range.end - range.start;
        // Blanks in the range are gone; those after it have moved.
        self.slack.retain(|slack| slack.end <= range.start || slack.start >= range.end);
        let moved = |offset: u32| offset + added - removed;
        for slack in self.slack.iter_mut().filter(|slack| slack.start >= range.end) {
            *slack = TextRange::new(moved(slack.start), moved(slack.end));
        }
        if !self.take_up(moved(range.end), added, removed) {
            self.deal_out();
        }
        self.lines = LineIndex::new(&self.text);
    }

    /// Lets the next blanks after `from` absorb the added or removed bytes. Returns whether there were enough.
    fn take_up(&mut self, from: u32, added: u32, removed: u32) -> bool {
        let Some(next) = self.slack.iter().position(|slack| slack.start >= from) else { return true };
        let slack = self.slack[next];
        let length = (slack.end - slack.start + removed).checked_sub(added).filter(|length| *length <= MAX_SLACK);
        let Some(length) = length else { return false };
        self.text.replace_range(slack.as_usize(), &" ".repeat(length as usize));
        self.slack[next].end = slack.start + length;
        for slack in &mut self.slack[next + 1..] {
            let back = |offset: u32| offset + removed - added;
            *slack = TextRange::new(back(slack.start), back(slack.end));
        }
        true
    }

    /// Puts blanks where statements end.
    fn deal_out(&mut self) {
        let written = self.written();
        let mut text = String::with_capacity(written.len() + written.len() / 8);
        let mut slack = Vec::new();
        let mut copied = 0;
        for place in places(&written) {
            text.push_str(&written[copied..place]);
            copied = place;
            let start = text.len() as u32;
            text.extend(std::iter::repeat_n(' ', SLACK));
            slack.push(TextRange::new(start, text.len() as u32));
        }
        text.push_str(&written[copied..]);
        self.lines = LineIndex::new(&text);
        (self.text, self.slack) = (text, slack);
    }

    /// The byte of the text for a byte of what the client has.
    fn with_slack(&self, written: u32) -> u32 {
        let mut offset = written;
        for slack in &self.slack {
            // Text directly before the blanks stays before them.
            if offset <= slack.start {
                break;
            }
            offset += slack.end - slack.start;
        }
        offset
    }

    /// The end of what the client wrote, for a byte in the blanks after it.
    fn before_slack(&self, offset: u32) -> u32 {
        let after = self.slack.partition_point(|slack| slack.start < offset);
        let inside = after.checked_sub(1).map(|at| self.slack[at]).filter(|slack| offset <= slack.end);
        inside.map_or(offset, |slack| slack.start)
    }
}

fn common(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

/// The ends of lines that end with the semicolon of a statement, far enough from each other.
fn places(text: &str) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::new();
    let mut least = DISTANCE;
    for piece in statement::split(text).pieces {
        let is_copy = piece.tokens.first().is_some_and(|token| token.is_keyword(text, "COPY"));
        if piece.range.end < least || !piece.kind.is_statement() || !piece.terminated || is_copy {
            continue;
        }
        let end = piece.range.end as usize;
        let ends_line = text[end..].strip_prefix(';').is_some_and(|rest| rest.starts_with(['\n', '\r']));
        if ends_line {
            places.push(end + 1);
            least = piece.range.end + DISTANCE;
        }
    }
    places
}

#[cfg(test)]
mod tests;
