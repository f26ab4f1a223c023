//! Whether a statement is the same after it was read and written.

use super::Tree;

/// A statement that was read and written as SQL again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrittenAgain {
    /// The text parses to the same tree.
    Same,
    /// The text parses to another tree, or does not parse.
    Differs(String),
    /// The statement is not taken apart, because it cannot be read as a tree or written.
    Refused,
}

/// Reads a statement and writes it as SQL, as each step of a reduction does.
pub fn written_again(sql: &str) -> WrittenAgain {
    let Some(tree) = Tree::parse(sql) else { return WrittenAgain::Refused };
    match tree.deparse() {
        Some(text) if Tree::parse(&text).as_ref() == Some(&tree) => WrittenAgain::Same,
        Some(text) => WrittenAgain::Differs(text),
        None => WrittenAgain::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_statement_is_refused() {
        assert_eq!(written_again("SELECT FORM t t t"), WrittenAgain::Refused);
        assert_eq!(written_again("select 1 as a"), WrittenAgain::Same);
    }
}
