//! The tokens of one statement, and where in them something stands.
//!
//! `pg_query` gives a location to most expressions and relations and to few commands; the rest is found here.

use super::depth;
use crate::ast::Name;
use crate::lexer::{Token, TokenKind, identifier};
use crate::source::TextRange;
use pgvet_parser::tree as pg;
use smol_str::SmolStr;

/// A half-open range of token indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub(super) fn new(start: usize, end: usize) -> Self {
        Self { start, end: end.max(start) }
    }

    pub(super) fn from(self, start: usize) -> Self {
        Self::new(start, self.end)
    }

    pub(super) fn to(self, end: usize) -> Self {
        Self::new(self.start, end)
    }

    pub(super) fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

/// The parsed text and its tokens.
pub(super) struct Context<'a> {
    source: &'a str,
    /// The offset to add to PostgreSQL's locations; negative if the parsed text has words that the source lacks.
    base: i64,
    tokens: &'a [Token],
    /// For a bracket the index of its partner, else the token's own.
    partners: Vec<u32>,
}

impl<'a> Context<'a> {
    pub(super) fn new(source: &'a str, base: i64, tokens: &'a [Token]) -> Self {
        Self { source, base, tokens, partners: partners(tokens) }
    }

    pub(super) fn is_too_deep(&self) -> bool {
        depth::is_too_deep(self.source, self.tokens)
    }

    pub(super) fn everything(&self) -> Span {
        Span::new(0, self.tokens.len())
    }

    /// The index of the token at a location of PostgreSQL's, which is -1 where there is none.
    pub(super) fn index(&self, location: i32) -> Option<usize> {
        if location < 0 {
            return None;
        }
        self.index_of(u32::try_from(i64::from(location) + self.base).unwrap_or_default())
    }

    /// The index of the token at an offset of the source.
    pub(super) fn index_of(&self, offset: u32) -> Option<usize> {
        let index = self.tokens.partition_point(|token| token.range.start < offset);
        (index < self.tokens.len()).then_some(index)
    }

    /// The token that an error at `offset` of the parsed text points at; behind `range` where it is at the end.
    pub(super) fn error_range(&self, offset: usize, range: TextRange) -> TextRange {
        let offset = u32::try_from(self.base + i64::from(offset as u32)).unwrap_or(range.start);
        let token = self.tokens.iter().find(|token| token.range.end > offset);
        token.map_or(TextRange::at(range.end), |token| token.range)
    }

    /// The range of the token at a location; absent where there is none.
    pub(super) fn range_at(&self, location: i32) -> TextRange {
        self.index(location).map_or(TextRange::default(), |index| self.token_range(index))
    }

    /// The index of the first token after `range`.
    pub(super) fn index_after(&self, range: TextRange) -> usize {
        self.tokens.partition_point(|token| token.range.start < range.end)
    }

    pub(super) fn range(&self, span: Span) -> TextRange {
        if span.is_empty() {
            return TextRange::default();
        }
        self.token_range(span.start).cover(self.token_range(span.end - 1))
    }

    pub(super) fn source_of(&self, span: Span) -> &'a str {
        self.source.get(self.range(span).as_usize()).unwrap_or_default()
    }

    pub(super) fn token_range(&self, index: usize) -> TextRange {
        self.tokens.get(index).map_or(TextRange::default(), |token| token.range)
    }

    pub(super) fn kind(&self, index: usize) -> Option<TokenKind> {
        self.tokens.get(index).map(|token| token.kind)
    }

    pub(super) fn text(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |token| token.text(self.source))
    }

    /// Whether the token is this keyword, which is given in upper case.
    pub(super) fn is(&self, index: usize, keyword: &str) -> bool {
        self.tokens.get(index).is_some_and(|token| token.is_keyword(self.source, keyword))
    }

    pub(super) fn is_any(&self, index: usize, keywords: &[&str]) -> bool {
        keywords.iter().any(|keyword| self.is(index, keyword))
    }

    pub(super) fn is_mark(&self, index: usize, character: u8) -> bool {
        self.tokens.get(index).is_some_and(|token| token.is_punctuation(character))
    }

    /// The index after the keywords, if all of them are at `index`; else `index`.
    pub(super) fn skip(&self, index: usize, keywords: &[&str]) -> usize {
        let all = keywords.iter().enumerate().all(|(at, keyword)| self.is(index + at, keyword));
        if all { index + keywords.len() } else { index }
    }

    /// The index after the one of these keywords that is at `index`, if any is.
    pub(super) fn skip_any(&self, index: usize, keywords: &[&str]) -> usize {
        index + usize::from(self.is_any(index, keywords))
    }

    /// The bracket that belongs to the one at `index`; `index` itself where it is no bracket.
    pub(super) fn partner(&self, index: usize) -> usize {
        self.partners.get(index).map_or(index, |partner| *partner as usize)
    }

    /// The text between the brackets that open at `index`.
    pub(super) fn inside(&self, index: usize) -> Span {
        Span::new(index + 1, self.partner(index))
    }

    /// The next token at the same depth.
    pub(super) fn next(&self, index: usize) -> usize {
        self.partner(index).max(index) + 1
    }

    /// The first of the span's own tokens (not in brackets) that fulfils the condition.
    pub(super) fn find(&self, span: Span, mut condition: impl FnMut(usize) -> bool) -> Option<usize> {
        let mut at = span.start;
        while at < span.end {
            if condition(at) {
                return Some(at);
            }
            at = self.next(at);
        }
        None
    }

    /// The first of these keywords outside brackets.
    pub(super) fn find_word(&self, span: Span, keywords: &[&str]) -> Option<usize> {
        self.find(span, |at| self.is_any(at, keywords))
    }

    /// The last token outside brackets that fulfils the condition.
    pub(super) fn find_last(&self, span: Span, mut condition: impl FnMut(usize) -> bool) -> Option<usize> {
        let mut at = span.end;
        while at > span.start {
            at -= 1;
            if condition(at) {
                return Some(at);
            }
            at = self.partner(at).min(at);
        }
        None
    }

    /// The parts of the span between separators outside brackets.
    pub(super) fn split(&self, span: Span, separator: u8) -> Vec<Span> {
        let mut parts = Vec::new();
        let mut rest = span;
        while let Some(at) = self.find(rest, |at| self.is_mark(at, separator)) {
            parts.push(rest.to(at));
            rest = span.from(at + 1);
        }
        parts.push(rest);
        parts
    }

    /// From the start of the span through the first of these keywords; the first token alone without it.
    pub(super) fn through_word(&self, span: Span, keywords: &[&str]) -> Span {
        let last = self.find_word(span, keywords).unwrap_or(span.start);
        span.to((last + 1).min(span.end))
    }

    /// Behind a possibly qualified name.
    pub(super) fn dotted_end(&self, start: usize) -> usize {
        let mut end = start + 1;
        while self.is_mark(end, b'.') {
            end += 2;
        }
        end.min(self.tokens.len())
    }

    /// Whether the identifier `name` is at `index`.
    pub(super) fn is_name(&self, index: usize, name: &str) -> bool {
        match self.kind(index) {
            Some(TokenKind::Word) => {
                let text = self.text(index);
                (text.eq_ignore_ascii_case(name) && !name.bytes().any(|byte| byte.is_ascii_uppercase()))
                    || (text.len() > name.len() && identifier(text) == name)
            }
            Some(TokenKind::QuotedIdentifier) => {
                let text = self.text(index);
                text.starts_with(['u', 'U']) || identifier(text) == name
            }
            _ => false,
        }
    }

    /// The first token of the span, in brackets or not, that is the identifier `name`.
    pub(super) fn find_name(&self, span: Span, name: &str) -> Option<usize> {
        (span.start..span.end).find(|index| self.is_name(*index, name))
    }

    /// A name that is somewhere in the span.
    pub(super) fn name(&self, span: Span, text: &str) -> Name {
        let index = self.find_name(span, text).unwrap_or(span.start);
        Name::new(text, self.token_range(index))
    }

    /// A name that is at `index`.
    pub(super) fn name_at(&self, index: usize, text: &str) -> Name {
        Name::new(text, self.token_range(index))
    }

    /// Names that are one after the other in the span.
    pub(super) fn names(&self, mut span: Span, nodes: pg::List<'_>) -> Vec<Name> {
        let mut names = Vec::with_capacity(nodes.len());
        for text in nodes.iter().filter_map(string) {
            let found = self.find_name(span, text);
            names.push(self.name_at(found.unwrap_or(span.start), text));
            span = found.map_or(span, |index| span.from(index + 1));
        }
        names
    }
}

fn partners(tokens: &[Token]) -> Vec<u32> {
    let mut partners: Vec<u32> = (0..tokens.len() as u32).collect();
    let mut open = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Punctuation(b'(' | b'[') => open.push(index),
            TokenKind::Punctuation(b')' | b']') => {
                if let Some(start) = open.pop() {
                    partners[start] = index as u32;
                    partners[index] = start as u32;
                }
            }
            _ => {}
        }
    }
    partners
}

/// The text of a String node.
pub(super) fn string(node: pg::NodeRef<'_>) -> Option<&str> {
    match node.node() {
        pg::Node::String(text) => Some(&text.sval),
        _ => None,
    }
}

/// Collects without room for more: `collect` makes room for four at least, and a file may have very many lists of one.
pub(super) fn exact<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut list = Vec::with_capacity(items.size_hint().1.unwrap_or_default());
    list.extend(items);
    list
}

/// The texts of String nodes.
pub(super) fn strings(nodes: pg::List<'_>) -> Vec<SmolStr> {
    exact(nodes.iter().filter_map(string).map(SmolStr::new))
}

/// The last two names of a list.
pub(super) fn schema_and_name(nodes: pg::List<'_>) -> (Option<SmolStr>, SmolStr) {
    let mut names = nodes.iter().rev().filter_map(string).map(SmolStr::new);
    let name = names.next().unwrap_or_default();
    (names.next(), name)
}

/// A text that PostgreSQL leaves empty where nothing was written.
pub(super) fn written(text: &str) -> Option<SmolStr> {
    (!text.is_empty()).then(|| SmolStr::new(text))
}
