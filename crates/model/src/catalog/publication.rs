//! Publications, and which tables they publish.

use super::{Catalog, Oid, Publication, Relation};
use crate::catalog::RelationKind;
use imbl::ordmap::DiffItem;
use pgvet_syntax::ast::{Persistence, ReplicaIdentity};
use smol_str::SmolStr;
use std::sync::Arc;

impl Catalog {
    pub fn publication(&self, name: &str) -> Option<&Arc<Publication>> {
        self.publications.get(name)
    }

    pub fn publications(&self) -> impl Iterator<Item = &Arc<Publication>> {
        self.publications.values()
    }

    pub fn set_publication(&mut self, publication: Publication) {
        self.publications.insert(publication.name.clone(), Arc::new(publication));
    }

    pub fn remove_publication(&mut self, name: &str) {
        self.publications.remove(name);
    }

    /// The publications that send changes of the table.
    pub fn publications_of<'a>(&'a self, table: &'a Relation) -> impl Iterator<Item = &'a Arc<Publication>> {
        self.publications().filter(|publication| self.publishes(publication, table))
    }

    /// Whether a publication sends changes of the table, by itself or as a part of a partitioned one.
    ///
    /// Source: PostgreSQL 18, `src/backend/utils/cache/relcache.c`, `RelationBuildPublicationDesc`.
    pub fn publishes(&self, publication: &Publication, table: &Relation) -> bool {
        let is_table = matches!(table.kind, RelationKind::Table | RelationKind::PartitionedTable);
        let is_logged = table.persistence == Persistence::Permanent;
        let is_listed = |oid: Oid| publication.tables.contains_key(&oid);
        let in_schema = |schema: &SmolStr| is_logged && publication.schemas.contains(schema);
        let itself = is_logged && publication.all_tables || in_schema(&table.schema) || is_listed(table.oid);
        let parent = || self.get_relation(*table.parents.first().filter(|_| table.is_partition())?);
        is_table && (itself || parent().is_some_and(|parent| self.publishes(publication, parent)))
    }

    /// Returns the tables whose changes a publication sends, without those that it sent as it was before.
    pub fn newly_published(&self, before: Option<&Publication>, publication: &Publication) -> Vec<&Arc<Relation>> {
        let is_new = |table: &Relation| {
            self.publishes(publication, table) && !before.is_some_and(|before| self.publishes(before, table))
        };
        let has_lists_alone = |before: &&Publication| {
            before.all_tables >= publication.all_tables
                && publication.schemas.iter().all(|schema| before.schemas.contains(schema))
        };
        let Some(before) = before.filter(has_lists_alone) else { return self.relations_where(is_new) };
        // A publication of thousands of tables may get one after the other.
        let mut candidates: Vec<Oid> = (before.tables.diff(&publication.tables))
            .filter_map(|difference| match difference {
                DiffItem::Add(oid, _) => Some(*oid),
                _ => None,
            })
            .collect();
        let mut at = 0;
        while let Some(oid) = candidates.get(at) {
            if let Some(table) = self.get_relation(*oid) {
                candidates.extend(&table.children);
            }
            at += 1;
        }
        candidates.sort_unstable();
        candidates.dedup();
        let tables = candidates.into_iter().filter_map(|oid| self.get_relation(oid));
        tables.filter(|table| is_new(table)).collect()
    }

    /// Whether the table may have rows of its own that subscribers cannot identify.
    ///
    /// Source: PostgreSQL 18, `src/backend/executor/execReplication.c`, `CheckCmdReplicaIdentity`.
    pub fn lacks_replica_identity(&self, table: &Relation) -> bool {
        let has_rows = table.kind == RelationKind::Table && table.known;
        let identity = match &table.replica_identity {
            // A primary key that is DEFERRABLE does not do (`relcache.c`, `RelationGetIndexList`).
            ReplicaIdentity::Default => table.primary_key().is_some_and(|key| !key.deferrable),
            ReplicaIdentity::Full => true,
            ReplicaIdentity::Nothing => false,
            ReplicaIdentity::Index(name) => {
                table.indexes.iter().any(|oid| self.get_relation(*oid).is_some_and(|index| index.name == name.text))
            }
        };
        has_rows && !identity
    }
}
