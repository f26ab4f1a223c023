//! PostgreSQL's parse tree as plain data, so that one piece of code can change any node.
//!
//! `pg_query` has a Rust type for each of the 270 kinds of nodes. Here a node is its name and its fields. The tree is read
//! through serde, and written as the message of Protocol Buffers that `pg_query::deparse` takes.

mod again;
mod encode;
mod parts;
mod quote;
mod read;

pub use again::{WrittenAgain, is_same_statement, written_again};
pub(crate) use parts::Parts;

use pg_query::protobuf;
use prost::Message as _;

/// A value of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// A missing node.
    Absent,
    /// A number, a boolean (0 or 1) or a label of an enumeration.
    Number(i64),
    /// The bits of a cost estimate; parse trees have none.
    Double(u64),
    Text(String),
    List(Vec<Value>),
    /// A node whose kind the field fixes.
    Message(Message),
    /// A node of any kind, with the number of the kind.
    Node(u32, Message),
}

/// A node: `SelectStmt` and its fields, in the order of their numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    pub(crate) name: &'static str,
    pub(crate) fields: Vec<(&'static str, Value)>,
}

/// The steps from a message to a value: indexes of fields and of elements of lists.
pub(crate) type Path = Vec<usize>;

impl Message {
    pub(crate) fn get(&self, field: &str) -> Option<&Value> {
        self.fields.iter().find(|(name, _)| *name == field).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, field: &str) -> Option<&mut Value> {
        self.fields.iter_mut().find(|(name, _)| *name == field).map(|(_, value)| value)
    }

    pub(crate) fn number(&self, field: &str) -> Option<i64> {
        match self.get(field)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn set(&mut self, field: &str, value: Value) {
        if let Some(place) = self.get_mut(field) {
            *place = value;
        }
    }

    pub(crate) fn list(&self, field: &str) -> &[Value] {
        match self.get(field) {
            Some(Value::List(list)) => list,
            _ => &[],
        }
    }
}

impl Value {
    /// The node, whether the field fixes its kind or not.
    pub(crate) fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) | Self::Node(_, message) => Some(message),
            _ => None,
        }
    }

    pub(crate) fn message_mut(&mut self) -> Option<&mut Message> {
        match self {
            Self::Message(message) | Self::Node(_, message) => Some(message),
            _ => None,
        }
    }

    /// The value at the end of a path.
    pub(crate) fn at(&self, path: &[usize]) -> Option<&Value> {
        let Some((step, rest)) = path.split_first() else { return Some(self) };
        match self {
            Self::List(list) => list.get(*step)?.at(rest),
            Self::Message(message) | Self::Node(_, message) => message.fields.get(*step)?.1.at(rest),
            _ => None,
        }
    }

    pub(crate) fn at_mut(&mut self, path: &[usize]) -> Option<&mut Value> {
        let Some((step, rest)) = path.split_first() else { return Some(self) };
        match self {
            Self::List(list) => list.get_mut(*step)?.at_mut(rest),
            Self::Message(message) | Self::Node(_, message) => message.fields.get_mut(*step)?.1.at_mut(rest),
            _ => None,
        }
    }

    /// Whether nothing is there: a missing node, an empty list or text, zero.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Number(number) => *number == 0,
            Self::Double(bits) => *bits == 0,
            Self::Text(text) => text.is_empty(),
            Self::List(list) => list.is_empty(),
            Self::Message(_) | Self::Node(..) => false,
        }
    }
}

/// The tree of one statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tree {
    /// The node of the statement.
    pub(crate) statement: Value,
}

impl Tree {
    /// Reads a text that is one statement. `None` if it is not, or if the tree cannot be written as SQL again: such a
    /// statement is not taken apart.
    pub(crate) fn parse(sql: &str) -> Option<Self> {
        let parsed = pg_query::parse(sql, 0).ok()?.protobuf;
        let [statement] = parsed.stmts.as_slice() else { return None };
        let statement = read::value(statement.stmt.as_deref()?)?;
        matches!(statement, Value::Node(..)).then_some(Self { statement })
    }

    /// Reads a text that is one statement, if that is the statement that is written again. The deparser of `libpg_query`
    /// omits a few clauses and misplaces others: a step would change what it is not meant to change.
    pub(crate) fn parse_exactly(sql: &str) -> Option<Self> {
        Self::parse(sql).filter(|tree| tree.deparse().is_some_and(|text| tree.is_read_from(&text)))
    }

    /// Whether a text is exactly this statement.
    pub(crate) fn is_read_from(&self, sql: &str) -> bool {
        Self::parse(sql).as_ref() == Some(self)
    }

    /// Writes the statement as SQL, without a semicolon.
    ///
    /// The tree must be one that a statement can have: the C code does not check what it is given.
    pub(crate) fn deparse(&self) -> Option<String> {
        if has_unknown_format(&self.statement) {
            return None;
        }
        let quoted = quote::quoted(&self.statement);
        let statement = quoted.as_ref().unwrap_or(&self.statement);
        let message = protobuf::ParseResult::decode(encode::parse_result(statement).as_slice()).ok()?;
        let sql = pg_query::deparse(&message, pg_query::DeparseOptions::default()).ok()?;
        Some(without_default_method(sql))
    }
}

/// Whether a statement is a COPY in a format that PostgreSQL does not know: a debug build of the deparser ends the
/// process there, and another one writes no format.
fn has_unknown_format(statement: &Value) -> bool {
    let Some(copy) = statement.message().filter(|node| node.name == "CopyStmt") else { return false };
    let is_text = |value: Option<&Value>, texts: &[&str]| match value {
        Some(Value::Text(text)) => texts.contains(&text.as_str()),
        _ => false,
    };
    let mut options = copy.list("options").iter().filter_map(Value::message);
    options.any(|option| {
        let format = option.get("arg").and_then(Value::message).and_then(|format| format.get("sval"));
        is_text(option.get("defname"), &["format"]) && !is_text(format, &["text", "csv", "binary"])
    })
}

/// The deparser writes the access method of every index.
fn without_default_method(sql: String) -> String {
    const METHOD: &str = " USING btree ";
    if !sql.starts_with("CREATE ") || !sql.contains(METHOD) {
        return sql;
    }
    let shorter = sql.replacen(METHOD, " ", 1);
    // It may stand in a string.
    if Tree::parse(&shorter).is_some_and(|tree| Tree::parse(&sql) == Some(tree)) { shorter } else { sql }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_the_message_of_its_text() {
        for sql in [
            "SELECT ARRAY[1, 2] FROM t WHERE  a IN (1, 2)",
            "SELECT DISTINCT a.b, -1, 1.5, 'x', b'1', true, NULL FROM t a JOIN ONLY s.u ON true WHERE a.c = ANY ($1)",
            "CREATE TABLE t (a numeric(10, 2) DEFAULT 0 CHECK (a > 0), PRIMARY KEY (a)) PARTITION BY LIST (a)",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql COST 1.5 AS 'SELECT 1'",
        ] {
            let tree = Tree::parse(sql).unwrap();
            let text = tree.deparse().unwrap();
            assert_eq!(Tree::parse(&text).unwrap(), tree, "{text}");
        }
        assert_eq!(Tree::parse("SELECT 1; SELECT 2"), None);
        assert_eq!(Tree::parse("SELECT FORM t t t"), None);
    }

    #[test]
    fn a_statement_that_is_written_as_another_one_is_not_taken_apart() {
        for sql in [
            "ALTER TABLE t ALTER a TYPE text COLLATE \"C\" USING NULL",
            "CREATE TABLE t (LIKE u INCLUDING ALL EXCLUDING IDENTITY)",
        ] {
            let tree = Tree::parse(sql).unwrap();
            let written = tree.deparse().unwrap();
            assert!(!tree.is_read_from(&written), "{written}");
            assert_eq!(Tree::parse_exactly(sql), None, "{sql}");
        }
        assert!(Tree::parse_exactly("CREATE TABLE t (LIKE u INCLUDING ALL)").is_some());
    }

    #[test]
    fn a_format_that_the_deparser_does_not_know_is_refused() {
        let written =
            |format: &str| Tree::parse(&format!("COPY t FROM stdin WITH (FORMAT {format})")).unwrap().deparse();
        assert!(written("csv").is_some() && written("binary").is_some());
        assert_eq!(written("parquet"), None);
    }

    #[test]
    fn the_usual_access_method_is_not_written() {
        let written = |sql: &str| Tree::parse(sql).unwrap().deparse().unwrap();
        assert_eq!(written("create index on t (a)"), "CREATE INDEX ON t (a)");
        assert_eq!(written("create index on t using gin (a)"), "CREATE INDEX ON t USING gin (a)");
        let in_string = "CREATE VIEW v AS SELECT ' USING btree '";
        assert_eq!(written(in_string), in_string);
    }
}
