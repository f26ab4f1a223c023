//! The words of a text, so that many names can be searched for in it.

use pgvet_syntax::lexer::{TokenKind, identifier, tokenize};
use pgvet_syntax::source::TextRange;
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::{SmolStr, StrExt, ToSmolStr};

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

/// All words of texts, in lower case, those of strings and comments included: SQL can be put together from strings.
#[derive(Debug, Clone, Default)]
pub struct AllWords(FxHashSet<SmolStr>);

impl<'t> FromIterator<&'t str> for AllWords {
    fn from_iter<T: IntoIterator<Item = &'t str>>(texts: T) -> Self {
        Self(texts.into_iter().flat_map(words_of).map(StrExt::to_lowercase_smolstr).collect())
    }
}

impl AllWords {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(SmolStr::as_str)
    }

    /// Whether the texts may name this. They may if they have all words of the name.
    pub fn may_name(&self, name: &str) -> bool {
        words_of(name).all(|word| self.0.contains(word) || self.0.contains(&word.to_lowercase_smolstr()))
    }
}

/// The words of a text as they stand. A dollar can be part of a name, but `name$tag$` ends a quoted text.
pub fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|character: char| !(character.is_alphanumeric() || character == '_'));
    words.filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_are_those_of_strings_too() {
        let words: AllWords =
            ["EXECUTE $s$DROP TABLE Orders_old$s$ || 'two'", "words; -- \"Mixed\""].into_iter().collect();
        for (name, expected) in
            [("orders_old", true), ("orders", false), ("Mixed", true), ("two words", true), ("two dogs", false)]
        {
            assert_eq!(words.may_name(name), expected, "{name}");
        }
    }

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
