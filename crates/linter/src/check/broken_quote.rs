//! Syntax errors that follow from a quote too many or too few: it exchanges what is inside of quotes and what is outside, up
//! to the end of the file.

use crate::diagnostic::{Diagnostic, Label};
use crate::rules::engine::syntax_error;
use pgvet_syntax::lexer::TokenKind;
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::Statement;

/// The first syntax error in a file whose statement has such a quote.
#[derive(Debug)]
pub(super) struct BrokenQuote {
    file: u32,
    error: TextRange,
    /// The first error that follows, and how many do.
    later: Option<(TextRange, usize)>,
}

impl BrokenQuote {
    /// The quote of a statement that cannot be parsed, if a quoted text in it holds the end of a statement.
    pub(super) fn of(file: u32, statement: &Statement, text: &str, error: TextRange) -> Option<Self> {
        let holds_end = |text: &str| text.contains(";\n") || text.contains(";\r");
        let is_quoted = |kind| matches!(kind, TokenKind::String | TokenKind::QuotedIdentifier);
        let mut quoted = statement.tokens.iter().filter(|token| is_quoted(token.kind));
        quoted.any(|token| holds_end(token.text(text))).then_some(Self { file, error, later: None })
    }

    /// Counts a later error of the same file at the finding of the first. Returns whether it did.
    pub(super) fn count(&mut self, found: &mut [Diagnostic], file: u32, range: TextRange) -> bool {
        let is_first = |found: &&mut Diagnostic| {
            found.file == self.file && found.range == self.error && found.is_of(&syntax_error::RULE.meta)
        };
        let Some(first) = found.iter_mut().rev().filter(|_| file == self.file).find(is_first) else { return false };
        let (place, count) = self.later.map_or((range, 1), |(place, count)| (place, count + 1));
        self.later = Some((place, count));
        first.labels.retain(|label| label.range != place);
        let errors = if count == 1 { "1 later syntax error".to_owned() } else { format!("{count} later syntax errors") };
        let message = format!("{errors}, from here on: a quote before is probably missing or not doubled");
        first.labels.push(Label { file, range: place, message });
        true
    }
}
