//! OPEN, FETCH, MOVE, and GET DIAGNOSTICS.

use super::{Read, Reader};
use crate::lexer::TokenKind;
use crate::plpgsql::{Fetch, GetDiagnostics, Open, OpenSource};

impl Reader<'_> {
    /// After the keyword.
    pub(super) fn open(&mut self) -> Read<Open> {
        let cursor = self.target()?;
        let scroll = self.scroll()?;
        let source = if self.accept("FOR").is_some() {
            OpenSource::Unbound(self.query_source()?)
        } else if self.is_symbol(0, "(") {
            OpenSource::Bound(self.parenthesized()?)
        } else {
            OpenSource::Bound(None)
        };
        Ok(Open { cursor, scroll, source })
    }

    /// After FETCH or MOVE.
    pub(super) fn fetch(&mut self) -> Read<Fetch> {
        let from = self.at;
        let mut direction = None;
        if let Some(source) = self.find_from() {
            self.at = source;
            direction = (source > from).then(|| self.range_since(from));
            self.at += 1;
        }
        let cursor = self.target()?;
        let into = if self.is_keyword(0, "INTO") { Some(self.into()?) } else { None };
        Ok(Fetch { direction, cursor, into })
    }

    /// The FROM or IN between a direction and the cursor.
    fn find_from(&self) -> Option<usize> {
        let mut depth = 0usize;
        for (at, token) in self.tokens.iter().enumerate().skip(self.at) {
            match token.kind {
                TokenKind::Punctuation(b'(' | b'[') => depth += 1,
                TokenKind::Punctuation(b')' | b']') => depth = depth.saturating_sub(1),
                TokenKind::Punctuation(b';') => return None,
                TokenKind::Word if depth == 0 => {
                    if token.is_keyword(self.source, "FROM") || token.is_keyword(self.source, "IN") {
                        return Some(at);
                    }
                    if token.is_keyword(self.source, "INTO") {
                        return None;
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// After GET.
    pub(super) fn get_diagnostics(&mut self) -> Read<GetDiagnostics> {
        let stacked = self.accept("STACKED").is_some();
        self.accept("CURRENT");
        self.expect("DIAGNOSTICS")?;
        let mut items = Vec::new();
        loop {
            let target = self.target()?;
            if !self.accept_symbol("=") {
                self.expect_symbol(":=")?;
            }
            items.push((target, self.name("a diagnostics item")?));
            if !self.accept_symbol(",") {
                return Ok(GetDiagnostics { stacked, items });
            }
        }
    }
}
