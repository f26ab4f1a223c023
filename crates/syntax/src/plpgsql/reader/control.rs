//! IF, CASE and loops.

use super::block::wrong_label;
use super::{Frame, Read, Reader};
use crate::ast::Name;
use crate::lexer::TokenKind;
use crate::plpgsql::{Branch, Case, Conditional, Else, Exit, Loop, LoopKind, Statement, Target};
use crate::source::TextRange;

impl Reader<'_> {
    pub(super) fn conditional(&mut self) -> Read<Conditional> {
        let mut branches = Vec::new();
        let mut keyword = self.expect("IF")?;
        loop {
            branches.push(self.branch(keyword, Frame::If)?);
            match self.accept("ELSIF").or_else(|| self.accept("ELSEIF")) {
                Some(next) => keyword = next,
                None => break,
            }
        }
        let otherwise = self.otherwise(Frame::Else);
        self.close("IF", branches[0].keyword);
        Ok(Conditional { branches, otherwise })
    }

    pub(super) fn case(&mut self) -> Read<Case> {
        let start = self.expect("CASE")?;
        let operand = if self.is_keyword(0, "WHEN") { None } else { Some(self.sql_until(&["WHEN"])?) };
        let mut branches = Vec::new();
        while let Some(keyword) = self.accept("WHEN") {
            branches.push(self.branch(keyword, Frame::Case)?);
        }
        if branches.is_empty() {
            return Err(self.unexpected("WHEN"));
        }
        let otherwise = self.otherwise(Frame::CaseElse);
        self.close("CASE", start);
        Ok(Case { operand, branches, otherwise })
    }

    fn branch(&mut self, keyword: TextRange, frame: Frame) -> Read<Branch> {
        let condition = self.sql_until(&["THEN"])?;
        self.expect("THEN")?;
        Ok(Branch { keyword, condition, statements: self.statements(frame) })
    }

    fn otherwise(&mut self, frame: Frame) -> Option<Else> {
        let keyword = self.accept("ELSE")?;
        Some(Else { keyword, statements: self.statements(frame) })
    }

    /// END IF, END CASE, END LOOP. What was read before a missing end stays.
    fn close(&mut self, keyword: &str, opened: TextRange) {
        if self.is_keyword(0, "END") && self.is_keyword(1, keyword) {
            self.at += 2;
            return;
        }
        let mut error = self.unexpected(&format!("END {keyword}"));
        if error.range.is_empty() {
            error.range = opened;
        }
        self.fail(error);
    }

    /// A loop of any kind, after its label.
    pub(super) fn any_loop(&mut self, label: Option<Name>) -> Read<Loop> {
        let kind = if self.accept("WHILE").is_some() {
            LoopKind::While(self.sql_until(&["LOOP"])?)
        } else if self.accept("FOR").is_some() {
            self.for_loop()?
        } else if self.accept("FOREACH").is_some() {
            self.foreach()?
        } else {
            LoopKind::Endless
        };
        let keyword = self.expect("LOOP")?;
        let statements = self.loop_statements(keyword, label.as_ref());
        Ok(Loop { label, kind, keyword, statements })
    }

    fn loop_statements(&mut self, keyword: TextRange, label: Option<&Name>) -> Vec<Statement> {
        let statements = self.statements(Frame::Loop);
        self.close("LOOP", keyword);
        let name = self.optional_name();
        if let Some(name) = name.filter(|name| label.is_none_or(|label| label.text != name.text)) {
            self.fail(wrong_label(&name));
        }
        statements
    }

    fn for_loop(&mut self) -> Read<LoopKind> {
        let targets = self.targets()?;
        self.expect("IN")?;
        if self.is_keyword(0, "EXECUTE") {
            return Ok(LoopKind::Dynamic { targets, query: self.dynamic_query(&["LOOP"])? });
        }
        if let Some(kind) = self.cursor_loop(&targets)? {
            return Ok(kind);
        }
        let from = self.at;
        let reverse = self.accept("REVERSE").is_some();
        let first = self.sql_until(&["..", "LOOP"])?;
        if !self.accept_symbol("..") {
            self.at = from;
            return Ok(LoopKind::Query { targets, query: self.sql_until(&["LOOP"])? });
        }
        let to = self.sql_until(&["BY", "LOOP"])?;
        let by = if self.accept("BY").is_some() { Some(self.sql_until(&["LOOP"])?) } else { None };
        match <[Target; 1]>::try_from(targets) {
            Ok([variable]) => Ok(LoopKind::Integer { variable, reverse, from: first, to, by }),
            Err(_) => Err(self.unexpected("one variable for an integer loop, not a list")),
        }
    }

    /// `cursor LOOP`, `cursor(arguments) LOOP`. PL/pgSQL knows a cursor by its declaration; no query looks like this.
    fn cursor_loop(&mut self, targets: &[Target]) -> Read<Option<LoopKind>> {
        let from = self.at;
        if !self.is_identifier(0) || self.is_any_keyword(0, &["SELECT", "VALUES", "REVERSE", "WITH", "TABLE"]) {
            return Ok(None);
        }
        let cursor = self.target()?;
        let arguments = if self.is_symbol(0, "(") { self.parenthesized()? } else { None };
        if self.is_keyword(0, "LOOP") {
            return Ok(Some(LoopKind::Cursor { targets: targets.to_vec(), cursor, arguments }));
        }
        self.at = from;
        Ok(None)
    }

    fn foreach(&mut self) -> Read<LoopKind> {
        let targets = self.targets()?;
        let mut slice = 0;
        if self.accept("SLICE").is_some() {
            let number = self.token(0).filter(|token| token.kind == TokenKind::Number);
            slice = number
                .and_then(|token| token.text(self.source).parse().ok())
                .ok_or_else(|| self.unexpected("a number"))?;
            self.at += 1;
        }
        self.expect("IN")?;
        self.expect("ARRAY")?;
        Ok(LoopKind::Foreach { targets, slice, array: self.sql_until(&["LOOP"])? })
    }

    /// After EXIT or CONTINUE.
    pub(super) fn exit(&mut self) -> Read<Exit> {
        let label = self.optional_name();
        let when = if self.accept("WHEN").is_some() { Some(self.sql_until(&[";"])?) } else { None };
        Ok(Exit { label, when })
    }
}
