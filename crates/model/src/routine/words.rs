//! The words of a body, so that many names can be searched for in it.

use pgvet_syntax::lexer::{TokenKind, identifier, tokenize};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;
use smol_str::{SmolStr, ToSmolStr};

/// Identifiers as PostgreSQL folds them, and the first position of each.
#[derive(Debug, Default)]
pub struct Words(FxHashMap<SmolStr, TextRange>);

impl Words {
    pub(super) fn of(text: &str) -> Self {
        let mut words = FxHashMap::default();
        for token in tokenize(text, TextRange::new(0, text.len() as u32)) {
            if matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier) {
                words.entry(identifier(token.text(text)).to_smolstr()).or_insert(token.range);
            }
        }
        Self(words)
    }

    /// Where the first of the names stands, if all of them do somewhere.
    pub fn first(&self, names: &[&str]) -> Option<TextRange> {
        let (first, others) = names.split_first()?;
        others.iter().all(|name| self.0.contains_key(*name)).then(|| self.0.get(*first).copied())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_they_stand_first() {
        let words =
            Words::of("BEGIN DELETE FROM Orders o WHERE o.\"Total\" > 1; RETURN 'orders'; DELETE FROM orders; END");
        assert_eq!(words.first(&["orders"]), Some(TextRange::new(18, 24)));
        assert_eq!(words.first(&["orders", "Total"]), Some(TextRange::new(18, 24)));
        assert_eq!(words.first(&["orders", "total"]), None);
        assert_eq!(words.first(&["Orders"]), None);
    }
}
