//! Cuts a text into pieces in one pass over its tokens, by the rules of PostgreSQL's psql (`psqlscan.l`).

use super::start::{Start, start};
use super::{Piece, PieceKind, SplitResult, SyntaxError, placeholder, plpgsql_block, psql};
use crate::lexer::{Lexer, Token, TokenKind};
use crate::source::TextRange;

pub(super) struct Splitter<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// Of the statement that is being read.
    tokens: Vec<Token>,
    comments: Vec<TextRange>,
    holes: Vec<TextRange>,
    parentheses: u32,
    /// Open BEGIN ATOMIC and CASE of a function's body.
    atomic: u32,
    /// Where the last statement ended, with its semicolon.
    last_end: usize,
    /// MySQL's delimiter, where the file sets one.
    delimiter: Option<&'a str>,
    /// No bare PL/pgSQL block can follow: one was looked for up to the end of the text.
    no_blocks: bool,
    /// COPYs on the present line whose data begin with the next.
    copies: u32,
    result: SplitResult,
}

impl<'a> Splitter<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut lexer = Lexer::new(text, TextRange::new(0, text.len() as u32));
        lexer.templates = true;
        Self {
            text,
            lexer,
            tokens: Vec::new(),
            comments: Vec::new(),
            holes: Vec::new(),
            parentheses: 0,
            atomic: 0,
            last_end: 0,
            delimiter: None,
            no_blocks: false,
            copies: 0,
            result: SplitResult::default(),
        }
    }

    pub(super) fn run(mut self) -> SplitResult {
        self.read_to(self.text.len());
        self.result
    }

    /// Reads up to the end of the lexer.
    fn read_to(&mut self, end: usize) {
        while let Some(token) = self.lexer.next() {
            self.read_comments(token.range.start as usize);
            self.read(token);
        }
        self.read_comments(end);
        self.finish(false);
    }

    fn read(&mut self, token: Token) {
        if self.tokens.is_empty() && self.read_first(token) || self.read_meta_command(token) {
            return;
        }
        if token.is_punctuation(b';') && self.ends_statement() || self.is_delimiter(token) {
            self.last_end = token.range.end as usize;
            self.finish(true);
            return;
        }
        match token.kind {
            TokenKind::Punctuation(b'(') => self.parentheses += 1,
            TokenKind::Punctuation(b')') => self.parentheses = self.parentheses.saturating_sub(1),
            TokenKind::Word => self.read_atomic(token),
            _ => {}
        }
        self.tokens.push(token);
    }

    /// What can stand only between statements.
    fn read_first(&mut self, token: Token) -> bool {
        let range = token.range;
        match token.kind {
            TokenKind::Punctuation(b';') => self.last_end = range.end as usize,
            TokenKind::Placeholder if placeholder::is_control(token.text(self.text)) => {
                self.push(PieceKind::TemplateTag, range);
            }
            TokenKind::Word if token.is_keyword(self.text, "DELIMITER") => return self.read_delimiter(token),
            TokenKind::Word if token.is_keyword(self.text, "BEGIN") || token.is_keyword(self.text, "DECLARE") => {
                return self.read_block(token);
            }
            _ => return self.is_delimiter(token),
        }
        true
    }

    /// `DELIMITER //` alone on its line.
    fn read_delimiter(&mut self, token: Token) -> bool {
        let start = token.range.start as usize;
        let line = &self.text[start..];
        let line = line[..line.find(['\n', '\r']).unwrap_or(line.len())].trim_end();
        let mut words = line.split_ascii_whitespace().skip(1);
        let (Some(delimiter), None) = (words.next(), words.next()) else { return false };
        if delimiter.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
            return false;
        }
        self.delimiter = (delimiter != ";").then_some(delimiter);
        let end = start + line.len();
        self.push(PieceKind::Delimiter, TextRange::new(start as u32, end as u32));
        self.lexer.seek(end);
        true
    }

    fn is_delimiter(&self, token: Token) -> bool {
        token.kind == TokenKind::Operator && self.delimiter == Some(token.text(self.text))
    }

    fn read_block(&mut self, token: Token) -> bool {
        if self.no_blocks {
            return false;
        }
        let Some((tokens, mut lexer)) = plpgsql_block::read(self.text, token, self.lexer.clone(), &mut self.no_blocks)
        else {
            return false;
        };
        self.comments.extend_from_slice(lexer.comments());
        self.result.comments.append(&mut lexer.take_comments());
        self.lexer = lexer;
        self.tokens = tokens;
        self.finish_as(PieceKind::PlpgsqlBlock, false);
        true
    }

    /// A backslash command ends a statement, as `\gset` does, unless it stands inside parentheses, as `\if` may.
    fn read_meta_command(&mut self, token: Token) -> bool {
        if token.kind != TokenKind::Invalid || token.text(self.text) != "\\" {
            return false;
        }
        let start = token.range.start as usize;
        let Some(end) = psql::command_end(self.text, start) else { return false };
        let range = TextRange::new(start as u32, end as u32);
        self.lexer.seek(end);
        if self.parentheses > 0 {
            self.holes.push(range);
            self.result.pieces.push(Piece::bare(PieceKind::MetaCommand, range));
            return true;
        }
        self.last_end = end;
        self.finish(true);
        self.push(PieceKind::MetaCommand, range);
        if psql::command_copies_from_stdin(&self.text[start..end]) {
            self.read_copy_data(end);
        }
        true
    }

    /// BEGIN ATOMIC ... END of CREATE FUNCTION, with CASE ... END inside.
    fn read_atomic(&mut self, token: Token) {
        let is = |keyword: &str| token.is_keyword(self.text, keyword);
        if self.atomic > 0 {
            if is("CASE") {
                self.atomic += 1;
            } else if is("END") {
                self.atomic -= 1;
            }
        } else if is("ATOMIC")
            && self.tokens.last().is_some_and(|last| last.is_keyword(self.text, "BEGIN"))
            && self.tokens[0].is_keyword(self.text, "CREATE")
        {
            self.atomic = 1;
        }
    }

    /// Does the semicolon that was just read end the statement?
    fn ends_statement(&self) -> bool {
        if self.atomic > 0 {
            return false;
        }
        if self.parentheses == 0 {
            return true;
        }
        // Only CREATE RULE ... DO (a; b) is right. Elsewhere a parenthesis is missing, and the next statement is near.
        let is_rule = self.tokens.iter().take(4).any(|token| token.is_keyword(self.text, "RULE"));
        !is_rule && self.resumes()
    }

    /// Does a statement begin after the semicolon that was just read?
    fn resumes(&self) -> bool {
        let mut lexer = self.lexer.clone();
        let semicolon = self.lexer.offset();
        let next: Vec<_> = lexer.by_ref().take(4).collect();
        let Some(first) = next.first() else { return true };
        let starts_line = self.text[semicolon..first.range.start as usize].contains(['\n', '\r']);
        match start(self.text, &next) {
            Some(Start::Strong) => true,
            Some(Start::Weak) => starts_line,
            None => first.text(self.text) == "\\",
        }
    }

    /// Comments before the token at `next`.
    fn read_comments(&mut self, next: usize) {
        for comment in self.lexer.take_comments() {
            self.result.comments.push(comment);
            if is_boundary(comment, self.text) {
                self.finish(false);
            } else if self.trails(comment, next) {
                if let Some(piece) = self.result.pieces.last_mut() {
                    piece.comments.push(comment);
                }
                continue;
            }
            self.comments.push(comment);
        }
    }

    /// Does the comment stand alone after the statement that ended on the same line?
    fn trails(&self, comment: TextRange, next: usize) -> bool {
        let follows = self.result.pieces.last().is_some_and(|piece| piece.kind.is_statement());
        follows
            && self.tokens.is_empty()
            && self.comments.is_empty()
            && !self.breaks_line(self.last_end, comment.start as usize)
            && (next == self.text.len() || self.breaks_line(comment.end as usize, next))
    }

    fn breaks_line(&self, from: usize, to: usize) -> bool {
        self.text.as_bytes()[from..to].iter().any(|byte| matches!(byte, b'\n' | b'\r'))
    }

    fn finish(&mut self, terminated: bool) {
        if !self.tokens.is_empty() {
            self.finish_as(PieceKind::Sql, terminated);
        }
    }

    fn finish_as(&mut self, kind: PieceKind, terminated: bool) {
        let range = Piece::token_range(&self.tokens);
        let standard_conforming_strings = self.lexer.standard_conforming_strings;
        let later = if terminated { Vec::new() } else { self.comments_after(range.end) };
        if !terminated {
            self.last_end = range.end as usize;
        }
        // Exact capacity: a file may have very many statements.
        let tokens = self.tokens.as_slice().to_vec();
        self.tokens.clear();
        let comments = std::mem::replace(&mut self.comments, later);
        let copies = terminated && psql::copies_from_stdin(self.text, &tokens);
        if let Some(on) = sets_standard_conforming_strings(self.text, &tokens) {
            self.lexer.standard_conforming_strings = on;
        }
        let holes = std::mem::take(&mut self.holes);
        self.result.pieces.push(Piece {
            kind,
            range,
            tokens,
            comments,
            terminated,
            standard_conforming_strings,
            holes,
        });
        self.parentheses = 0;
        self.atomic = 0;
        if copies {
            self.read_copy_data(self.last_end);
        }
    }

    /// Takes out the comments that stand after `end` on other lines.
    fn comments_after(&mut self, end: u32) -> Vec<TextRange> {
        let own = self
            .comments
            .iter()
            .take_while(|comment| comment.start < end || !self.breaks_line(end as usize, comment.start as usize));
        let own = own.count();
        self.comments.split_off(own)
    }

    fn push(&mut self, kind: PieceKind, range: TextRange) {
        let comments = std::mem::take(&mut self.comments);
        self.result.pieces.push(Piece { comments, ..Piece::bare(kind, range) });
    }

    /// psql runs the rest of the line first, and reads the data of all its COPYs from the next line on.
    fn read_copy_data(&mut self, after: usize) {
        self.copies += 1;
        if self.copies > 1 {
            return;
        }
        if let Some((data, _)) = psql::copy_data(self.text, after) {
            self.read_line(TextRange::new(after as u32, data.start));
        }
        let mut at = after;
        for _ in 0..std::mem::take(&mut self.copies) {
            let Some((range, terminated)) = psql::copy_data(self.text, at) else { break };
            if !terminated {
                self.result.problems.push(SyntaxError {
                    message: "COPY data has no end: a line `\\.` is missing".to_owned(),
                    range: TextRange::new(range.start, range.start),
                });
            }
            self.push(PieceKind::CopyData, range);
            at = range.end as usize;
            self.lexer.seek(at);
        }
    }

    /// Reads a part of the text as if nothing came behind it.
    fn read_line(&mut self, line: TextRange) {
        let mut lexer = Lexer::new(self.text, line);
        lexer.templates = self.lexer.templates;
        lexer.standard_conforming_strings = self.lexer.standard_conforming_strings;
        let behind = std::mem::replace(&mut self.lexer, lexer);
        let no_blocks = self.no_blocks;
        self.read_to(line.end as usize);
        let line = std::mem::replace(&mut self.lexer, behind);
        self.lexer.standard_conforming_strings = line.standard_conforming_strings;
        self.no_blocks = no_blocks;
    }
}

impl Piece {
    fn bare(kind: PieceKind, range: TextRange) -> Self {
        Self {
            kind,
            range,
            tokens: Vec::new(),
            comments: Vec::new(),
            terminated: true,
            standard_conforming_strings: true,
            holes: Vec::new(),
        }
    }
}

/// Is this an annotation of a migration tool that ends whatever stands before it?
fn is_boundary(comment: TextRange, text: &str) -> bool {
    let Some(text) = text[comment.as_usize()].strip_prefix("--") else { return false };
    if text.starts_with("> statement-breakpoint") {
        return true;
    }
    let mut words = text.split_ascii_whitespace();
    let is = |word: Option<&str>, among: &[&str]| {
        word.is_some_and(|word| among.iter().any(|other| word.eq_ignore_ascii_case(other)))
    };
    match words.next() {
        Some("+goose" | "+migrate") => is(words.next(), &["up", "down", "StatementBegin", "StatementEnd"]),
        // sql-migrate and goose accept no space after the dashes, dbmate allows options behind.
        Some(word) => {
            is(Some(word), &["migrate:up", "migrate:down"])
                || word.eq_ignore_ascii_case("changeset") && text.contains(':')
        }
        None => false,
    }
}

/// `SET [SESSION | LOCAL] standard_conforming_strings = off`.
fn sets_standard_conforming_strings(text: &str, tokens: &[Token]) -> Option<bool> {
    let mut tokens = tokens.iter();
    let verb = tokens.next()?;
    let mut name = tokens.next()?;
    if verb.is_keyword(text, "RESET")
        && (name.is_keyword(text, "standard_conforming_strings") || name.is_keyword(text, "ALL"))
    {
        return Some(true);
    }
    if name.is_keyword(text, "SESSION") || name.is_keyword(text, "LOCAL") {
        name = tokens.next()?;
    }
    if !verb.is_keyword(text, "SET") || !name.is_keyword(text, "standard_conforming_strings") {
        return None;
    }
    let value = tokens.nth(1)?.text(text).trim_matches('\'').to_ascii_lowercase();
    Some(!matches!(value.as_str(), "off" | "false" | "no" | "0" | "f" | "n"))
}
