//! Where names without a schema are looked up.

use pgvet_syntax::lexer::quote_identifier;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::ops::Deref;
use std::sync::Arc;

/// Schemas in which names are looked up, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchPath {
    schemas: Arc<[SmolStr]>,
    is_assumed: bool,
}

impl SearchPath {
    /// The default, `public`.
    pub(crate) fn of_server() -> Self {
        Self { schemas: Arc::new([SmolStr::new_static("public")]), is_assumed: false }
    }

    /// The default where no statement sets the path, which the role, the database or the connection may set.
    pub(crate) fn assumed() -> Self {
        Self { is_assumed: true, ..Self::of_server() }
    }

    /// Whether no statement has set it.
    pub fn is_assumed(&self) -> bool {
        self.is_assumed
    }
}

impl Deref for SearchPath {
    type Target = [SmolStr];

    fn deref(&self) -> &[SmolStr] {
        &self.schemas
    }
}

impl From<Vec<SmolStr>> for SearchPath {
    fn from(schemas: Vec<SmolStr>) -> Self {
        Self { schemas: schemas.into(), is_assumed: false }
    }
}

/// The schemas of a value of `search_path`, without `$user`.
pub fn search_path(value: &str) -> Vec<SmolStr> {
    names_in_path(value).into_iter().filter(|name| name != "$user").collect()
}

/// The names in a value of `search_path`.
///
/// Source: PostgreSQL 18, `src/backend/utils/adt/varlena.c`, `SplitIdentifierString`.
pub fn names_in_path(value: &str) -> Vec<SmolStr> {
    let mut names = Vec::new();
    let mut rest = value.trim();
    while !rest.is_empty() {
        let (name, after) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted_name(quoted)
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            (rest[..end].trim().to_ascii_lowercase(), &rest[end..])
        };
        if !name.is_empty() {
            names.push(SmolStr::new(name));
        }
        rest = after.find(',').map_or("", |comma| after[comma + 1..].trim_start());
    }
    names
}

/// A name up to its closing quote, and what follows that.
fn quoted_name(text: &str) -> (String, &str) {
    let mut end = 0;
    while let Some(quote) = text[end..].find('"') {
        end += quote;
        if !text[end + 1..].starts_with('"') {
            return (text[..end].replace("\"\"", "\""), &text[end + 1..]);
        }
        end += 2;
    }
    (text.to_owned(), "")
}

/// The value of `search_path` for these schemas. SET makes one schema of each of its values: `'a, b'` is one name.
///
/// Source: PostgreSQL 18, `src/backend/utils/misc/guc_funcs.c`, `flatten_set_variable_args`.
pub fn search_path_value<S: AsRef<str>>(schemas: &[S]) -> SmolStr {
    let quoted: Vec<String> = schemas.iter().map(|name| quote_identifier(name.as_ref())).collect();
    SmolStr::new(quoted.join(", "))
}
