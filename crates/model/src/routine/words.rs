//! The words of a text, so that many names can be searched for in it.

use pgvet_syntax::lexer::{Token, TokenKind, identifier, tokenize};
use pgvet_syntax::source::TextRange;
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::{SmolStr, StrExt, ToSmolStr};

/// Identifiers as PostgreSQL folds them, and the first position of each.
#[derive(Debug, Default)]
pub struct Words {
    first: FxHashMap<SmolStr, TextRange>,
    /// The first position of each where it may be the name of a relation, with the schema before it.
    relations: FxHashMap<SmolStr, Vec<(Qualifier, TextRange)>>,
}

/// The schema before the name of a relation, if there is one.
#[derive(Debug, PartialEq, Eq)]
struct Qualifier(Option<SmolStr>);

impl Words {
    pub(super) fn of(text: &str) -> Self {
        let mut words = Self::default();
        let tokens: Vec<Token> = tokenize(text, TextRange::new(0, text.len() as u32)).into_iter().collect();
        for (at, token) in tokens.iter().enumerate().filter(|(_, token)| is_name(token)) {
            let name = identifier(token.text(text)).to_smolstr();
            if let Some(qualifier) = qualifier_of_relation(text, &tokens, at) {
                let places = words.relations.entry(name.clone()).or_default();
                if places.iter().all(|(known, _)| *known != qualifier) {
                    places.push((qualifier, token.range));
                }
            }
            words.first.entry(name).or_insert(token.range);
        }
        words
    }

    /// Where the relation may be named first, with its schema or without one.
    pub fn first_relation(&self, schema: &str, name: &str) -> Option<TextRange> {
        let places = self.relations.get(name)?.iter();
        let is_it = |written: &Qualifier| written.0.as_ref().is_none_or(|written| written == schema);
        places.filter(|(written, _)| is_it(written)).map(|(_, range)| *range).next()
    }

    /// Where the first of the names stands, if all of them do somewhere.
    pub fn first(&self, names: &[&str]) -> Option<TextRange> {
        let (first, others) = names.split_first()?;
        others.iter().all(|name| self.first.contains_key(*name)).then(|| self.first.get(*first).copied())?
    }
}

fn is_name(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier)
}

/// Keywords before an expression: a name alone after one of them is a column or a variable.
const BEFORE_EXPRESSIONS: [&str; 13] =
    ["SELECT", "SET", "WHERE", "AND", "OR", "NOT", "BY", "WHEN", "THEN", "ELSE", "RETURNING", "HAVING", "RETURN"];

/// The qualifier of a name that may be that of a relation; `None` where it cannot be one.
fn qualifier_of_relation(text: &str, tokens: &[Token], at: usize) -> Option<Qualifier> {
    let is_dot = |token: Option<&Token>| token.is_some_and(|token| token.kind == TokenKind::Punctuation(b'.'));
    let before = |distance: usize| at.checked_sub(distance).and_then(|at| tokens.get(at));
    if is_dot(before(1)) {
        let qualifier = before(2).filter(|token| is_name(token))?;
        return Some(Qualifier(Some(identifier(qualifier.text(text)).to_smolstr())));
    }
    // `users.id`, `users%ROWTYPE`
    let next = tokens.get(at + 1);
    if is_dot(next) || next.is_some_and(|next| next.text(text) == "%") {
        return Some(Qualifier(None));
    }
    let is_operator = |token: &Token| token.kind == TokenKind::Operator || token.text(text) == ":=";
    let follows_keyword = |token: &Token| BEFORE_EXPRESSIONS.iter().any(|word| token.is_keyword(text, word));
    let is_in_expression =
        next.is_some_and(is_operator) || before(1).is_some_and(|token| is_operator(token) || follows_keyword(token));
    (!is_in_expression).then_some(Qualifier(None))
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

    /// Whether this, in lower case, is one of the words.
    pub fn has(&self, word: &str) -> bool {
        self.0.contains(word)
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

    #[test]
    fn columns_and_other_schemas_name_no_relation() {
        for (text, expected) in [
            ("SELECT 1 FROM users", true),
            ("SELECT users.id FROM a, users", true),
            ("INSERT INTO public.users VALUES (1)", true),
            ("DECLARE one users%ROWTYPE; BEGIN END", true),
            ("UPDATE images SET users = users - 1", false),
            ("UPDATE images SET a = 1, users = 2 WHERE users > 0", false),
            ("UPDATE auth.users SET a = 1", false),
            ("SELECT images.users FROM images", false),
            ("SELECT users FROM images", false),
            ("UPDATE auth.users SET a = 1; DELETE FROM users", true),
        ] {
            assert_eq!(Words::of(text).first_relation("public", "users").is_some(), expected, "{text}");
        }
    }
}
