//! What the history says about the size of a table of which nobody has counted the rows.

use crate::catalog::{Catalog, Relation};
use crate::settings::{Settings, TableSize};

/// A table that has lived through so many migrations has been used for a while.
const MATURE: u32 = 10;

/// Is the table known for long, and has never got an index besides one key? A table that grows large mostly gets one for
/// the queries on it; tables of settings, plans, roles and positions get none.
///
/// `file` is the migration that asks.
pub(super) fn is_likely_small(table: &Relation, catalog: &Catalog, file: u32, settings: &Settings) -> bool {
    let is_mature = table.birth.migration.is_some_and(|made| file + 1 >= made + MATURE);
    let mut indexes = table.indexes.iter().filter_map(|oid| catalog.relation(*oid).index());
    let only = (indexes.next(), indexes.next());
    let has_one_key = match only {
        (None, _) => true,
        (Some(index), None) => index.unique && index.predicate.is_none(),
        (Some(_), Some(_)) => false,
    };
    is_mature
        && has_one_key
        && table.known
        && table.partition_by.is_none()
        && table.children.is_empty()
        && settings.table(&table.schema, &table.name).size() != TableSize::Large
}
