//! Blocks: declarations, statements, exception handlers.

use super::{Frame, Read, Reader};
use crate::ast::Name;
use crate::lexer::TokenKind;
use crate::plpgsql::{
    Block, Condition, ConditionKind, CursorDeclaration, DataType, Declaration, DeclarationKind, ExceptionSection,
    Handler, SqlText, Variable,
};
use crate::source::TextRange;

impl Reader<'_> {
    /// After the label; `from` is the first token of the block.
    pub(super) fn block(&mut self, label: Option<Name>, from: usize) -> Read<Block> {
        let declare = self.accept("DECLARE");
        let declarations = if declare.is_some() { self.declarations() } else { Vec::new() };
        let begin = self.expect("BEGIN")?;
        let statements = self.statements(Frame::Block);
        let exception = self.exception_section();
        let end = self.close_block(begin, from);
        let name = self.optional_name();
        if let Some(name) = name.filter(|name| label.as_ref().is_none_or(|label| label.text != name.text)) {
            self.fail(wrong_label(&name));
        }
        Ok(Block { label, declare, declarations, begin, statements, exception, end, range: self.range_since(from) })
    }

    fn close_block(&mut self, begin: TextRange, from: usize) -> TextRange {
        self.accept("END").unwrap_or_else(|| {
            let mut error = self.unexpected("END of the block");
            if error.range.is_empty() {
                error.range = begin;
            }
            self.fail(error);
            TextRange::at(self.range_since(from).end)
        })
    }

    fn declarations(&mut self) -> Vec<Declaration> {
        let mut declarations = Vec::new();
        while !self.at_end() && !self.is_keyword(0, "BEGIN") {
            // PostgreSQL allows DECLARE to be repeated.
            if self.accept("DECLARE").is_some() {
                continue;
            }
            match self.declaration() {
                Ok(declaration) => declarations.push(declaration),
                Err(error) => {
                    self.fail(error);
                    self.skip_declaration();
                }
            }
        }
        declarations
    }

    fn skip_declaration(&mut self) {
        while !self.at_end() && !self.is_keyword(0, "BEGIN") && !self.accept_symbol(";") {
            self.at += 1;
        }
    }

    fn declaration(&mut self) -> Read<Declaration> {
        let from = self.at;
        let name = self.name("a declaration or BEGIN")?;
        let cursor_at = usize::from(self.is_keyword(0, "SCROLL")) + 2 * usize::from(self.is_keyword(0, "NO"));
        let kind = if self.is_keyword(0, "ALIAS") && self.is_keyword(1, "FOR") {
            self.at += 2;
            DeclarationKind::Alias(self.target()?)
        } else if self.is_keyword(cursor_at, "CURSOR") {
            DeclarationKind::Cursor(self.cursor_declaration()?)
        } else {
            DeclarationKind::Variable(self.variable()?)
        };
        let range = self.range_since(from);
        self.expect_symbol(";")?;
        Ok(Declaration { name, kind, range })
    }

    fn variable(&mut self) -> Read<Variable> {
        let constant = self.accept("CONSTANT").is_some();
        let data_type = self.data_type()?;
        let collation = self.collation()?;
        let not_null = self.accept("NOT").is_some();
        if not_null {
            self.expect("NULL")?;
        }
        let has_default = self.accept_symbol(":=") || self.accept_symbol("=") || self.accept("DEFAULT").is_some();
        let default = if has_default { Some(self.sql_until(&[";"])?) } else { None };
        Ok(Variable { constant, data_type, collation, not_null, default })
    }

    fn collation(&mut self) -> Read<Option<TextRange>> {
        if self.accept("COLLATE").is_none() {
            return Ok(None);
        }
        let from = self.at;
        self.path()?;
        Ok(Some(self.range_since(from)))
    }

    pub(super) fn data_type(&mut self) -> Read<DataType> {
        let from = self.at;
        if self.is_identifier(0) {
            let path = self.path()?;
            let (percent_type, percent_rowtype) = (self.is_keyword(1, "TYPE"), self.is_keyword(1, "ROWTYPE"));
            if self.is_symbol(0, "%") && (percent_type || percent_rowtype) {
                self.at += 2;
                let is_array = self.array_suffix();
                let range = self.range_since(from);
                return Ok(if percent_type {
                    DataType::PercentType { path, is_array, range }
                } else {
                    DataType::PercentRowtype { path, is_array, range }
                });
            }
            self.at = from;
        }
        self.named_type(from).map(DataType::Named)
    }

    /// `[]`, `[3]`, `ARRAY`, `ARRAY[3]`.
    fn array_suffix(&mut self) -> bool {
        let from = self.at;
        self.accept("ARRAY");
        while self.accept_symbol("[") {
            if self.token(0).is_some_and(|token| token.kind == TokenKind::Number) {
                self.at += 1;
            }
            self.accept_symbol("]");
        }
        self.at > from
    }

    /// The followers of a type are those of `read_datatype` in `pl_gram.y`.
    fn named_type(&mut self, from: usize) -> Read<SqlText> {
        let mut depth = 0usize;
        while let Some(token) = self.token(0) {
            let is_symbol = |symbols: &[&str]| symbols.iter().any(|symbol| self.is_symbol(0, symbol));
            let follower =
                is_symbol(&[";", ",", ")", "=", ":="]) || self.is_any_keyword(0, &["COLLATE", "NOT", "DEFAULT"]);
            if depth == 0 && follower || token.is_punctuation(b';') {
                break;
            }
            if is_symbol(&["(", "["]) {
                depth += 1;
            } else if is_symbol(&[")", "]"]) {
                depth = depth.saturating_sub(1);
            }
            self.at += 1;
        }
        if self.at == from || depth > 0 { Err(self.unexpected("a data type")) } else { Ok(self.sql_since(from)) }
    }

    /// `[NO] SCROLL`.
    pub(super) fn scroll(&mut self) -> Read<Option<bool>> {
        if self.accept("NO").is_some() {
            self.expect("SCROLL")?;
            return Ok(Some(false));
        }
        Ok(self.accept("SCROLL").map(|_| true))
    }

    fn cursor_declaration(&mut self) -> Read<CursorDeclaration> {
        let scroll = self.scroll()?;
        self.expect("CURSOR")?;
        let mut arguments = Vec::new();
        if self.accept_symbol("(") {
            loop {
                arguments.push((self.name("the name of an argument")?, self.data_type()?));
                if !self.accept_symbol(",") {
                    break;
                }
            }
            self.expect_symbol(")")?;
        }
        if self.accept("IS").is_none() {
            self.expect("FOR")?;
        }
        Ok(CursorDeclaration { scroll, arguments, query: self.sql_until(&[";"])? })
    }

    fn exception_section(&mut self) -> Option<ExceptionSection> {
        let from = self.at;
        let keyword = self.accept("EXCEPTION")?;
        let mut handlers = Vec::new();
        while self.is_keyword(0, "WHEN") {
            let start = self.at;
            match self.handler() {
                Ok(handler) => handlers.push(handler),
                Err(error) => {
                    self.fail(error);
                    self.recover(start);
                }
            }
        }
        if handlers.is_empty() {
            let error = self.unexpected("WHEN");
            self.fail(error);
        }
        Some(ExceptionSection { keyword, handlers, range: self.range_since(from) })
    }

    fn handler(&mut self) -> Read<Handler> {
        let from = self.at;
        let when = self.expect("WHEN")?;
        let mut conditions = vec![self.condition()?];
        while self.accept("OR").is_some() {
            conditions.push(self.condition()?);
        }
        self.expect("THEN")?;
        let statements = self.statements(Frame::Handler);
        Ok(Handler { when, conditions, statements, range: self.range_since(from) })
    }

    /// A condition of a handler or of RAISE.
    pub(super) fn condition(&mut self) -> Read<Condition> {
        let from = self.at;
        let name = self.name("the name of a condition")?;
        let kind = if name.text == "sqlstate" && self.is_string(0) {
            let literal = self.take();
            ConditionKind::SqlState(literal.text(self.source).trim_matches('\'').into())
        } else if name.text == "others" {
            ConditionKind::Others
        } else {
            ConditionKind::Name(name.text)
        };
        Ok(Condition { kind, range: self.range_since(from) })
    }
}

pub(super) fn wrong_label(name: &Name) -> super::ReadError {
    super::ReadError {
        range: name.range,
        message: format!("end label \"{}\" is not the label of what it ends", name.text),
    }
}
