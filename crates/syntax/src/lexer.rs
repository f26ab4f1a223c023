//! PostgreSQL's tokens with exact byte ranges.
//!
//! Follows the rules of PostgreSQL 18 `src/backend/parser/scan.l`; a test compares it with PostgreSQL's own scanner.
//! It never fails: an unterminated string or comment is a token that runs to the end of the text, marked so.
//! With [`Lexer::templates`] it also knows the placeholders of template engines, which are no SQL.

mod newer_words;
mod operator;
mod quote;
mod template;

pub use newer_words::refused_from;
pub use quote::{quote_function_name, quote_identifier};
pub(crate) use template::{AsSql, as_sql};

use crate::source::TextRange;
use operator::{OperatorRun, is_operator_byte};
use std::sync::{Arc, OnceLock};
use template::LastTags;

/// One token. Comments and white space are not tokens; see [`Lexer::comments`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub range: TextRange,
}

/// The kinds of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A keyword or an unquoted identifier.
    Word,
    /// `"..."` or `U&"..."`.
    QuotedIdentifier,
    /// `'...'`, `E'...'`, `U&'...'`. (The N of `N'...'` is a word of its own for PostgreSQL.)
    String,
    /// `B'...'` or `X'...'`.
    BitString,
    /// `$tag$...$tag$`.
    DollarString,
    Number,
    /// `$1`.
    Parameter,
    Operator,
    /// One of `( ) [ ] , ; :` and `.`.
    Punctuation(u8),
    /// `::`, `:=`, `..`, `=>`.
    Compound,
    /// `{{ ... }}`, `{% ... %}`, `${name}` and so on; only with [`Lexer::templates`].
    Placeholder,
    /// An unterminated string, quoted identifier, dollar quote or block comment.
    Unterminated,
    /// A byte that begins no token.
    Invalid,
}

impl Token {
    pub fn text<'a>(&self, source: &'a str) -> &'a str {
        &source[self.range.as_usize()]
    }

    /// Whether it is this keyword, which is given in upper case.
    pub fn is_keyword(&self, source: &str, keyword: &str) -> bool {
        self.kind == TokenKind::Word && self.text(source).eq_ignore_ascii_case(keyword)
    }

    pub fn is_punctuation(&self, character: u8) -> bool {
        self.kind == TokenKind::Punctuation(character)
    }
}

/// Reads tokens one after the other.
#[derive(Debug, Clone)]
pub struct Lexer<'a> {
    source: &'a str,
    offset: usize,
    end: usize,
    /// Whether plain quotes treat a backslash as a character (`standard_conforming_strings`, on by default).
    pub standard_conforming_strings: bool,
    /// Whether each template placeholder is one token.
    pub templates: bool,
    /// Whether `$name$_` is a placeholder although it can also open a dollar quote. Not if a string and then a word are
    /// SQL.
    pub glued_tags: bool,
    /// Whether the text is read as psql reads it, which forgets at the end of a line that a string began with `E`.
    pub line_by_line: bool,
    comments: Vec<TextRange>,
    operators: OperatorRun,
    /// Made when the first `$name$` is examined.
    last_tags: Arc<OnceLock<LastTags<'a>>>,
}

/// All tokens of `range` in `source`.
pub fn tokenize(source: &str, range: TextRange) -> Vec<Token> {
    Lexer::new(source, range).collect()
}

impl<'a> Lexer<'a> {
    pub fn new(source: &'a str, range: TextRange) -> Self {
        Self {
            source,
            offset: range.start as usize,
            end: range.end as usize,
            standard_conforming_strings: true,
            templates: false,
            glued_tags: true,
            line_by_line: false,
            comments: Vec::new(),
            operators: OperatorRun::default(),
            last_tags: Arc::default(),
        }
    }

    /// Where the next token is searched for.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Goes on at `offset`.
    pub fn seek(&mut self, offset: usize) {
        self.offset = offset.min(self.end);
    }

    /// The comments that were skipped so far, in order.
    pub fn comments(&self) -> &[TextRange] {
        &self.comments
    }

    /// The comments skipped since the last call.
    pub fn take_comments(&mut self) -> Vec<TextRange> {
        std::mem::take(&mut self.comments)
    }

    fn byte(&self, at: usize) -> u8 {
        if at < self.end { self.source.as_bytes()[at] } else { 0 }
    }

    fn rest(&self, at: usize) -> &'a [u8] {
        &self.source.as_bytes()[at.min(self.end)..self.end]
    }

    fn skip_blank(&mut self) {
        loop {
            match self.byte(self.offset) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.offset += 1,
                b'-' if self.byte(self.offset + 1) == b'-' => {
                    let length = self.rest(self.offset).iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                    self.skip_comment(length.map_or(self.end, |length| self.offset + length));
                }
                b'/' if self.byte(self.offset + 1) == b'*' => match self.block_comment_end(self.offset) {
                    Some(end) => self.skip_comment(end),
                    None => return,
                },
                // A byte order mark stands only at the start, and is no token.
                0xef if self.offset == 0 && self.rest(self.offset).starts_with("\u{feff}".as_bytes()) => {
                    self.offset += 3;
                }
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self, end: usize) {
        self.comments.push(TextRange::new(self.offset as u32, end as u32));
        self.offset = end;
    }

    /// Block comments nest.
    fn block_comment_end(&self, start: usize) -> Option<usize> {
        let mut depth = 0usize;
        let mut at = start;
        while at < self.end {
            match (self.byte(at), self.byte(at + 1)) {
                (b'/', b'*') => {
                    depth += 1;
                    at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    at += 2;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                _ => at += 1,
            }
        }
        None
    }

    /// The end of a quoted run whose content starts at `at`, and whether it was terminated.
    fn quoted_end(&self, mut at: usize, quote: u8, backslash: bool) -> (usize, bool) {
        while at < self.end {
            let byte = self.byte(at);
            if byte == quote {
                if self.byte(at + 1) != quote {
                    return (at + 1, true);
                }
                at += 2;
            } else if byte == b'\\' && backslash {
                at += 2;
            } else {
                at += 1;
            }
        }
        (self.end, false)
    }

    /// A string literal continues in the next literal if only white space with a line break is between them.
    fn string(&self, start: usize, prefix: usize, kind: TokenKind, backslash: bool) -> (TokenKind, usize) {
        let (mut end, terminated) = self.quoted_end(start + prefix + 1, b'\'', backslash);
        if !terminated {
            return (TokenKind::Unterminated, end);
        }
        while let Some(next) = self.continuation(end) {
            let (next_end, terminated) = self.quoted_end(next + 1, b'\'', backslash);
            let by_setting = || self.quoted_end(next + 1, b'\'', !self.standard_conforming_strings);
            if self.line_by_line && prefix > 0 && by_setting() != (next_end, terminated) {
                break;
            }
            if !terminated {
                return (TokenKind::Unterminated, next_end);
            }
            end = next_end;
        }
        (kind, end)
    }

    fn continuation(&self, mut at: usize) -> Option<usize> {
        let mut line_break = false;
        loop {
            match self.byte(at) {
                b'\n' | b'\r' => line_break = true,
                b' ' | b'\t' | 0x0b | 0x0c => {}
                b'-' if self.byte(at + 1) == b'-' => {
                    at += self.rest(at).iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
                    continue;
                }
                b'\'' if line_break => return Some(at),
                _ => return None,
            }
            at += 1;
        }
    }

    fn dollar(&self, start: usize) -> (TokenKind, usize) {
        let mut tag_end = start + 1;
        if self.byte(tag_end).is_ascii_digit() {
            while self.byte(tag_end).is_ascii_digit() {
                tag_end += 1;
            }
            return (TokenKind::Parameter, tag_end);
        }
        while is_word_byte(self.byte(tag_end)) && self.byte(tag_end) != b'$' {
            tag_end += 1;
        }
        if self.byte(tag_end) != b'$' {
            return (TokenKind::Invalid, start + 1);
        }
        let tag = &self.source[start..=tag_end];
        match self.source[tag_end + 1..self.end].find(tag) {
            Some(length) => (TokenKind::DollarString, tag_end + 1 + length + tag.len()),
            None => (TokenKind::Unterminated, self.end),
        }
    }

    fn number(&self, start: usize) -> usize {
        let mut at = start;
        let digits = |at: &mut usize, accept: fn(u8) -> bool| {
            while accept(self.byte(*at)) || (self.byte(*at) == b'_' && accept(self.byte(*at + 1))) {
                *at += 1;
            }
        };
        if self.byte(at) == b'0' && matches!(self.byte(at + 1), b'x' | b'X' | b'o' | b'O' | b'b' | b'B') {
            at += 2;
            digits(&mut at, |byte| byte.is_ascii_hexdigit());
            return at;
        }
        digits(&mut at, |byte| byte.is_ascii_digit());
        // `1..10` is the range of a PL/pgSQL loop, not a number with a point.
        if self.byte(at) == b'.' && self.byte(at + 1) != b'.' {
            at += 1;
            digits(&mut at, |byte| byte.is_ascii_digit());
        }
        if matches!(self.byte(at), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(at + 1), b'+' | b'-'));
            if self.byte(at + 1 + sign).is_ascii_digit() {
                at += 1 + sign;
                digits(&mut at, |byte| byte.is_ascii_digit());
            }
        }
        at
    }

    fn word(&self, start: usize) -> (TokenKind, usize) {
        let next = self.byte(start + 1);
        match self.byte(start) {
            b'e' | b'E' if next == b'\'' => return self.string(start, 1, TokenKind::String, true),
            b'b' | b'B' | b'x' | b'X' if next == b'\'' => return self.string(start, 1, TokenKind::BitString, false),
            b'u' | b'U' if next == b'&' && self.byte(start + 2) == b'\'' => {
                return self.string(start, 2, TokenKind::String, false);
            }
            b'u' | b'U' if next == b'&' && self.byte(start + 2) == b'"' => return self.quoted_identifier(start, 3),
            _ => {}
        }
        let rest = self.rest(start);
        let glued = |at: usize| self.templates && rest[at] == b'$' && matches!(rest.get(at + 1), Some(b'{' | b'%'));
        let length = (0..rest.len()).find(|at| !is_word_byte(rest[*at]) || glued(*at));
        (TokenKind::Word, length.map_or(self.end, |length| start + length))
    }

    /// A quoted identifier may hold a tag that itself holds quotes: `"{{ index .Options "Namespace" }}"`. As SQL it has
    /// to be a part of one statement, too.
    fn templated_identifier(&self, start: usize) -> Option<usize> {
        let rest = &self.source[start + 1..self.end];
        let before = rest.bytes().position(|byte| matches!(byte, b'"' | b'\n' | b'{'))?;
        let tag = rest[before..].starts_with("{{").then(|| template::length(&rest[before..]))??;
        match self.quoted_end(start + 1 + before + tag, b'"', false) {
            (end, true) if self.is_part_of_sql(start, end) => Some(end),
            _ => None,
        }
    }

    fn placeholder(&self, start: usize) -> Option<usize> {
        match self.byte(start) {
            b'"' => self.templated_identifier(start),
            b'{' => {
                let end = start + template::length(&self.source[start..self.end])?;
                let is_comment = self.byte(start + 1) == b'#';
                (is_comment || self.has_one_statement(start, end)).then_some(end)
            }
            b'$' => {
                let length = template::length(&self.source[start..self.end]);
                length.or_else(|| self.glued(start)).map(|length| start + length)
            }
            _ => None,
        }
    }

    fn glued(&self, start: usize) -> Option<usize> {
        self.glued_tag(start).filter(|(_, can_open)| self.glued_tags || !can_open).map(|(length, _)| length)
    }

    /// The length of a `$name$` at `start` that is glued to an identifier, and whether it can also open a dollar quote.
    pub(crate) fn glued_tag(&self, start: usize) -> Option<(usize, bool)> {
        let text = &self.source[..self.end];
        template::glued(text, start, self.last_tags.get_or_init(|| template::last_tags(text)))
    }

    fn has_one_statement(&self, start: usize, end: usize) -> bool {
        as_sql(self.source, TextRange::new(start as u32, end as u32)) != AsSql::Statements
    }

    fn is_part_of_sql(&self, start: usize, end: usize) -> bool {
        as_sql(self.source, TextRange::new(start as u32, end as u32)) == AsSql::Part
    }

    fn operator_end(&mut self, start: usize) -> usize {
        if !self.operators.contains(start) {
            self.operators = OperatorRun::read(&self.source.as_bytes()[..self.end], start);
        }
        self.operators.token_end(start)
    }

    fn quoted_identifier(&self, start: usize, prefix: usize) -> (TokenKind, usize) {
        match self.quoted_end(start + prefix, b'"', false) {
            (end, true) => (TokenKind::QuotedIdentifier, end),
            (end, false) => (TokenKind::Unterminated, end),
        }
    }

    fn token(&mut self, start: usize) -> (TokenKind, usize) {
        let (byte, next) = (self.byte(start), self.byte(start + 1));
        if self.templates
            && let Some(end) = self.placeholder(start)
        {
            return (TokenKind::Placeholder, end);
        }
        match byte {
            // White space and closed comments are skipped already.
            b'/' if next == b'*' => (TokenKind::Unterminated, self.end),
            b'\'' => self.string(start, 0, TokenKind::String, !self.standard_conforming_strings),
            b'"' => self.quoted_identifier(start, 1),
            b'$' => self.dollar(start),
            b'0'..=b'9' => (TokenKind::Number, self.number(start)),
            b'.' if next.is_ascii_digit() => (TokenKind::Number, self.number(start)),
            b'.' if next == b'.' => (TokenKind::Compound, start + 2),
            b':' if matches!(next, b':' | b'=') => (TokenKind::Compound, start + 2),
            b'(' | b')' | b'[' | b']' | b',' | b';' | b':' | b'.' => (TokenKind::Punctuation(byte), start + 1),
            _ if is_operator_byte(byte) => match self.operator_end(start) {
                end if self.source.as_bytes()[start..end] == *b"=>" => (TokenKind::Compound, end),
                end => (TokenKind::Operator, end),
            },
            _ if is_word_start(byte) => self.word(start),
            _ => (TokenKind::Invalid, start + 1),
        }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.skip_blank();
        if self.offset >= self.end {
            return None;
        }
        let start = self.offset;
        let (kind, end) = self.token(start);
        // Past a backslash at the very end of the text.
        self.offset = end.min(self.end);
        Some(Token { kind, range: TextRange::new(start as u32, self.offset as u32) })
    }
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_word_byte(byte: u8) -> bool {
    is_word_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

/// The identifier that a word or quoted identifier stands for: folded to lower case, or unescaped, and cut to 63 bytes.
pub fn identifier(text: &str) -> smol_str::SmolStr {
    let name = match text.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
        Some(inner) if inner.contains("\"\"") => inner.replace("\"\"", "\"").into(),
        Some(inner) => smol_str::SmolStr::new(inner),
        None if text.bytes().any(|byte| byte.is_ascii_uppercase()) => text.to_ascii_lowercase().into(),
        None => smol_str::SmolStr::new(text),
    };
    truncate_identifier(name)
}

/// PostgreSQL's NAMEDATALEN is 64: names longer than 63 bytes are cut at a character boundary.
pub fn truncate_identifier(name: smol_str::SmolStr) -> smol_str::SmolStr {
    const MAX_BYTES: usize = 63;
    if name.len() <= MAX_BYTES {
        return name;
    }
    let mut end = MAX_BYTES;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<(TokenKind, &str)> {
        tokenize(source, TextRange::new(0, source.len() as u32))
            .iter()
            .map(|token| (token.kind, token.text(source)))
            .collect()
    }

    #[test]
    fn strings_of_every_kind_are_one_token() {
        use TokenKind::{BitString, DollarString, QuotedIdentifier, String};
        for (source, kind) in [
            ("'it''s'", String),
            ("E'a\\'b'", String),
            ("U&'\\0061'", String),
            ("'a'\n  'b'", String),
            ("x'ff'", BitString),
            ("$$a;b$$", DollarString),
            ("$f$ $$ $f$", DollarString),
            ("\"a\"\"b\"", QuotedIdentifier),
        ] {
            assert_eq!(kinds(source), [(kind, source)]);
        }
    }

    #[test]
    fn backslash_is_plain_in_standard_strings() {
        assert_eq!(kinds(r"'\' x"), [(TokenKind::String, r"'\'"), (TokenKind::Word, "x")]);
    }

    #[test]
    fn operators_stop_before_comments_and_trailing_signs() {
        assert_eq!(kinds("a<--x\n"), [(TokenKind::Word, "a"), (TokenKind::Operator, "<")]);
        assert_eq!(kinds("=-1")[0], (TokenKind::Operator, "="));
        assert_eq!(kinds("@-1")[0], (TokenKind::Operator, "@-"));
        assert_eq!(kinds("f(a=>1)")[3], (TokenKind::Compound, "=>"));
    }

    #[test]
    fn loops_and_numbers() {
        assert_eq!(kinds("1..10"), [(TokenKind::Number, "1"), (TokenKind::Compound, ".."), (TokenKind::Number, "10")]);
        assert_eq!(kinds("1.5e-3 0xFF .5").len(), 3);
    }

    #[test]
    fn nothing_is_lost_without_an_end() {
        for source in ["'abc", "$x$ abc", "\"abc", "E'\\", "/* b /* c */"] {
            assert_eq!(kinds(source), [(TokenKind::Unterminated, source)]);
        }
        assert_eq!(kinds("a /* b /* c */ */"), [(TokenKind::Word, "a")]);
    }
}
