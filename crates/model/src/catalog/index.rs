//! Indexes.

use super::Oid;
use pgvet_syntax::ast::{Expr, IndexElement};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::Arc;

/// An index: a row of `pg_index`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Index {
    pub table: Oid,
    pub unique: bool,
    pub primary: bool,
    pub exclusion: bool,
    pub nulls_not_distinct: bool,
    pub valid: bool,
    pub method: SmolStr,
    pub elements: Arc<Vec<IndexElement>>,
    pub including: Vec<SmolStr>,
    /// The names of its columns: those of the table's when it was created, also after those are renamed.
    pub column_names: Vec<SmolStr>,
    pub predicate: Option<Arc<Expr>>,
    /// The index of the parent table that it is attached to.
    pub parent: Option<Oid>,
    /// CLUSTER ... USING or ALTER TABLE ... CLUSTER ON named it.
    pub clustered: bool,
}

impl Index {
    /// The column names where every key is a plain column.
    pub fn plain_columns(&self) -> Option<Vec<SmolStr>> {
        self.elements.iter().map(|element| element.key.as_column().cloned()).collect()
    }

    pub fn has_expressions(&self) -> bool {
        self.elements.iter().any(|element| element.key.as_column().is_none())
    }
}
