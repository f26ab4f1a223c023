//! What the history says about the size of a table of which nobody has counted the rows.

use crate::catalog::{Catalog, Relation};
use crate::effect::RelationName;
use crate::settings::{Settings, TableSize};

/// A table that has lived through so many migrations has been used for a while.
const MATURE: u32 = 10;

/// Is a table known for long, and has never got an index besides one key? A table that grows large mostly gets one for
/// the queries on it; tables of settings, plans, roles and positions get none.
///
/// `file` is the migration that asks.
pub(super) fn is_likely_small(table: &RelationName, catalog: &Catalog, file: u32, settings: &Settings) -> bool {
    settings.table(&table.schema, &table.name).size() != TableSize::Large
        && match catalog.get_relation(table.oid) {
            Some(table) if table.known => has_only_a_key(table, catalog, file),
            table => file >= MATURE && table.is_none_or(|table| is_aside(table)) && knows_most(catalog),
        }
}

fn has_only_a_key(table: &Relation, catalog: &Catalog, file: u32) -> bool {
    let is_mature = table.birth.migration.is_some_and(|made| file + 1 >= made + MATURE);
    let mut indexes = table.indexes.iter().filter_map(|oid| catalog.relation(*oid).index());
    let only = (indexes.next(), indexes.next());
    let has_one_key = match only {
        (None, _) => true,
        (Some(index), None) => index.unique && index.predicate.is_none(),
        (Some(_), Some(_)) => false,
    };
    is_mature && has_one_key && table.partition_by.is_none() && table.children.is_empty()
}

/// Is this a table that something else than SQL has made, and that no migration has to do with but to change its rows?
fn is_aside(table: &Relation) -> bool {
    table.columns.is_empty()
        && table.indexes.is_empty()
        && table.constraints.is_empty()
        && table.triggers.is_empty()
        && table.referenced_by.is_empty()
        && table.viewed_by.is_empty()
}

/// Do migrations make the tables of the project, so that one of which they say nothing is beside them?
fn knows_most(catalog: &Catalog) -> bool {
    let (known, unknown): (Vec<_>, Vec<_>) =
        catalog.relations().filter(|relation| relation.kind.is_table()).partition(|relation| relation.known);
    known.len() >= MATURE as usize && known.len() > 2 * unknown.len()
}
