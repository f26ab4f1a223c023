//! From a piece to its statement: as it stands, with placeholders filled, or cut in two where a semicolon is missing.

use super::placeholder::{self, ESCAPED_CAST, Filler, Hole, Placeholder, PlaceholderKind};
use super::{MAX_PIECES, Piece, PieceKind, Statement, SyntaxError, recover};
use crate::ast::{Ast, Do, FunctionBody, from_pg};
use crate::lexer::{Lexer, Token, TokenKind, tokenize};
use crate::source::TextRange;
use std::sync::Arc;

/// Maximum number of times that the fillers of a statement are changed.
const MAX_ATTEMPTS: usize = 24;
/// PostgreSQL quotes the whole rest of the text in some messages.
const MAX_MESSAGE: usize = 160;

pub(super) struct Parser<'a> {
    text: &'a str,
    /// The text with fillers in place of placeholders, made when the first one is needed.
    filled: Option<String>,
}

/// The result for a range of the text.
struct Attempt {
    tokens: Vec<Token>,
    parsed: Result<Ast, SyntaxError>,
    placeholders: Vec<Placeholder>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, filled: None }
    }

    /// Adds the statements of a piece.
    pub(super) fn parse(&mut self, piece: Piece, statements: &mut Vec<Statement>) {
        match piece.kind {
            PieceKind::PlpgsqlBlock => return statements.push(self.block(piece)),
            PieceKind::Rest => {
                let message = format!("more than {MAX_PIECES} statements in one file; the rest is not read");
                // The rest may be long, and all of it is one place.
                let range = TextRange::new(piece.range.start, piece.range.start + 1);
                return statements.push(piece.statement(Err(SyntaxError { message, range })));
            }
            _ => {}
        }
        let attempt = self.attempt(&piece, &piece.tokens);
        match &attempt.parsed {
            Err(error) if !piece.tokens.iter().any(|token| token.kind == TokenKind::Unterminated) => {
                let error = error.clone();
                statements.extend(self.recover(piece, attempt, error));
            }
            _ => statements.push(attempt.statement(piece)),
        }
    }

    /// A bare block runs as `DO $$ ... $$`.
    fn block(&self, piece: Piece) -> Statement {
        let text = self.text[piece.range.as_usize()].into();
        let keyword = piece.tokens.first().map_or(piece.range, |token| token.range);
        let body = FunctionBody::Source { text, range: piece.range };
        piece.statement(Ok(Ast::Do(Do { language: "plpgsql".into(), body, keyword })))
    }

    fn attempt(&mut self, piece: &Piece, tokens: &[Token]) -> Attempt {
        let range = Piece::token_range(tokens);
        if let Some(attempt) = self.as_quoted_names(range, tokens) {
            return attempt;
        }
        let certain = self.certain_holes(piece, tokens);
        let escapes = !piece.standard_conforming_strings && self.has_escapes(tokens);
        let raw = if certain.is_empty() && !escapes {
            let parsed = shortened(from_pg::parse_statement(self.text, range, tokens));
            if parsed.is_ok() {
                return Attempt { tokens: tokens.to_vec(), parsed, placeholders: Vec::new() };
            }
            parsed.err()
        } else {
            None
        };
        let mut holes = certain;
        let loose = placeholder::find(self.text, tokens, true);
        if loose.len() > holes.len() {
            holes.extend(
                loose.into_iter().filter(|hole| {
                    !matches!(hole.placeholder.kind, PlaceholderKind::Template | PlaceholderKind::Control)
                }),
            );
            holes.sort_by_key(|hole| hole.filled.start);
        }
        match raw {
            Some(error) if holes.is_empty() => {
                Attempt { tokens: tokens.to_vec(), parsed: Err(error), placeholders: Vec::new() }
            }
            raw => self.fill_and_parse(piece, range, holes, tokens, raw),
        }
    }

    /// `"{{ ", x, " }}"` can be a tag in a name, but also two names; where that is SQL, nothing says that it is a template.
    fn as_quoted_names(&self, range: TextRange, tokens: &[Token]) -> Option<Attempt> {
        let mut placeholders = tokens.iter().filter(|token| token.kind == TokenKind::Placeholder).peekable();
        placeholders.peek()?;
        let holds_quotes = |token: &Token| token.text(self.text).matches('"').count() > 2;
        if !placeholders.all(|token| token.text(self.text).starts_with('"') && holds_quotes(token)) {
            return None;
        }
        let tokens = tokenize(self.text, range);
        let parsed = from_pg::parse_statement(self.text, range, &tokens);
        parsed.is_ok().then_some(Attempt { tokens, parsed, placeholders: Vec::new() })
    }

    /// Replaces the holes, and changes the filler of that one before which PostgreSQL stops.
    fn fill_and_parse(
        &mut self,
        piece: &Piece,
        range: TextRange,
        mut holes: Vec<Hole>,
        raw_tokens: &[Token],
        raw: Option<SyntaxError>,
    ) -> Attempt {
        let mut first: Option<(Vec<Token>, SyntaxError)> = None;
        for _ in 0..MAX_ATTEMPTS {
            let (tokens, parsed) = self.parse_filled(piece, range, &holes);
            let error = match shortened(parsed) {
                Ok(ast) => {
                    let placeholders = holes.into_iter().map(|hole| hole.placeholder).collect();
                    return Attempt { tokens, parsed: Ok(ast), placeholders };
                }
                Err(error) => error,
            };
            let at = error.range.start;
            first.get_or_insert((tokens, error));
            let changed = holes.iter_mut().rev().filter(|hole| hole.filled.start <= at).take(2).any(Hole::refill);
            if !changed {
                break;
            }
        }
        let placeholders: Vec<_> = holes.into_iter().map(Hole::unknown).collect();
        match (raw, first) {
            // The text is wrong elsewhere: PostgreSQL's own error is the true one.
            (Some(error), _) if !placeholders.iter().any(|hole| touches(hole.range, error.range)) => {
                Attempt { tokens: raw_tokens.to_vec(), parsed: Err(error), placeholders: Vec::new() }
            }
            (_, Some((tokens, error))) => Attempt { tokens, parsed: Err(error), placeholders },
            (raw, None) => {
                let error = raw.unwrap_or(SyntaxError { message: "syntax error".to_owned(), range });
                Attempt { tokens: raw_tokens.to_vec(), parsed: Err(error), placeholders }
            }
        }
    }

    fn parse_filled(
        &mut self,
        piece: &Piece,
        range: TextRange,
        holes: &[Hole],
    ) -> (Vec<Token>, Result<Ast, SyntaxError>) {
        let mut replacement = placeholder::filled(self.text, range, holes);
        let filled = self.filled.get_or_insert_with(|| self.text.to_owned());
        if !piece.standard_conforming_strings {
            replacement = without_escapes(&replacement);
        }
        filled.replace_range(range.as_usize(), &replacement);
        let tokens: Vec<_> = Lexer::new(filled, range).collect();
        let range = Piece::token_range(&tokens);
        let parsed = from_pg::parse_statement(filled, range, &tokens);
        (tokens, parsed)
    }

    fn certain_holes(&self, piece: &Piece, tokens: &[Token]) -> Vec<Hole> {
        let mut holes = if tokens.iter().any(|token| token.kind == TokenKind::Placeholder) {
            placeholder::find(self.text, tokens, false)
        } else {
            Vec::new()
        };
        let range = Piece::token_range(tokens);
        holes.extend(piece.holes.iter().filter(|hole| range.contains(**hole)).map(|hole| {
            let text = self.text[hole.as_usize()].to_owned();
            let (kind, filler) = match text.as_str() {
                ESCAPED_CAST => (PlaceholderKind::EscapedCast, Filler::Cast),
                _ => (PlaceholderKind::MetaCommand, Filler::Blank),
            };
            Hole { placeholder: Placeholder { range: *hole, kind, text }, filler, filled: *hole }
        }));
        holes
    }

    fn has_escapes(&self, tokens: &[Token]) -> bool {
        tokens.iter().any(|token| token.kind == TokenKind::String && token.text(self.text).contains("\\'"))
    }

    /// A semicolon may be missing: cuts where a statement begins, and keeps the cuts if what follows them parses.
    fn recover(&mut self, piece: Piece, attempt: Attempt, error: SyntaxError) -> Vec<Statement> {
        let tokens = piece.tokens.as_slice();
        let mut parts: Vec<(usize, Attempt)> = Vec::new();
        let (mut from, mut error) = (0, error);
        let mut last = attempt;
        while parts.len() < recover::MAX_CUTS
            && let Some(at) = recover::cut(self.text, &tokens[from..], error.range.start)
        {
            let cut = from + at;
            parts.push((from, Attempt { tokens: tokens[from..cut].to_vec(), parsed: Err(error.clone()), ..last }));
            from = cut;
            last = self.attempt(&piece, &tokens[from..]);
            match &last.parsed {
                Ok(_) => break,
                Err(next) => error = next.clone(),
            }
        }
        // Nothing is gained by a cut behind which the text is as wrong as before it.
        if last.parsed.is_err()
            && let Some((start, before)) = parts.pop()
        {
            last = Attempt { tokens: tokens[start..].to_vec(), ..before };
            from = start;
        }
        parts.push((from, last));
        piece.cut(parts.into_iter().map(|(_, attempt)| attempt).collect())
    }
}

impl Attempt {
    fn statement(self, piece: Piece) -> Statement {
        Statement { tokens: self.tokens, placeholders: self.placeholders, ..piece.statement(self.parsed) }
    }
}

impl Piece {
    fn statement(self, parsed: Result<Ast, SyntaxError>) -> Statement {
        Statement {
            range: self.range,
            tokens: self.tokens,
            comments: self.comments,
            parsed: parsed.map(Arc::new),
            placeholders: Vec::new(),
            terminated: self.terminated,
            quoting: self.quoting,
        }
    }

    /// One statement for each part; comments go to the part that they stand before or in.
    fn cut(self, parts: Vec<Attempt>) -> Vec<Statement> {
        let quoting = self.quoting;
        let mut comments = self.comments.into_iter().peekable();
        let count = parts.len();
        let mut statements: Vec<Statement> = Vec::with_capacity(count);
        for (at, part) in parts.into_iter().enumerate() {
            let is_last = at + 1 == count;
            let mut range = if count == 1 { self.range } else { Piece::token_range(&part.tokens) };
            if is_last {
                range.end = range.end.max(self.range.end);
            }
            let mut own = Vec::new();
            while let Some(comment) = comments.next_if(|comment| is_last || comment.start < range.end) {
                own.push(comment);
            }
            statements.push(Statement {
                range,
                tokens: part.tokens,
                comments: own,
                parsed: part.parsed.map(Arc::new),
                placeholders: part.placeholders,
                terminated: is_last && self.terminated,
                quoting: quoting.filter(|quoting| range.contains(quoting.string)),
            });
        }
        statements
    }
}

fn touches(one: TextRange, other: TextRange) -> bool {
    one.start <= other.end && other.start <= one.end
}

fn shortened(parsed: Result<Ast, SyntaxError>) -> Result<Ast, SyntaxError> {
    parsed.map_err(|mut error| {
        if error.message.len() > MAX_MESSAGE {
            let end = (0..=MAX_MESSAGE).rev().find(|end| error.message.is_char_boundary(*end)).unwrap_or_default();
            let first_line = error.message[..end].lines().next().unwrap_or_default().trim_end().to_owned();
            error.message = first_line + " ...\"";
        }
        error
    })
}

/// `'it\'s'` as `'it''s'`: the grammar reads plain strings with `standard_conforming_strings` on.
fn without_escapes(text: &str) -> String {
    let mut lexer = Lexer::new(text, TextRange::new(0, text.len() as u32));
    lexer.standard_conforming_strings = false;
    let mut bytes = text.as_bytes().to_vec();
    for token in lexer.filter(|token| token.kind == TokenKind::String && token.text(text).starts_with('\'')) {
        let mut at = token.range.start as usize + 1;
        while at + 1 < token.range.end as usize {
            if bytes[at] == b'\\' {
                if bytes[at + 1] == b'\'' {
                    bytes[at] = b'\'';
                }
                at += 1;
            }
            at += 1;
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}
