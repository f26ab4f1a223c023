//! Lists of statements: what comes next, where a list ends, and how to go on after an error.

use super::{Frame, MAX_DEPTH, Read, ReadError, Reader};
use crate::lexer::TokenKind;
use crate::plpgsql::{Assign, Chain, Statement, StatementKind, Target};

impl Reader<'_> {
    /// Statements up to what ends the frame, or an enclosing frame, or the text.
    pub(super) fn statements(&mut self, frame: Frame) -> Vec<Statement> {
        let mut statements = Vec::new();
        if self.frames.len() >= MAX_DEPTH {
            let message = format!("statements nested more than {MAX_DEPTH} deep are not read");
            let range = self.body.to_file_range(self.place_since(self.at.saturating_sub(1)));
            self.fail(ReadError { range, message });
            self.at = self.tokens.len();
            return statements;
        }
        self.frames.push(frame);
        while !self.at_end() {
            if self.at_terminator() {
                if self.frames.iter().rev().any(|frame| self.ends(*frame)) {
                    break;
                }
                let error = self.unexpected("a statement");
                self.fail(error);
                self.skip_terminator();
                continue;
            }
            let start = self.at;
            match self.statement() {
                Ok(statement) => statements.push(statement),
                Err(error) => {
                    self.fail(error);
                    self.recover(start);
                }
            }
        }
        self.frames.pop();
        statements
    }

    /// Whether the next token is a word that ends some list of statements.
    fn at_terminator(&self) -> bool {
        self.is_any_keyword(0, &["END", "ELSE", "WHEN"])
            || (self.is_any_keyword(0, &["ELSIF", "ELSEIF", "EXCEPTION"]) && !self.is_assigned())
    }

    /// Whether the current terminator ends this frame.
    fn ends(&self, frame: Frame) -> bool {
        let end_of = |keyword| self.is_keyword(0, "END") && self.is_keyword(1, keyword);
        let elsif = self.is_any_keyword(0, &["ELSE", "ELSIF", "ELSEIF"]);
        match frame {
            Frame::Block => self.is_keyword(0, "EXCEPTION") || self.ends_block(),
            Frame::Handler => self.is_keyword(0, "WHEN") || self.ends_block(),
            Frame::If => elsif || end_of("IF"),
            Frame::Else => end_of("IF"),
            Frame::Case => self.is_any_keyword(0, &["WHEN", "ELSE"]) || end_of("CASE"),
            Frame::CaseElse => end_of("CASE"),
            Frame::Loop => end_of("LOOP"),
        }
    }

    fn ends_block(&self) -> bool {
        self.is_keyword(0, "END") && !self.is_any_keyword(1, &["IF", "CASE", "LOOP"])
    }

    /// Skips `END IF;`, `END LOOP;` and so on where nothing was open.
    fn skip_terminator(&mut self) {
        let is_end = self.is_keyword(0, "END");
        self.at += if is_end { 2 } else { 1 };
        if is_end {
            self.accept_symbol(";");
        }
    }

    /// Whether the current word is a variable: followed by `:=`, `=`, `[` or `.`.
    fn is_assigned(&self) -> bool {
        [":=", "=", "[", "."].iter().any(|symbol| self.is_symbol(1, symbol))
    }

    /// After a statement that could not be read and began at token `start`: past its semicolon, or up to an END that is
    /// not the end of a CASE expression.
    pub(super) fn recover(&mut self, start: usize) {
        self.at = self.at.max(start);
        let mut cases = 0usize;
        while !self.at_end() {
            if self.accept_symbol(";") {
                return;
            }
            if self.is_keyword(0, "END") {
                match cases.checked_sub(1) {
                    Some(open) => cases = open,
                    None => break,
                }
            } else if self.is_keyword(0, "CASE") {
                cases += 1;
            }
            self.at += 1;
        }
        // Without this an END at which nothing was read would be met for ever.
        if self.at == start && !self.at_terminator() {
            self.at += 1;
        }
    }

    fn statement(&mut self) -> Read<Statement> {
        let from = self.at;
        // Past `<<label>>`.
        self.at += if self.is_symbol(0, "<<") { 3 } else { 0 };
        let keyword = self.take_range();
        self.at = from;
        let kind = self.statement_kind()?;
        let range = self.range_since(from);
        if self.accept_symbol(";") {
            return Ok(Statement { kind, keyword, range });
        }
        // What was read of a compound statement is worth keeping.
        let error = self.unexpected("a semicolon");
        if matches!(
            kind,
            StatementKind::Block(_) | StatementKind::If(_) | StatementKind::Case(_) | StatementKind::Loop(_)
        ) {
            if self.errors.last().is_none_or(|last| last.range != error.range) {
                self.fail(error);
            }
            return Ok(Statement { kind, keyword, range });
        }
        Err(error)
    }

    fn statement_kind(&mut self) -> Read<StatementKind> {
        let Some(token) = self.token(0) else { return Err(self.unexpected("a statement")) };
        let is_variable = self.is_identifier(0) || token.kind == TokenKind::Parameter;
        if is_variable && self.is_assigned() {
            return self.assignment();
        }
        match token.kind {
            TokenKind::Word => {}
            TokenKind::Operator if token.text(self.source) == "<<" => return self.labelled(),
            _ => return Err(self.unexpected("a statement")),
        }
        let word = token.text(self.source).to_ascii_uppercase();
        match word.as_str() {
            "BEGIN" | "DECLARE" => return self.nested_block(None),
            "LOOP" | "WHILE" | "FOR" | "FOREACH" => {
                return Ok(StatementKind::Loop(Box::new(self.any_loop(None)?)));
            }
            "IF" => return self.conditional().map(StatementKind::If),
            "CASE" => return self.case().map(StatementKind::Case),
            "EXECUTE" => return self.execute().map(StatementKind::Execute),
            "PERFORM" => return self.perform(),
            "CALL" | "DO" => return self.sql_until(&[";"]).map(StatementKind::Call),
            _ => {}
        }
        let reserved = !self.is_identifier(0) && word != "NULL";
        if reserved {
            return Err(self.unexpected("a statement"));
        }
        self.at += 1;
        Ok(match word.as_str() {
            "NULL" => StatementKind::Null,
            "RETURN" => return self.returning(),
            "RAISE" => StatementKind::Raise(self.raise()?),
            "ASSERT" => StatementKind::Assert(self.assert()?),
            "EXIT" => StatementKind::Exit(self.exit()?),
            "CONTINUE" => StatementKind::Continue(self.exit()?),
            "GET" => StatementKind::GetDiagnostics(self.get_diagnostics()?),
            "OPEN" => StatementKind::Open(self.open()?),
            "FETCH" => StatementKind::Fetch(self.fetch()?),
            "MOVE" => StatementKind::Move(self.fetch()?),
            "CLOSE" => StatementKind::Close(self.target()?),
            "COMMIT" => StatementKind::Commit(self.chain()?),
            "ROLLBACK" => StatementKind::Rollback(self.chain()?),
            _ => {
                self.at -= 1;
                StatementKind::Sql(self.sql()?)
            }
        })
    }

    fn labelled(&mut self) -> Read<StatementKind> {
        let from = self.at;
        let label = self.label()?;
        if self.is_any_keyword(0, &["LOOP", "WHILE", "FOR", "FOREACH"]) {
            return Ok(StatementKind::Loop(Box::new(self.any_loop(label)?)));
        }
        Ok(StatementKind::Block(Box::new(self.block(label, from)?)))
    }

    fn nested_block(&mut self, label: Option<crate::ast::Name>) -> Read<StatementKind> {
        Ok(StatementKind::Block(Box::new(self.block(label, self.at)?)))
    }

    fn assignment(&mut self) -> Read<StatementKind> {
        let from = self.at;
        let names = self.path()?;
        loop {
            if self.is_symbol(0, "[") {
                self.at += 1;
                self.sql_until(&["]"])?;
                self.at += 1;
            } else if self.is_symbol(0, ".") && self.is_word(1) {
                self.at += 2;
            } else {
                break;
            }
        }
        let target = Target { names, range: self.range_since(from) };
        if !self.accept_symbol(":=") {
            self.expect_symbol("=")?;
        }
        Ok(StatementKind::Assign(Assign { target, value: self.sql_until(&[";"])? }))
    }

    /// PERFORM is SELECT whose result is dropped; the words are equally long but for a space.
    fn perform(&mut self) -> Read<StatementKind> {
        let mut text = self.sql_until(&[";"])?;
        text.text.replace_range(.."PERFORM".len(), " SELECT");
        Ok(StatementKind::Perform(text))
    }

    fn returning(&mut self) -> Read<StatementKind> {
        let next = self.accept("NEXT").is_some();
        if !next && self.accept("QUERY").is_some() {
            return self.query_source().map(StatementKind::ReturnQuery);
        }
        let value = if self.is_symbol(0, ";") { None } else { Some(self.sql_until(&[";"])?) };
        Ok(if next { StatementKind::ReturnNext(value) } else { StatementKind::Return(value) })
    }

    fn chain(&mut self) -> Read<Chain> {
        if self.accept("AND").is_none() {
            return Ok(Chain(false));
        }
        let no = self.accept("NO").is_some();
        self.expect("CHAIN")?;
        Ok(Chain(!no))
    }
}
