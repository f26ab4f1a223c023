//! Names that the deparser of `pg_query` writes without the quotes that they need.

use super::Value;
use pgvet_syntax::lexer::{quote_function_name, quote_identifier};

/// Puts the quotes into the names. Returns nothing if no name needs any.
pub(super) fn quoted(statement: &Value) -> Option<Value> {
    let mut quoted = statement.clone();
    quote(&mut quoted).then_some(quoted)
}

/// Returns whether a name was quoted.
fn quote(value: &mut Value) -> bool {
    match value {
        Value::List(list) => list.iter_mut().fold(false, |any, value| quote(value) | any),
        Value::Message(node) | Value::Node(_, node) => {
            let quoted_name: Option<fn(&str) -> String> = match node.name {
                "FunctionParameter" | "NamedArgExpr" => Some(quote_function_name),
                "StatsElem" => Some(quote_identifier),
                _ => None,
            };
            let mut any = false;
            for (field, value) in &mut node.fields {
                match (*field, quoted_name, &mut *value) {
                    ("name", Some(quoted_name), Value::Text(name)) if !name.is_empty() => {
                        let text = quoted_name(name);
                        any |= text != *name;
                        *name = text;
                    }
                    _ => any |= quote(value),
                }
            }
            any
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::Tree;

    #[test]
    fn names_are_written_with_the_quotes_that_they_need() {
        for sql in [
            "CREATE FUNCTION f(\"userId\" text, \"varchar\" text) RETURNS TABLE (\"Column\" int) LANGUAGE sql AS ''",
            "ALTER FUNCTION f(\"userId\" text) OWNER TO u",
            "SELECT f(a, \"offset\" => 1)",
            "CREATE STATISTICS s ON a, \"B\" FROM t",
        ] {
            let tree = Tree::parse(sql).unwrap();
            let text = tree.deparse().unwrap();
            assert_eq!(Tree::parse(&text).as_ref(), Some(&tree), "{text}");
        }
    }
}
