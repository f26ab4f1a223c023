//! SQL statements and expressions inside PL/pgSQL: where they end, and INTO.

use super::{Read, Reader};
use crate::lexer::{Token, TokenKind};
use crate::plpgsql::{DynamicQuery, Execute, Into, QuerySource, Sql, SqlText};
use crate::source::TextRange;

impl Reader<'_> {
    /// SQL up to one of the words or symbols outside parentheses, as `read_sql_construct` in `pl_gram.y` finds it.
    pub(super) fn sql_until(&mut self, stops: &[&str]) -> Read<SqlText> {
        let from = self.at;
        let mut depth = 0usize;
        loop {
            let Some(token) = self.token(0) else { return Err(self.unexpected(stops[0])) };
            if depth == 0 && stops.iter().any(|stop| self.is_stop(token, stop)) {
                break;
            }
            match token.kind {
                TokenKind::Punctuation(b'(' | b'[') => depth += 1,
                TokenKind::Punctuation(b')' | b']') => match depth.checked_sub(1) {
                    Some(outer) => depth = outer,
                    None => return Err(self.unexpected("matching parentheses")),
                },
                TokenKind::Punctuation(b';') if depth > 0 => return Err(self.unexpected("a closing parenthesis")),
                TokenKind::Punctuation(b';') => return Err(self.unexpected(stops[0])),
                TokenKind::Unterminated => return Err(self.unexpected("the end of a quoted string")),
                _ => {}
            }
            self.at += 1;
        }
        if self.at == from { Err(self.unexpected("an expression")) } else { Ok(self.sql_since(from)) }
    }

    fn is_stop(&self, token: Token, stop: &str) -> bool {
        match token.kind {
            TokenKind::Word => token.text(self.source).eq_ignore_ascii_case(stop),
            TokenKind::Punctuation(_) | TokenKind::Compound => token.text(self.source) == stop,
            _ => false,
        }
    }

    /// `(...)`: what is inside, if anything.
    pub(super) fn parenthesized(&mut self) -> Read<Option<SqlText>> {
        self.expect_symbol("(")?;
        if self.accept_symbol(")") {
            return Ok(None);
        }
        let inside = self.sql_until(&[")"])?;
        self.expect_symbol(")")?;
        Ok(Some(inside))
    }

    /// `INTO [STRICT] targets`.
    pub(super) fn into(&mut self) -> Read<Into> {
        let from = self.at;
        self.expect("INTO")?;
        let strict = self.accept("STRICT").is_some();
        let targets = self.targets()?;
        Ok(Into { strict, targets, range: self.range_since(from) })
    }

    /// `EXECUTE expression [USING ...]` up to one of the stops.
    pub(super) fn dynamic_query(&mut self, stops: &[&str]) -> Read<DynamicQuery> {
        let keyword = self.expect("EXECUTE")?;
        let expression = self.sql_until(&[stops, &["USING"]].concat())?;
        let using = if self.accept("USING").is_some() { self.list_until(stops)? } else { Vec::new() };
        Ok(DynamicQuery { keyword, expression, using })
    }

    /// Expressions between commas.
    pub(super) fn list_until(&mut self, stops: &[&str]) -> Read<Vec<SqlText>> {
        let stops = [stops, &[","]].concat();
        let mut list = vec![self.sql_until(&stops)?];
        while self.accept_symbol(",") {
            list.push(self.sql_until(&stops)?);
        }
        Ok(list)
    }

    /// A static query, or EXECUTE, up to the semicolon.
    pub(super) fn query_source(&mut self) -> Read<QuerySource> {
        if self.is_keyword(0, "EXECUTE") {
            self.dynamic_query(&[";"]).map(QuerySource::Dynamic)
        } else {
            self.sql_until(&[";"]).map(QuerySource::Static)
        }
    }

    /// EXECUTE as a statement: INTO and USING may come in any order.
    pub(super) fn execute(&mut self) -> Read<Execute> {
        let mut query = self.dynamic_query(&["INTO", ";"])?;
        let into = if self.is_keyword(0, "INTO") { Some(self.into()?) } else { None };
        if query.using.is_empty() && self.accept("USING").is_some() {
            query.using = self.list_until(&[";"])?;
        }
        Ok(Execute { query, into })
    }

    /// An SQL statement, as `make_execsql_stmt` in `pl_gram.y` reads it.
    pub(super) fn sql(&mut self) -> Read<Sql> {
        let from = self.at;
        let is_import = self.is_keyword(0, "IMPORT");
        let routine = self.defines_routine();
        let (mut parentheses, mut blocks) = (0usize, 0usize);
        let mut into: Option<(Into, TextRange)> = None;
        loop {
            let Some(token) = self.token(0) else { return Err(self.unexpected("a semicolon")) };
            match token.kind {
                TokenKind::Punctuation(b';') if parentheses == 0 && blocks == 0 => break,
                TokenKind::Punctuation(b'(') => parentheses += 1,
                TokenKind::Punctuation(b')') => parentheses = parentheses.saturating_sub(1),
                TokenKind::Unterminated => return Err(self.unexpected("the end of a quoted string")),
                TokenKind::Word if routine && parentheses == 0 => {
                    if self.is_any_keyword(0, &["BEGIN", "CASE"]) {
                        blocks += 1;
                    } else if self.is_keyword(0, "END") {
                        blocks = blocks.saturating_sub(1);
                    }
                }
                TokenKind::Word if self.is_keyword(0, "INTO") && !is_import && !self.follows_insert() => {
                    if into.is_some() {
                        return Err(self.unexpected("INTO only once"));
                    }
                    let start = self.at;
                    let clause = self.into()?;
                    into = Some((clause, self.place_since(start)));
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
        let mut text = self.sql_since(from);
        if let Some((_, place)) = &into {
            text.blank(*place);
        }
        Ok(Sql { text, into: into.map(|(clause, _)| clause) })
    }

    /// INSERT INTO and MERGE INTO have an INTO of their own.
    fn follows_insert(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        before.is_some_and(|token| token.is_keyword(self.source, "INSERT") || token.is_keyword(self.source, "MERGE"))
    }

    /// `CREATE [OR REPLACE] {FUNCTION | PROCEDURE}`: its body may be `BEGIN ATOMIC ...; END`.
    fn defines_routine(&self) -> bool {
        let replace = self.is_keyword(1, "OR") && self.is_keyword(2, "REPLACE");
        self.is_keyword(0, "CREATE") && self.is_any_keyword(if replace { 3 } else { 1 }, &["FUNCTION", "PROCEDURE"])
    }
}

impl SqlText {
    /// Overwrites a part with spaces, so that everything else keeps its place.
    fn blank(&mut self, place: TextRange) {
        let start = place.start.saturating_sub(self.place.start) as usize;
        let length = (place.end - place.start) as usize;
        self.text.replace_range(start..start + length, &" ".repeat(length));
    }
}
