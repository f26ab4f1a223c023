//! Whether a statement is the same after it was read and written.

use super::{Tree, Value};

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

/// Reads a statement and writes it as SQL. A reduction keeps a statement that differs, or removes it as a whole.
pub fn written_again(sql: &str) -> WrittenAgain {
    let Some(tree) = Tree::parse(sql) else { return WrittenAgain::Refused };
    match tree.deparse() {
        Some(text) if tree.is_read_from(&text) => WrittenAgain::Same,
        Some(text) => WrittenAgain::Differs(text),
        None => WrittenAgain::Refused,
    }
}

/// Whether PostgreSQL's parser reads two texts as the same statement. `EXTRACT(year FROM a)` is a call of `extract`, `(a, b)`
/// is `ROW(a, b)`, `boolean` is `bool`, and the length of an array in a type means nothing.
pub fn is_same_statement(one: &str, other: &str) -> bool {
    let plain = |sql: &str| {
        let mut tree = Tree::parse(sql)?;
        forget_spelling(&mut tree.statement);
        Some(tree)
    };
    plain(one).is_some_and(|one| plain(other) == Some(one))
}

fn forget_spelling(value: &mut Value) {
    match value {
        Value::List(list) => list.iter_mut().for_each(forget_spelling),
        Value::Message(node) | Value::Node(_, node) => {
            for (field, value) in &mut node.fields {
                match *field {
                    "funcformat" | "row_format" => *value = Value::Number(0),
                    "array_bounds" if !value.is_empty() => *value = Value::Number(1),
                    "names" => without_catalog(value),
                    _ => forget_spelling(value),
                }
            }
        }
        _ => {}
    }
}

/// `pg_catalog.bool` as `bool`.
fn without_catalog(names: &mut Value) {
    let Value::List(list) = names else { return };
    let is_catalog = |name: &Value| {
        let text = name.message().and_then(|name| name.get("sval"));
        matches!(text, Some(Value::Text(text)) if text == "pg_catalog")
    };
    if list.len() > 1 && list.first().is_some_and(is_catalog) {
        list.remove(0);
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

    #[test]
    fn spelling_is_not_part_of_a_statement() {
        assert!(is_same_statement("select extract(year from a)", "SELECT pg_catalog.extract('year', a)"));
        assert!(is_same_statement("SELECT (a, b), c::int[3], d::bool", "SELECT ROW(a, b), c::int[], d::boolean"));
        assert!(!is_same_statement("SELECT a FROM t", "SELECT a FROM t TABLESAMPLE system (1)"));
    }
}
