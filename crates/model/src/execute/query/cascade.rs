//! Rows of other tables that a DELETE reads for foreign keys, and changes by ON DELETE CASCADE, SET NULL and SET DEFAULT.
//!
//! Source: PostgreSQL 18, `src/backend/utils/adt/ri_triggers.c`, `RI_FKey_cascade_del` and `ri_set`.

use crate::catalog::{ForeignKeyConstraint, Oid, Relation};
use crate::effect::{DataChange, DataChangeKind, Extent, Read, Rows, RowsReason};
use crate::execute::Executor;
use pgvet_syntax::ast::ReferentialAction;
use pgvet_syntax::source::TextRange;

impl Executor<'_> {
    /// Notes what deleting these rows of a table does to the rows that refer to them.
    pub(super) fn note_cascades(&mut self, table: Oid, rows: &Rows, range: TextRange) {
        self.cascade(table, rows, range, &mut vec![table]);
    }

    /// `seen`: tables that a foreign key has led to, for they may refer to each other.
    fn cascade(&mut self, table: Oid, rows: &Rows, range: TextRange, seen: &mut Vec<Oid>) {
        if rows.bound() == Some(0) {
            return;
        }
        for (referencing, constraint) in self.foreign_keys_to_family(table) {
            let Some(key) = constraint.foreign_key() else { continue };
            if self.catalog.get_relation(referencing).is_none() {
                continue;
            }
            self.read_referring(table, referencing, key, rows, range);
            let kind = match key.on_delete {
                ReferentialAction::Cascade => DataChangeKind::Delete,
                ReferentialAction::SetNull | ReferentialAction::SetDefault => DataChangeKind::Update,
                ReferentialAction::NoAction | ReferentialAction::Restrict => continue,
            };
            if seen.contains(&referencing) {
                continue;
            }
            seen.push(referencing);
            let changed = self.rows_of_cascade(table, referencing, key, rows);
            let relation = self.relation_name(referencing);
            let columns = if key.set_columns.is_empty() { &key.columns } else { &key.set_columns };
            let changes_key = kind == DataChangeKind::Update && self.is_key(referencing, Some(columns));
            let rows = changed.clone();
            let checked_at_commit = self.is_checked_at_commit(referencing, kind);
            let change = DataChange {
                relation,
                kind,
                changes_key,
                rows,
                by_trigger: true,
                checked_at_commit,
                repeats: None,
                range,
            };
            self.effects.data_changes.push(change);
            if kind == DataChangeKind::Delete {
                self.cascade(referencing, &changed, range, seen);
            }
        }
    }

    /// Looks for the rows that refer to the deleted ones.
    fn read_referring(
        &mut self,
        table: Oid,
        referencing: Oid,
        key: &ForeignKeyConstraint,
        deleted: &Rows,
        range: TextRange,
    ) {
        let relation = self.catalog.relation(referencing);
        let rows = match self.catalog.index_for_foreign_key(relation, &key.columns) {
            Some(_) => self.rows_of_cascade(table, referencing, key, deleted),
            None => Rows::all(RowsReason::NoIndexOnForeignKey { columns: key.columns.join(", ").into() }),
        };
        let rows = rows.or_less(self.rows_of_table(referencing));
        let relation = self.relation_name(referencing);
        self.effects.reads.push(Read { relation, rows, row_lock: None, range });
    }

    /// How many rows refer to the deleted ones.
    fn rows_of_cascade(&self, table: Oid, referencing: Oid, key: &ForeignKeyConstraint, deleted: &Rows) -> Rows {
        let relation = self.catalog.relation(referencing);
        let name = self.catalog.relation(table).name.clone();
        let reason = RowsReason::Cascade { table: name, of_few: deleted.bound().is_some() || deleted.may_be_few() };
        let extent = match deleted.extent {
            Extent::AtMost(rows) if self.is_unique(relation, key) => Extent::AtMost(rows),
            Extent::All if is_filled(relation, key) => Extent::All,
            _ => Extent::UnknownPart,
        };
        Rows::new(extent, reason).or_less(self.rows_of_table(referencing))
    }

    /// Whether one row at most refers to each.
    fn is_unique(&self, relation: &Relation, key: &ForeignKeyConstraint) -> bool {
        let mut indexes = relation.indexes.iter().filter_map(|oid| self.catalog.get_relation(*oid)?.index());
        indexes.any(|index| {
            let columns = index.plain_columns().filter(|_| index.unique && index.valid && index.predicate.is_none());
            columns.is_some_and(|columns| columns.iter().all(|column| key.columns.contains(column)))
        })
    }
}

/// Whether every row refers to one.
fn is_filled(relation: &Relation, key: &ForeignKeyConstraint) -> bool {
    key.columns.iter().all(|name| relation.column(name).is_some_and(|column| column.not_null))
}
