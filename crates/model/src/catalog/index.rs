//! Indexes.

use super::{Catalog, Oid, Relation};
use imbl::OrdSet;
use pgvet_syntax::ast::{Expr, ExprKind, IndexElement};
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
    /// Those of an exclusion constraint, one for each key; also of UNIQUE ... WITHOUT OVERLAPS.
    pub operators: Vec<SmolStr>,
    pub valid: bool,
    pub method: SmolStr,
    pub elements: Arc<Vec<IndexElement>>,
    pub including: Vec<SmolStr>,
    /// The names of its columns: those of the table's when it was created, also after those are renamed.
    pub column_names: Vec<SmolStr>,
    pub predicate: Option<Arc<Expr>>,
    /// The index of the parent table that it is attached to.
    pub parent: Option<Oid>,
    /// The indexes of partitions that are attached to it.
    pub parts: OrdSet<Oid>,
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

impl Catalog {
    /// The name of an index that finds the rows which refer to one: it begins with the columns, in any order.
    pub fn index_for_foreign_key<'c>(&'c self, table: &Relation, columns: &[SmolStr]) -> Option<&'c SmolStr> {
        let indexes = table.indexes.iter().filter_map(|oid| {
            let relation: &Relation = self.get_relation(*oid)?;
            Some((relation.index()?, &relation.name))
        });
        let mut usable = indexes.filter(|(index, _)| index.valid || index.parent.is_none());
        let found = usable.find(|(index, _)| {
            let is_whole = index.predicate.as_deref().is_none_or(|predicate| is_not_null(predicate, columns));
            let leading = index.elements.iter().take(columns.len()).map(|element| element.key.as_column());
            let leading: Option<Vec<&SmolStr>> = leading.collect();
            is_whole
                && leading.is_some_and(|leading| {
                    leading.len() == columns.len() && columns.iter().all(|column| leading.contains(&column))
                })
        });
        found.map(|(_, name)| name)
    }
}

/// `column IS NOT NULL`: rows without a reference need no index.
fn is_not_null(predicate: &Expr, columns: &[SmolStr]) -> bool {
    match &predicate.kind {
        ExprKind::IsNull { operand, negated: true } => {
            operand.as_column().is_some_and(|column| columns.contains(column))
        }
        ExprKind::And(parts) => parts.iter().all(|part| is_not_null(part, columns)),
        _ => false,
    }
}
