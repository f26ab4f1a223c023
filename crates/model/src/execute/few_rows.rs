//! What migrations say against many rows in a table of an earlier deployment.

use super::Executor;
use crate::catalog::{Column, ConstraintKind, Relation};
use crate::effect::FewRows;

/// The fewest rows of a lookup table. A row or two may be the first of many: an administrator among users, a tenant.
const LOOKUP_ROWS: u64 = 3;

impl Executor<'_> {
    /// What the migrations so far say against many rows.
    pub(super) fn few_rows(&self, relation: &Relation) -> Option<FewRows> {
        if self.emptied(relation).is_some_and(|emptied| emptied.truncated) {
            return Some(FewRows::Truncated);
        }
        if let Some(keys) = self.catalog.listed_keys(relation) {
            return Some(FewRows::ListedKeys { keys });
        }
        let birth = relation.birth;
        if birth.empty_in.is_some() && birth.empty_in == self.deployment {
            let is_cause =
                |column: &&Column| column.not_null && column.added_in == birth.empty_in && column.default.is_none();
            let added = relation.columns.iter().find(is_cause);
            return added.map(|column| FewRows::NoneForNewColumn { column: column.name.clone() });
        }
        if birth.made_if_missing_in.is_some() && birth.made_if_missing_in == self.deployment {
            return Some(FewRows::MadeIfMissing);
        }
        let rows = birth.listed_rows().filter(|rows| *rows >= LOOKUP_ROWS)?;
        let mut referenced = relation.constraints.iter().filter_map(|constraint| match &constraint.kind {
            ConstraintKind::ForeignKey(key) => self.catalog.get_relation(key.referenced),
            _ => None,
        });
        let is_lookup = referenced.all(|table| table.oid == relation.oid || table.birth.listed_rows().is_some());
        is_lookup.then_some(FewRows::Listed { rows })
    }
}
