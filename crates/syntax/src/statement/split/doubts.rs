//! Where a text can be read otherwise.

use super::Splitter;
use crate::lexer::{AsSql, Lexer, Token, TokenKind, as_sql};
use crate::source::TextRange;
use crate::statement::psql::{Certainty, is_name_byte};
use crate::statement::start::{Start, start};
use crate::statement::{Doubt, DoubtKind, Quoting};

impl Splitter<'_> {
    /// Notes a doubt; of one kind and cause only the first, which the others depend on.
    pub(super) fn doubt(&mut self, kind: DoubtKind, range: TextRange, cause: Option<TextRange>) {
        let depends = matches!(kind, DoubtKind::Quoting | DoubtKind::SentTogether { .. } | DoubtKind::Encoding);
        if !depends || !self.result.doubts.iter().any(|doubt| doubt.kind == kind && doubt.cause == cause) {
            self.result.doubts.push(Doubt { range, kind, cause });
        }
    }

    /// A tag of a template that would be something else as SQL, or a variable of psql that holds SQL.
    pub(super) fn doubt_token(&mut self, token: Token) {
        match token.kind {
            TokenKind::Placeholder if !token.text(self.text).starts_with('$') => {
                if as_sql(self.text, token.range) != AsSql::Part {
                    self.doubt(DoubtKind::Template, token.range, None);
                }
            }
            TokenKind::DollarString if !self.lexer.glued_tags => {
                let start = token.range.start;
                if let Some((length, true)) = self.lexer.glued_tag(start as usize) {
                    self.doubt(DoubtKind::Template, TextRange::new(start, start + length as u32), None);
                }
            }
            TokenKind::Word | TokenKind::Number if self.has_backslash => self.doubt_variable(token),
            _ => {}
        }
    }

    /// `:name` after `\set name ...`.
    fn doubt_variable(&mut self, token: Token) {
        let is_colon = |last: &Token| last.is_punctuation(b':') && last.range.end == token.range.start;
        let Some(colon) = self.tokens.last().filter(|last| is_colon(last)) else { return };
        let word = token.text(self.text);
        let name = &word[..word.bytes().position(|byte| !is_name_byte(byte)).unwrap_or(word.len())];
        if self.variables.holds_sql(name) {
            self.doubt(DoubtKind::Variable, colon.range.cover(token.range), None);
        }
    }

    /// Whether the statements from this piece on can be read otherwise.
    pub(super) fn doubt_readings(&mut self, unsent: usize) {
        if !self.follows_settings {
            return;
        }
        if let Some(quoting) = self.pieces[unsent..].iter().find_map(|piece| piece.quoting) {
            let standard_conforming_strings = quoting.standard_conforming_strings;
            let sent_together = DoubtKind::SentTogether { standard_conforming_strings, by_psql: self.has_command };
            let maybe = self.settings.present().standard_conforming_strings.doubt;
            let doubt = maybe.map(|cause| (DoubtKind::Quoting, cause));
            let doubt = doubt.or_else(|| Some((sent_together, self.settings.setter_of_strings()?)));
            if let Some((kind, cause)) = doubt {
                self.doubt(kind, quoting.string, Some(cause));
            }
        }
        self.doubt_encoding(self.last_end);
    }

    /// Looks for characters beyond ASCII up to `end`.
    pub(super) fn doubt_encoding(&mut self, end: usize) {
        let from = self.sent_to;
        self.sent_to = end.max(from);
        let encoding = self.settings.present().encoding_is_safe;
        if encoding.value && encoding.doubt.is_none() {
            return;
        }
        let text = self.text.get(from..end).unwrap_or_default();
        if let Some((at, character)) = text.char_indices().find(|(_, character)| !character.is_ascii()) {
            let start = (from + at) as u32;
            self.doubt(DoubtKind::Encoding, TextRange::new(start, start + character.len_utf8() as u32), encoding.doubt);
        }
    }

    /// The first string that `standard_conforming_strings` decides the end of.
    pub(super) fn quoting(&self, tokens: &[Token]) -> Option<Quoting> {
        if !self.has_backslash {
            return None;
        }
        let is_string = |token: &&Token| {
            matches!(token.kind, TokenKind::String | TokenKind::Unterminated)
                && token.text(self.text).starts_with('\'')
                && token.text(self.text).contains('\\')
        };
        let mut strings = tokens.iter().filter(is_string).map(|token| token.range);
        let string = strings.find(|string| self.ends_otherwise(*string))?;
        Some(Quoting {
            string,
            standard_conforming_strings: self.lexer.standard_conforming_strings,
            in_doubt: self.settings.present().standard_conforming_strings.doubt.is_some(),
        })
    }

    fn ends_otherwise(&self, string: TextRange) -> bool {
        let mut lexer = Lexer::new(self.text, TextRange::new(string.start, self.text.len() as u32));
        lexer.standard_conforming_strings = !self.lexer.standard_conforming_strings;
        lexer.next().is_none_or(|other| other.range != string)
    }

    /// psql reads the lines of data as commands where it does not run the COPY: in a branch, or after an error.
    pub(super) fn doubt_copy_data(&mut self, data: TextRange) {
        let text = &self.text[data.as_usize()];
        let ends_branch =
            || text.lines().any(|line| ["\\endif", "\\else", "\\elif"].iter().any(|word| line.starts_with(word)));
        let may_be_skipped = self.branches.active() != Certainty::Yes && ends_branch();
        if may_be_skipped || has_statement(text) {
            self.doubt(DoubtKind::CopyData, data, None);
        }
    }
}

/// Whether a line begins as a statement does, and ends with a semicolon.
fn has_statement(data: &str) -> bool {
    let is_statement = |line: &str| {
        let tokens: Vec<Token> = Lexer::new(line, TextRange::new(0, line.len() as u32)).take(4).collect();
        start(line, &tokens) == Some(Start::Strong)
    };
    data.lines().filter(|line| line.contains(';')).any(is_statement)
}
