//! Parts that replace others, as the parser makes them.

use super::{Message, Tree, Value};

/// Parts that replace others.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    /// The expression `NULL`.
    pub(crate) null: Value,
    /// The type `int`.
    pub(crate) int: Value,
    /// The number of the kind `SelectStmt`.
    pub(crate) select: u32,
    /// Constants that mean little: a number, a text, a condition.
    pub(crate) constants: Vec<Value>,
    /// A query of two rows, in the form in which the sides of UNION are.
    pub(crate) rows: Message,
    /// The constant `'x'`.
    text: Value,
    /// The other name of `t AS x`.
    alias: Value,
    /// `NULL::int`.
    cast: Value,
    /// `0 = 0`.
    equality: Value,
    /// `SELECT NULL::int FROM t`.
    query: Value,
}

impl Parts {
    /// Takes them out of queries.
    pub(crate) fn new() -> Self {
        let Value::Node(select, query) = query("SELECT NULL::int FROM t") else {
            unreachable!("a statement is a node")
        };
        let cast = values(&query).next().cloned().expect("a target has a value");
        let part = |field| cast.message().and_then(|cast| cast.get(field)).cloned().expect("a cast has both");
        let equality = self::query("SELECT 0 = 0");
        let equality =
            equality.message().and_then(|query| values(query).next()).cloned().expect("a target has a value");
        let constants = self::query("SELECT 0, 1, '', false, true");
        let constants = constants.message().into_iter().flat_map(values).cloned().collect();
        let Value::Node(_, rows) = self::query("VALUES (0), (1)") else { unreachable!("a statement is a node") };
        let named = self::query("SELECT 'x' FROM t AS x");
        let text = named.message().and_then(|query| values(query).next()).cloned().expect("a target has a value");
        let source = named.message().and_then(|query| query.list("from_clause").first()?.message());
        let alias = source.and_then(|source| source.get("alias")).cloned().expect("the source has another name");
        Self {
            rows,
            text,
            alias,
            null: part("arg"),
            int: part("type_name"),
            select,
            constants,
            cast: cast.clone(),
            equality,
            query: Value::Node(select, query),
        }
    }

    /// A constant without a type.
    pub(crate) fn text(&self, text: &str) -> Value {
        let mut constant = self.text.clone();
        if let Some(Value::Node(_, value)) = constant.message_mut().and_then(|constant| constant.get_mut("val")) {
            value.set("sval", Value::Text(text.to_owned()));
        }
        constant
    }

    /// Another name for a table.
    pub(crate) fn alias(&self, name: &str) -> Value {
        let mut alias = self.alias.clone();
        if let Some(alias) = alias.message_mut() {
            alias.set("aliasname", Value::Text(name.to_owned()));
        }
        alias
    }

    /// NULL of a type.
    pub(crate) fn null_of(&self, of_type: &Value) -> Value {
        self.cast_of(self.null.clone(), of_type)
    }

    /// An expression as a value of a type.
    pub(crate) fn cast_of(&self, expression: Value, of_type: &Value) -> Value {
        let mut cast = self.cast.clone();
        if let Some(cast) = cast.message_mut() {
            cast.set("arg", expression);
            cast.set("type_name", of_type.clone());
        }
        cast
    }

    /// Whether two expressions are equal.
    pub(crate) fn equality_of(&self, left: Value, right: Value) -> Value {
        let mut equality = self.equality.clone();
        if let Some(equality) = equality.message_mut() {
            equality.set("lexpr", left);
            equality.set("rexpr", right);
        }
        equality
    }

    /// A query for an expression, without FROM if there are no sources.
    pub(crate) fn query_for(&self, expression: &Value, sources: Vec<Value>) -> Value {
        let mut query = self.query.clone();
        if let Some(query) = query.message_mut() {
            query.set("from_clause", Value::List(sources));
            if let Some(Value::List(targets)) = query.get_mut("target_list")
                && let Some(target) = targets.first_mut().and_then(Value::message_mut)
            {
                target.set("val", expression.clone());
            }
        }
        query
    }

    /// The relation of a statement as a source of a query.
    pub(crate) fn source(&self, relation: &Message) -> Option<Value> {
        let Some(Value::Node(kind, _)) = self.query.message()?.list("from_clause").first() else { return None };
        Some(Value::Node(*kind, relation.clone()))
    }
}

fn query(sql: &str) -> Value {
    Tree::parse(sql).expect("it is a statement").statement
}

/// The values of the columns of a query.
fn values(query: &Message) -> impl Iterator<Item = &Value> {
    query.list("target_list").iter().filter_map(|target| target.message()?.get("val"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_as_sql() {
        let parts = Parts::new();
        let source = query("SELECT FROM u").message().unwrap().list("from_clause")[0].clone();
        let mut named = source;
        named.message_mut().unwrap().set("alias", parts.alias("v"));
        let statement = parts.query_for(&parts.text("it's"), vec![named]);
        assert_eq!(Tree { statement }.deparse().unwrap(), "SELECT 'it''s' FROM u v");
    }
}
