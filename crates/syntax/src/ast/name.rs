//! Names and types as written.

use crate::source::TextRange;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// An identifier after folding, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    pub text: SmolStr,
    pub range: TextRange,
}

impl Name {
    pub fn new(text: impl Into<SmolStr>, range: TextRange) -> Self {
        Self { text: text.into(), range }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A possibly qualified name. A database qualifier is dropped: PostgreSQL accepts only the current one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectName {
    pub schema: Option<Name>,
    pub name: Name,
}

impl ObjectName {
    pub fn range(&self) -> TextRange {
        self.schema.as_ref().map_or(self.name.range, |schema| schema.range.cover(self.name.range))
    }

    pub fn schema_name(&self) -> Option<&SmolStr> {
        self.schema.as_ref().map(|schema| &schema.text)
    }
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{}.{}", schema.text, self.name.text),
            None => f.write_str(&self.name.text),
        }
    }
}

/// A data type as written: `pg_catalog.varchar(20)[]`, `users.id%TYPE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TypeName {
    pub schema: Option<SmolStr>,
    /// PostgreSQL's internal name for the built-in spellings: `int4` for `integer`, `varchar` for `character varying`.
    pub name: SmolStr,
    /// The parenthesised modifiers; for `interval` PostgreSQL's field mask comes first.
    pub modifiers: Vec<Literal>,
    pub is_array: bool,
    pub setof: bool,
    /// `table.column%TYPE`: then `schema`/`name` hold the last two parts of the path, `column` the column.
    pub percent_type: Option<SmolStr>,
    pub range: TextRange,
}

impl TypeName {
    /// A type by name and nothing else, which is in no text.
    pub fn plain(schema: Option<SmolStr>, name: SmolStr) -> Self {
        Self {
            schema,
            name,
            modifiers: Vec::new(),
            is_array: false,
            setof: false,
            percent_type: None,
            range: TextRange::default(),
        }
    }
}

/// A constant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Literal {
    Integer(i64),
    /// A number that is no i64, with its digits.
    Numeric(SmolStr),
    Boolean(bool),
    String(SmolStr),
    BitString(SmolStr),
    Null,
}

/// RESTRICT or CASCADE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum DropBehavior {
    #[default]
    Restrict,
    Cascade,
}

/// `name = value` in WITH (...), SET (...), function and sequence options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DefElem {
    pub namespace: Option<SmolStr>,
    pub name: SmolStr,
    pub value: DefValue,
    pub range: TextRange,
}

/// The value of a [`DefElem`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DefValue {
    /// No value given, which for a boolean option means true.
    None,
    Literal(Literal),
    /// A word or a possibly qualified name, such as `OWNED BY t.c`.
    Names(Vec<SmolStr>),
    Type(TypeName),
    List(Vec<Literal>),
    Other,
}

impl DefElem {
    /// The truth of a boolean option as PostgreSQL's defGetBoolean reads it; `None` where it would be an error.
    pub fn as_bool(&self) -> Option<bool> {
        match &self.value {
            DefValue::None => Some(true),
            DefValue::Literal(Literal::Integer(number)) => Some(*number != 0),
            DefValue::Literal(Literal::Boolean(value)) => Some(*value),
            DefValue::Literal(Literal::String(text)) => bool_word(text),
            DefValue::Names(names) => names.first().and_then(|word| bool_word(word)),
            _ => None,
        }
    }
}

fn bool_word(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Some(true),
        "false" | "off" | "no" | "0" => Some(false),
        _ => None,
    }
}
