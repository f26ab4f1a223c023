//! Cuts a text into pieces in one pass over its tokens, by the rules of PostgreSQL's psql (`psqlscan.l`).

mod doubts;
mod script;

use super::psql::{Branches, Certainty, Variables};
use super::reading::Settings;
use super::start::{Start, start};
use super::{MAX_PIECES, Piece, PieceKind, SplitResult, placeholder, plpgsql_block};
use crate::lexer::{Lexer, Token, TokenKind, tokenize};
use crate::source::TextRange;
use script::Before;

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
    /// Number of tokens that may still be read ahead in search of the end of bare PL/pgSQL blocks.
    ahead: usize,
    /// COPYs on the present line whose data begin with the next.
    copies: usize,
    /// The pieces that are not handed over yet: the last one may still get a comment.
    pieces: Vec<Piece>,
    /// Those from here on are not sent yet: `\;` separates them.
    unsent: usize,
    /// Pieces that were handed over.
    taken: usize,
    /// Whether one of them is a statement.
    has_taken_statement: bool,
    take: &'a mut dyn FnMut(Piece),
    settings: Settings,
    /// Where the text begins that was not sent yet.
    sent_to: usize,
    /// Whether the text can change the settings at all.
    follows_settings: bool,
    has_backslash: bool,
    /// Whether a command of psql came before.
    has_command: bool,
    variables: Variables,
    branches: Branches<Before>,
    /// Where the text begins that psql skips because of a condition.
    skipped_from: Option<usize>,
    result: SplitResult,
}

impl<'a> Splitter<'a> {
    pub(super) fn new(text: &'a str, take: &'a mut dyn FnMut(Piece)) -> Self {
        let mut lexer = Lexer::new(text, TextRange::new(0, text.len() as u32));
        lexer.templates = true;
        lexer.line_by_line = true;
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
            ahead: text.len(),
            copies: 0,
            pieces: Vec::new(),
            unsent: 0,
            taken: 0,
            has_taken_statement: false,
            take,
            settings: Settings::default(),
            sent_to: 0,
            follows_settings: Settings::concern(text),
            has_backslash: text.contains('\\'),
            has_command: false,
            variables: Variables::default(),
            branches: Branches::default(),
            skipped_from: None,
            result: SplitResult::default(),
        }
    }

    /// Hands over the pieces in order, and returns all else.
    pub(super) fn run(mut self) -> SplitResult {
        self.read_to(self.text.len());
        self.doubt_encoding(self.text.len());
        self.hand_over(self.pieces.len());
        self.result
    }

    fn hand_over(&mut self, count: usize) {
        for piece in self.pieces.drain(..count) {
            self.has_taken_statement |= piece.kind.is_statement();
            (self.take)(piece);
        }
        (self.taken, self.unsent) = (self.taken + count, self.unsent.saturating_sub(count));
    }

    /// Reads up to the end of the lexer.
    fn read_to(&mut self, end: usize) {
        while let Some(token) = self.lexer.next() {
            self.read_comments(token.range.start as usize);
            if self.taken + self.pieces.len() >= MAX_PIECES && self.tokens.is_empty() {
                let rest = TextRange::new(token.range.start, end as u32);
                self.lexer.seek(end);
                self.push(PieceKind::Rest, rest);
                break;
            }
            self.read(token);
        }
        self.read_comments(end);
        if end == self.text.len() {
            self.end_branches();
        }
        self.finish(false);
        self.send();
    }

    fn read(&mut self, token: Token) {
        if self.has_backslash && self.read_command(token) {
            return;
        }
        if self.branches.active() != Certainty::No {
            if self.tokens.is_empty() && self.read_first(token) {
                return;
            }
            if token.is_punctuation(b';') && self.ends_statement() || self.is_delimiter(token) {
                self.last_end = token.range.end as usize;
                self.finish(true);
                self.send();
                return;
            }
            self.doubt_token(token);
        }
        match token.kind {
            TokenKind::Punctuation(b'(') => self.parentheses += 1,
            TokenKind::Punctuation(b')') => self.parentheses = self.parentheses.saturating_sub(1),
            TokenKind::Word => {
                self.read_atomic(token);
                let takes_alias = token.is_keyword(self.text, "SELECT") || token.is_keyword(self.text, "RETURNING");
                self.lexer.glued_tags &= !takes_alias;
            }
            _ => {}
        }
        self.tokens.push(token);
    }

    /// Reads input that is allowed only between statements.
    fn read_first(&mut self, token: Token) -> bool {
        let range = token.range;
        match token.kind {
            TokenKind::Punctuation(b';') => {
                self.last_end = range.end as usize;
                self.send();
            }
            TokenKind::Placeholder if placeholder::is_control(token.text(self.text)) => {
                self.doubt_token(token);
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
        let Some((tokens, mut lexer)) = plpgsql_block::read(self.text, token, self.lexer.clone(), &mut self.ahead)
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

    /// BEGIN ATOMIC ... END of CREATE FUNCTION, with CASE ... END inside, as far as they stand outside of parentheses.
    fn read_atomic(&mut self, token: Token) {
        let is = |keyword: &str| token.is_keyword(self.text, keyword);
        if self.parentheses > 0 {
            return;
        }
        if self.atomic > 0 {
            if is("CASE") {
                self.atomic += 1;
            } else if is("END") {
                self.atomic -= 1;
            }
        } else if is("ATOMIC")
            && self.tokens.last().is_some_and(|last| last.is_keyword(self.text, "BEGIN"))
            && self.defines_routine()
        {
            self.atomic = 1;
        }
    }

    /// `CREATE [OR REPLACE] {FUNCTION | PROCEDURE}`.
    fn defines_routine(&self) -> bool {
        let is =
            |at: usize, keyword: &str| self.tokens.get(at).is_some_and(|token| token.is_keyword(self.text, keyword));
        let kind = if is(1, "OR") && is(2, "REPLACE") { 3 } else { 1 };
        is(0, "CREATE") && (is(kind, "FUNCTION") || is(kind, "PROCEDURE"))
    }

    /// Whether the semicolon that was just read ends the statement.
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

    /// Whether a statement begins after the semicolon that was just read.
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
            if is_boundary(comment, self.text) && self.branches.active() != Certainty::No {
                self.finish(false);
                self.send();
            } else if self.trails(comment, next) {
                if let Some(piece) = self.pieces.last_mut() {
                    piece.comments.push(comment);
                }
                continue;
            }
            self.comments.push(comment);
        }
    }

    /// Whether the comment is alone after the statement that ended on the same line.
    fn trails(&self, comment: TextRange, next: usize) -> bool {
        let follows = self.pieces.last().is_some_and(|piece| piece.kind.is_statement());
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
        let later = if terminated { Vec::new() } else { self.comments_after(range.end) };
        if !terminated {
            self.last_end = range.end as usize;
        }
        // Exact capacity: a file may have very many statements.
        let tokens = self.tokens_of_server().unwrap_or_else(|| self.tokens.as_slice().to_vec());
        self.tokens.clear();
        let comments = std::mem::replace(&mut self.comments, later);
        let quoting = self.quoting(&tokens);
        self.pieces.push(Piece {
            kind,
            range,
            tokens,
            comments,
            terminated,
            standard_conforming_strings: self.lexer.standard_conforming_strings,
            holes: std::mem::take(&mut self.holes),
            quoting,
        });
        self.parentheses = 0;
        self.atomic = 0;
        self.lexer.glued_tags = true;
    }

    /// The tokens as PostgreSQL reads them, where psql forgets that a string began with `E`.
    fn tokens_of_server(&self) -> Option<Vec<Token>> {
        let is_string = |token: &Token, first: &[char]| {
            matches!(token.kind, TokenKind::String | TokenKind::Unterminated)
                && token.text(self.text).starts_with(first)
        };
        let forgets = |pair: &[Token]| is_string(&pair[0], &['e', 'E', 'u', 'U']) && is_string(&pair[1], &['\'']);
        let breaks = |pair: &[Token]| self.breaks_line(pair[0].range.end as usize, pair[1].range.start as usize);
        if !self.has_backslash || !self.tokens.windows(2).any(|pair| forgets(pair) && breaks(pair)) {
            return None;
        }
        Some(tokenize(self.text, Piece::token_range(&self.tokens)))
    }

    /// Ends the statements that psql sends together: from here on their settings are in effect, and the data of their
    /// COPYs follow.
    fn send(&mut self) {
        let unsent = std::mem::replace(&mut self.unsent, self.pieces.len());
        let copies_data = |piece: &&Piece| {
            piece.kind == PieceKind::Sql && piece.terminated && super::psql::copies_from_stdin(self.text, &piece.tokens)
        };
        let copies = self.pieces[unsent..].iter().filter(copies_data).count();
        self.doubt_readings(unsent);
        if self.follows_settings {
            self.run_settings(unsent);
        }
        if copies > 0 {
            self.read_copy_data(self.last_end, copies);
        }
        self.hand_over(self.unsent.min(self.pieces.len().saturating_sub(1)));
    }

    fn run_settings(&mut self, unsent: usize) {
        let runs = self.branches.active();
        for piece in self.pieces[unsent..].iter().filter(|piece| piece.kind.is_statement()) {
            match runs {
                Certainty::Yes => self.settings.run(self.text, &piece.tokens),
                _ => self.settings.may_run(self.text, &piece.tokens),
            }
        }
        self.lexer.standard_conforming_strings = self.settings.present().standard_conforming_strings.value;
    }

    /// Removes the comments that are after `end` on other lines.
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
        self.has_command |= kind == PieceKind::MetaCommand;
        self.pieces.push(Piece { comments, ..Piece::bare(kind, range) });
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
            quoting: None,
        }
    }
}

/// Whether this is an annotation of a migration tool that ends any statement before it.
fn is_boundary(comment: TextRange, text: &str) -> bool {
    let before = &text[..comment.start as usize];
    let Some(text) = text[comment.as_usize()].strip_prefix("--") else { return false };
    // bun reads whole lines, and Drizzle splits anywhere.
    if text.starts_with("> statement-breakpoint") || is_bun_split(before, text) || is_migratus_split(before, text) {
        return true;
    }
    let mut words = text.split_ascii_whitespace();
    let is = |word: Option<&str>, among: &[&str]| {
        word.is_some_and(|word| among.iter().any(|other| word.eq_ignore_ascii_case(other)))
    };
    match words.next() {
        // A statement that is not finished before StatementBegin continues after it.
        Some("+goose" | "+migrate") => is(words.next(), &["up", "down", "StatementEnd"]),
        // MyBatis Migrations, `-- //@UNDO`.
        Some("//") => is(words.next(), &["@UNDO"]),
        // Play, `-- --- !Ups`.
        Some("---" | "--") => is(words.next(), &["!Ups", "!Downs"]) || text.starts_with("-- create above / drop below"),
        // sql-migrate and goose accept no space after the dashes, dbmate allows options behind.
        Some(word) => {
            is(Some(word), &["migrate:up", "migrate:down", ":up", ":down", "!Ups", "!Downs", "//@UNDO"])
                || word.eq_ignore_ascii_case("changeset") && text.contains(':')
        }
        None => false,
    }
}

/// Whether a comment is a line at which Migratus splits. Source: Migratus, `migratus/migration/sql.clj`.
fn is_migratus_split(before: &str, behind_dashes: &str) -> bool {
    behind_dashes.starts_with(";;") && before.rsplit('\n').next().is_none_or(|line| line.trim().is_empty())
}

/// Whether a comment is the line `--bun:split`, given the text before it and what follows the dashes.
fn is_bun_split(before: &str, behind_dashes: &str) -> bool {
    behind_dashes.trim_end_matches('\r') == "bun:split" && (before.is_empty() || before.ends_with('\n'))
}
