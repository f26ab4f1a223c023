//! Statements as tools see them, by their first words.

use pgvet_syntax::lexer::{Token, tokenize};
use pgvet_syntax::source::TextRange;

/// The words of a statement.
pub(super) struct Words<'a>(Vec<&'a str>, Vec<String>);

impl<'a> Words<'a> {
    fn new(text: &'a str, tokens: &[Token]) -> Self {
        // The words that tools check are at the beginning, but DETACH PARTITION is last in its statement.
        let words: Vec<&str> = tokens.iter().map(|token| token.text(text)).collect();
        let upper = words.iter().take(6).map(|word| word.to_ascii_uppercase()).collect();
        Self(words, upper)
    }

    pub(super) fn at(&self, index: usize) -> &str {
        self.1.get(index).map_or("", String::as_str)
    }

    /// The words as they are written; code is one of them.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().copied()
    }

    pub(super) fn first_two(&self) -> (&str, &str) {
        (self.at(0), self.at(1))
    }

    /// `CREATE [UNIQUE] INDEX CONCURRENTLY`, `DROP INDEX CONCURRENTLY`.
    pub(super) fn is_concurrent_index(&self) -> bool {
        let index = if (self.at(0), self.at(1)) == ("CREATE", "UNIQUE") { 2 } else { 1 };
        matches!(self.at(0), "CREATE" | "DROP") && self.at(index) == "INDEX" && self.at(index + 1) == "CONCURRENTLY"
    }

    /// Whether both Flyway and the Supabase CLI run it outside of the transaction.
    pub(super) fn is_known_to_run_alone(&self) -> bool {
        match self.first_two() {
            ("CREATE" | "DROP", "DATABASE" | "TABLESPACE" | "SUBSCRIPTION")
            | ("ALTER", "SYSTEM")
            | ("DISCARD", "ALL")
            | ("REINDEX", "SCHEMA" | "DATABASE" | "SYSTEM")
            | ("VACUUM", _) => true,
            _ => self.is_concurrent_index(),
        }
    }

    /// A statement that works on its own, though not in a transaction: `REINDEX ... CONCURRENTLY`, `DETACH PARTITION ...
    /// CONCURRENTLY`.
    pub(super) fn is_other_concurrent(&self) -> bool {
        let is = |word: &&str| word.eq_ignore_ascii_case("CONCURRENTLY");
        match self.first_two() {
            ("REINDEX", _) => self.1.iter().any(|word| word == "CONCURRENTLY"),
            ("ALTER", "TABLE") => self.0.last().is_some_and(is),
            _ => false,
        }
    }
}

/// The statements of a text, without those that are empty.
pub(super) fn statements(text: &str) -> Vec<(TextRange, Words<'_>)> {
    statements_in(text, TextRange::new(0, text.len() as u32))
}

/// The statements of a part of a text, without those that are empty.
pub(super) fn statements_in(text: &str, part: TextRange) -> Vec<(TextRange, Words<'_>)> {
    let tokens = tokenize(text, part);
    let statements = tokens.split(|token| token.is_punctuation(b';'));
    let statement = |tokens: &[Token]| {
        let (first, last) = (tokens.first()?, tokens.last()?);
        Some((TextRange::new(first.range.start, last.range.end), Words::new(text, tokens)))
    };
    statements.filter_map(statement).collect()
}
