//! From tokens to the tree.

mod block;
mod control;
mod cursor;
mod embedded;
mod raise;
mod statement;

use super::{Block, Body, BodyText, CompilerOption, ReadError, SqlText, Target};
use crate::ast::Name;
use crate::lexer::{Token, TokenKind, identifier, tokenize};
use crate::source::TextRange;
use smol_str::SmolStr;

/// Statements may nest this deep; PostgreSQL's limit is its stack.
const MAX_DEPTH: usize = 100;

/// The words that PL/pgSQL reserves (PostgreSQL 18 `src/pl/plpgsql/src/pl_reserved_kwlist.h`).
const RESERVED: [&str; 24] = [
    "all", "begin", "by", "case", "declare", "else", "end", "execute", "for", "foreach", "from", "if", "in", "into",
    "loop", "not", "null", "or", "strict", "then", "to", "using", "when", "while",
];

/// Reads a function body.
pub fn read(body: &BodyText<'_>) -> Body {
    let source = body.source();
    let tokens = tokenize(source, body.range());
    let mut reader = Reader { body, source, tokens, at: 0, frames: Vec::new(), errors: Vec::new() };
    let options = reader.options();
    let block = reader.outermost_block();
    Body { options, block, errors: reader.errors }
}

/// The start of a token, short enough for a message.
fn first_line(text: &str) -> &str {
    const MOST: usize = 40;
    let line = text.lines().next().unwrap_or_default();
    line.char_indices().nth(MOST).map_or(line, |(end, _)| &line[..end])
}

type Read<T> = Result<T, ReadError>;

/// A list of statements that is being read, by what ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    Block,
    Handler,
    If,
    Else,
    Case,
    CaseElse,
    Loop,
}

struct Reader<'a> {
    body: &'a BodyText<'a>,
    source: &'a str,
    tokens: Vec<Token>,
    at: usize,
    frames: Vec<Frame>,
    errors: Vec<ReadError>,
}

/// Looking at tokens and taking them.
impl Reader<'_> {
    fn token(&self, ahead: usize) -> Option<Token> {
        self.tokens.get(self.at + ahead).copied()
    }

    fn at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    fn is_keyword(&self, ahead: usize, keyword: &str) -> bool {
        self.token(ahead).is_some_and(|token| token.is_keyword(self.source, keyword))
    }

    fn is_any_keyword(&self, ahead: usize, keywords: &[&str]) -> bool {
        keywords.iter().any(|keyword| self.is_keyword(ahead, keyword))
    }

    /// Whether it is this punctuation or operator.
    fn is_symbol(&self, ahead: usize, symbol: &str) -> bool {
        self.token(ahead).is_some_and(|token| {
            matches!(token.kind, TokenKind::Punctuation(_) | TokenKind::Compound | TokenKind::Operator)
                && token.text(self.source) == symbol
        })
    }

    fn is_string(&self, ahead: usize) -> bool {
        self.token(ahead).is_some_and(|token| matches!(token.kind, TokenKind::String | TokenKind::DollarString))
    }

    /// Takes the next token, or an empty one at the end.
    fn take(&mut self) -> Token {
        let token = self.token(0);
        self.at += usize::from(token.is_some());
        token.unwrap_or(Token { kind: TokenKind::Invalid, range: TextRange::at(self.body.range().end) })
    }

    /// Takes the keyword if it is next, and gives its range in the file.
    fn accept(&mut self, keyword: &str) -> Option<TextRange> {
        self.is_keyword(0, keyword).then(|| self.take_range())
    }

    fn accept_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(0, symbol);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, keyword: &str) -> Read<TextRange> {
        self.accept(keyword).ok_or_else(|| self.unexpected(keyword))
    }

    fn expect_symbol(&mut self, symbol: &str) -> Read<()> {
        if self.accept_symbol(symbol) { Ok(()) } else { Err(self.unexpected(symbol)) }
    }

    /// Takes the next token and gives its range in the file.
    fn take_range(&mut self) -> TextRange {
        let token = self.take();
        self.body.to_file_range(token.range)
    }

    /// An error at the next token.
    fn unexpected(&self, expected: &str) -> ReadError {
        match self.token(0) {
            Some(token) => ReadError {
                range: self.body.to_file_range(token.range),
                message: format!("expected {expected} at or near \"{}\"", first_line(token.text(self.source))),
            },
            None => ReadError {
                range: TextRange::at(self.body.to_file(self.body.range().end)),
                message: format!("expected {expected} at the end of the function body"),
            },
        }
    }

    /// The source range from token `from` to the token before the next.
    fn place_since(&self, from: usize) -> TextRange {
        let start = self.tokens.get(from).map_or(self.body.range().end, |token| token.range.start);
        let last = self.at.checked_sub(1).and_then(|last| self.tokens.get(last));
        TextRange::new(start, last.map_or(start, |token| token.range.end).max(start))
    }

    /// The same in the file.
    fn range_since(&self, from: usize) -> TextRange {
        self.body.to_file_range(self.place_since(from))
    }

    /// The text from token `from` to the token before the next.
    fn sql_since(&self, from: usize) -> SqlText {
        let place = self.place_since(from);
        SqlText { range: self.body.to_file_range(place), place, text: self.source[place.as_usize()].to_owned() }
    }

    fn fail(&mut self, error: ReadError) {
        self.errors.push(error);
    }
}

/// Names.
impl Reader<'_> {
    /// Whether it is a name, and not a word that PL/pgSQL reserves.
    fn is_identifier(&self, ahead: usize) -> bool {
        let Some(token) = self.token(ahead) else { return false };
        match token.kind {
            TokenKind::QuotedIdentifier => true,
            TokenKind::Word => {
                let text = token.text(self.source);
                !RESERVED.iter().any(|word| word.eq_ignore_ascii_case(text))
            }
            _ => false,
        }
    }

    fn name(&mut self, expected: &str) -> Read<Name> {
        if !self.is_identifier(0) {
            return Err(self.unexpected(expected));
        }
        let token = self.take();
        Ok(Name::new(identifier(token.text(self.source)), self.body.to_file_range(token.range)))
    }

    /// `a.b.c`: the words, folded. After a point every word is a name.
    fn path(&mut self) -> Read<Vec<SmolStr>> {
        let mut names = Vec::new();
        if self.token(0).is_some_and(|token| token.kind == TokenKind::Parameter) {
            let parameter = self.take();
            names.push(parameter.text(self.source).into());
        } else {
            names.push(self.name("a name")?.text);
        }
        while self.is_symbol(0, ".") && self.is_word(1) {
            self.at += 1;
            let token = self.take();
            names.push(identifier(token.text(self.source)));
        }
        Ok(names)
    }

    fn is_word(&self, ahead: usize) -> bool {
        self.token(ahead).is_some_and(|token| matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier))
    }

    fn target(&mut self) -> Read<Target> {
        let from = self.at;
        let names = self.path()?;
        Ok(Target { names, range: self.range_since(from) })
    }

    fn targets(&mut self) -> Read<Vec<Target>> {
        let mut targets = vec![self.target()?];
        while self.accept_symbol(",") {
            targets.push(self.target()?);
        }
        Ok(targets)
    }

    fn optional_name(&mut self) -> Option<Name> {
        if self.is_identifier(0) { self.name("a name").ok() } else { None }
    }
}

/// The frame around the statements.
impl Reader<'_> {
    /// `#variable_conflict use_column`, `#option dump`, `#print_strict_params on`.
    fn options(&mut self) -> Vec<CompilerOption> {
        let mut options = Vec::new();
        while self.is_symbol(0, "#") && self.is_word(1) && self.is_word(2) {
            let from = self.at;
            self.at += 1;
            let (name, value) = (self.take(), self.take());
            let (name, value) = (identifier(name.text(self.source)), identifier(value.text(self.source)));
            options.push(CompilerOption { name, value, range: self.range_since(from) });
        }
        options
    }

    fn outermost_block(&mut self) -> Block {
        let from = self.at;
        let block = match self.label().and_then(|label| self.block(label, from)) {
            Ok(block) => block,
            Err(error) => {
                self.fail(error);
                return Block::default();
            }
        };
        self.accept_symbol(";");
        if !self.at_end() && self.errors.last().is_none_or(|error| !error.range.is_empty()) {
            let error = self.unexpected("the end of the function body");
            self.fail(error);
        }
        block
    }

    /// `<<label>>`.
    fn label(&mut self) -> Read<Option<Name>> {
        if !self.accept_symbol("<<") {
            return Ok(None);
        }
        let name = self.name("a label")?;
        self.expect_symbol(">>")?;
        Ok(Some(name))
    }
}
