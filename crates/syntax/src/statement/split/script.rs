//! The work of psql between and inside of statements: commands, branches and the data of COPY.

use super::Splitter;
use crate::ast::SyntaxError;
use crate::lexer::{Lexer, Token, TokenKind};
use crate::source::TextRange;
use crate::statement::placeholder::ESCAPED_CAST;
use crate::statement::psql::{Action, Certainty, Command, command_copies_from_stdin, copy_data};
use crate::statement::{DoubtKind, Piece, PieceKind};

/// The statement that is being read, as a branch that psql does not run leaves it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    tokens: usize,
    parentheses: u32,
    atomic: u32,
}

impl Splitter<'_> {
    /// Reads a backslash command, if one begins at the token.
    pub(super) fn read_command(&mut self, token: Token) -> bool {
        if token.kind != TokenKind::Invalid || token.text(self.text) != "\\" {
            return false;
        }
        let start = token.range.start as usize;
        match self.text.as_bytes().get(start + 1) {
            Some(b';') => self.read_separator(start),
            Some(b':') if self.text[start..].starts_with(ESCAPED_CAST) => {
                let end = start + ESCAPED_CAST.len();
                self.lexer.seek(end);
                self.add_command(TextRange::new(start as u32, end as u32));
            }
            Some(b':') => self.add_command(token.range),
            _ => {
                let text = self.text;
                let command = Command::read(text, start, &self.variables);
                self.lexer.seek(command.range.end as usize);
                self.run_command(&command);
            }
        }
        true
    }

    /// `\;` separates statements that are sent together.
    fn read_separator(&mut self, start: usize) {
        let range = TextRange::new(start as u32, start as u32 + 2);
        self.lexer.seek(start + 2);
        if self.branches.active() != Certainty::No && self.parentheses == 0 {
            self.last_end = start + 2;
            self.finish(true);
        }
        self.add_command(range);
    }

    fn run_command(&mut self, command: &Command<'_>) {
        match command.action {
            Action::If | Action::Elif | Action::Else | Action::EndIf => self.branch(command),
            _ if self.branches.active() == Certainty::No => {}
            Action::Send | Action::SendAndRun => self.send_by(command),
            Action::Quit if self.branches.active() == Certainty::Yes => return self.quit(command),
            Action::Reset if self.branches.active() == Certainty::Yes => self.forget(command),
            Action::Copy if command_copies_from_stdin(self.text, command.arguments) => {
                self.finish(false);
                self.add_command(command.range);
                return self.read_copy_data(command.range.end as usize, 1);
            }
            _ => self.run_other(command),
        }
        if command.runs_program(self.text) && self.branches.active() != Certainty::No {
            self.doubt(DoubtKind::Program, command.range, None);
        }
        self.add_command(command.range);
    }

    /// Commands that change what is read later, or run what is not in the text.
    fn run_other(&mut self, command: &Command<'_>) {
        let is_certain = self.branches.active() == Certainty::Yes;
        let before = self.settings.clone();
        match command.action {
            Action::Connect => self.settings.connect(),
            Action::Encoding if !command.arguments.is_empty() => {
                self.settings.set_encoding(command.argument(0), command.range);
            }
            Action::Set => {
                if let Some(name) = command.argument(0) {
                    self.variables.set(name, command.joined(1).filter(|_| is_certain));
                    if name == "SINGLELINE" {
                        self.doubt(DoubtKind::SingleLine, command.range, None);
                    }
                }
            }
            Action::Unset => self.variables.unset(command.argument(0).unwrap_or_default()),
            Action::Receive => self.variables.set(command.received(), None),
            Action::Include => self.doubt(DoubtKind::IncludedFile, command.range, None),
            Action::Unknown => self.doubt(DoubtKind::UnknownCommand, command.range, None),
            _ => {}
        }
        if !is_certain {
            self.settings.differs_maybe(&before, command.range);
        }
        self.lexer.standard_conforming_strings = self.settings.present().standard_conforming_strings.value;
    }

    /// Sends the statement, as `\g`, `\gx` and `\gset` do.
    fn send_by(&mut self, command: &Command<'_>) {
        let waiting = &self.pieces[self.unsent..];
        let has_statement = !self.tokens.is_empty() || waiting.iter().any(|piece| piece.kind.is_statement());
        self.last_end = command.range.end as usize;
        if has_statement {
            self.finish(true);
            self.send();
        } else if self.has_taken_statement || self.pieces.iter().any(|piece| piece.kind.is_statement()) {
            self.doubt(DoubtKind::RunsAgain, command.range, None);
        }
        if command.action == Action::SendAndRun {
            self.doubt(DoubtKind::QueryResult, command.range, None);
        }
        if command.name == "gset" {
            self.variables.set_any();
        }
    }

    /// `\quit`: nothing after it is read. psql sends the text before it.
    fn quit(&mut self, command: &Command<'_>) {
        self.last_end = command.range.end as usize;
        self.finish(true);
        self.send();
        self.add_command(command.range);
        self.skip(command.range.end as usize, self.text.len());
        self.lexer.seek(self.text.len());
    }

    /// `\reset`: psql forgets the statement.
    fn forget(&mut self, command: &Command<'_>) {
        if let Some(first) = self.tokens.first().map(|token| token.range.start as usize) {
            self.restore(Before { tokens: 0, parentheses: 0, atomic: 0 });
            self.skip(first, command.range.start as usize);
        }
    }

    fn branch(&mut self, command: &Command<'_>) {
        let present = Before { tokens: self.tokens.len(), parentheses: self.parentheses, atomic: self.atomic };
        let restored = match command.action {
            Action::If => {
                self.branches.begin(command.condition(), present);
                None
            }
            Action::Elif => self.branches.next(command.condition(), false, present),
            Action::Else => self.branches.next(Certainty::Yes, true, present),
            _ => self.branches.end(),
        };
        if let Some(before) = restored {
            self.restore(before);
        }
        if self.branches.active() == Certainty::No {
            self.skipped_from.get_or_insert(command.range.end as usize);
        } else if let Some(from) = self.skipped_from.take() {
            self.skip(from, command.range.start as usize);
        }
    }

    /// The text ends, and with it all branches.
    pub(super) fn end_branches(&mut self) {
        while self.branches.is_open() {
            if let Some(before) = self.branches.end() {
                self.restore(before);
            }
        }
        if let Some(from) = self.skipped_from.take() {
            self.skip(from, self.text.len());
        }
    }

    fn restore(&mut self, before: Before) {
        self.tokens.truncate(before.tokens);
        if self.tokens.is_empty() {
            self.holes.clear();
        }
        (self.parentheses, self.atomic) = (before.parentheses, before.atomic);
    }

    /// psql does not run this part of the text.
    fn skip(&mut self, from: usize, to: usize) {
        let text = &self.text[from..to];
        let start = from + (text.len() - text.trim_start().len());
        let end = from + text.trim_end().len();
        if start < end {
            let range = TextRange::new(start as u32, end as u32);
            self.holes.retain(|hole| !range.contains(*hole));
            self.add(PieceKind::NotRun, range);
        }
    }

    fn add_command(&mut self, range: TextRange) {
        self.add(PieceKind::MetaCommand, range);
    }

    /// Adds a piece that is no SQL: between statements, or as a hole in the present one.
    fn add(&mut self, kind: PieceKind, range: TextRange) {
        if self.tokens.is_empty() {
            self.push(kind, range);
        } else {
            self.holes.push(range);
            self.pieces.push(Piece::bare(kind, range));
        }
    }

    /// psql runs the rest of the line first, and reads the data of all its COPYs from the next line on.
    pub(super) fn read_copy_data(&mut self, after: usize, copies: usize) {
        self.copies += copies;
        if self.copies > copies {
            return;
        }
        if let Some((data, _)) = copy_data(self.text, after) {
            self.read_line(TextRange::new(after as u32, data.start));
        }
        let mut at = after;
        for _ in 0..std::mem::take(&mut self.copies) {
            let Some((range, terminated)) = copy_data(self.text, at) else { break };
            if !terminated {
                self.result.problems.push(SyntaxError {
                    message: "COPY data has no end: a line `\\.` is missing".to_owned(),
                    range: TextRange::new(range.start, range.start),
                });
            }
            self.doubt_copy_data(range);
            self.push(PieceKind::CopyData, range);
            at = range.end as usize;
            self.sent_to = at;
            self.lexer.seek(at);
        }
    }

    /// Reads a part of the text as if nothing came after it.
    fn read_line(&mut self, line: TextRange) {
        let mut lexer = Lexer::new(self.text, line);
        lexer.templates = self.lexer.templates;
        lexer.line_by_line = self.lexer.line_by_line;
        lexer.standard_conforming_strings = self.lexer.standard_conforming_strings;
        let behind = std::mem::replace(&mut self.lexer, lexer);
        self.read_to(line.end as usize);
        let line = std::mem::replace(&mut self.lexer, behind);
        self.lexer.standard_conforming_strings = line.standard_conforming_strings;
    }
}
