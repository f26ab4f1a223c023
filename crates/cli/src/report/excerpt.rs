//! The lines of a text around a place, as miette reads them.

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use pgvet_syntax::source::{SourceFile, TextRange};
use std::ops::Range;

/// The character that begins a colour.
const ESCAPE: u8 = 0x1b;

/// Most bytes of a line that is shown whole. Of others only the part around the place is: nobody reads more, each finding
/// would repeat it, and miette takes no columns beyond 65,535.
const LONGEST_LINE: usize = 2000;

/// Bytes of such a line that are shown before the place, and from it on.
const BEFORE: usize = 100;
const FROM: usize = 400;

/// A text, and its name as it is shown.
#[derive(Debug)]
pub(super) struct Excerpt<'a> {
    pub(super) file: &'a SourceFile,
    pub(super) path: String,
}

impl Excerpt<'_> {
    /// The place to underline: the part of a range that is shown.
    pub(super) fn span(&self, range: TextRange) -> SourceSpan {
        let range = range.start as usize..range.end.max(range.start) as usize;
        let end = self.cut(&range).map_or(range.end, |cut| range.end.min(cut.end));
        (range.start, end - range.start).into()
    }

    /// The part of its first line that stands for a range with long lines in or around it.
    fn cut(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let text = &self.file.text;
        let start = |line| self.file.lines().start(line).map_or(text.len(), |start| start as usize);
        let line_of = |offset: usize| self.file.lines().line_of(offset as u32);
        let line = line_of(range.start);
        let mut lines = line.saturating_sub(1)..=line_of(range.end) + 1;
        if range.end > text.len() || lines.all(|line| start(line + 1) - start(line) <= LONGEST_LINE) {
            return None;
        }
        let boundary = |mut at: usize| {
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let whole = start(line)..start(line) + text[start(line)..start(line + 1)].trim_end_matches(['\r', '\n']).len();
        let from = boundary(whole.start.max(range.start.saturating_sub(BEFORE)));
        Some(from..boundary(whole.end.min(range.start + FROM)).max(range.start))
    }
}

impl SourceCode for Excerpt<'_> {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let source = self.file;
        // miette counts lines from the beginning of the text that it is given, for each finding.
        let offset = u32::try_from(span.offset()).map_err(|_| MietteError::OutOfBounds)?;
        let line = source.lines().line_of(offset);
        let (data, at, line, column, count) = match self.cut(&(span.offset()..span.offset() + span.len())) {
            // Two places that are too far apart to be shown together.
            Some(cut) if span.offset() + span.len() > cut.end => return Err(MietteError::OutOfBounds),
            Some(cut) => {
                let start = source.lines().start(line).unwrap_or_default();
                let column = if before == 0 { (offset - start) as usize } else { 0 };
                (source.text[cut.clone()].as_bytes(), cut, line, column, 1)
            }
            None => {
                let first = line.saturating_sub(before + 1);
                let start = source.lines().start(first).map_or(0, |start| start as usize);
                let text = source.text.get(start..).ok_or(MietteError::OutOfBounds)?;
                let contents = text.read_span(&(span.offset() - start, span.len()).into(), before, after)?;
                let at = contents.span().offset() + start;
                let range = at..at + contents.span().len();
                (contents.data(), range, first + contents.line(), contents.column(), contents.line_count())
            }
        };
        if data.contains(&ESCAPE) {
            // miette's own colours are passed on.
            return Err(MietteError::OutOfBounds);
        }
        let at = (at.start, at.end - at.start).into();
        Ok(Box::new(MietteSpanContents::new_named(self.path.clone(), data, at, line, column, count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_a_text_is_counted_as_in_the_whole() {
        let text = "one\ntwo\r\nthree\rfour\n\nsix";
        let file = SourceFile::new("m.sql".to_owned(), text.to_owned());
        for (start, length) in (0..text.len()).flat_map(|start| (0..=text.len() - start).map(move |end| (start, end))) {
            let (source, span) = (Excerpt { file: &file, path: file.path.clone() }, (start, length).into());
            let (own, whole) = (source.read_span(&span, 1, 1), text.read_span(&span, 1, 1));
            let seen = |contents: &dyn SpanContents<'_>| (contents.data().to_vec(), *contents.span(), contents.line());
            assert_eq!(seen(&*own.unwrap()), seen(&*whole.unwrap()), "{start} {length}");
        }
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("a\n{}\u{e4}x{}\nb", "\u{e4}".repeat(5000), "\u{e4}".repeat(5000));
        let file = SourceFile::new("m.sql".to_owned(), text.clone());
        let source = Excerpt { file: &file, path: file.path.clone() };
        let at = text.find('x').unwrap() as u32;
        let span = source.span(TextRange::new(at, text.len() as u32));
        let contents = source.read_span(&span, 1, 1).unwrap();
        let shown = std::str::from_utf8(contents.data()).unwrap();
        assert!(shown.contains('x') && shown.len() <= BEFORE + FROM + 1, "{shown}");
        assert_eq!((contents.line(), contents.line_count()), (1, 1));
        assert!(span.offset() + span.len() <= contents.span().offset() + contents.span().len());
        assert_eq!(source.read_span(&span, 0, 0).unwrap().column(), at as usize - 2);
        // Short lines beside a long one are shown without it.
        let span = source.span(TextRange::new(0, 1));
        assert_eq!(source.read_span(&span, 1, 1).unwrap().data(), b"a");
    }
}
