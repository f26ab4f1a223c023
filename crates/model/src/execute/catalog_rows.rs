//! How many rows of the system catalogs CREATE TABLE and CREATE INDEX insert.
//!
//! Source: PostgreSQL 18, `src/backend/catalog/heap.c`, `index.c`, `pg_constraint.c`, `toasting.c`, and
//! `src/backend/commands/sequence.c`; compared with servers 14 to 18 by `crates/xtask/tests/integration/catalog_rows.rs`.

mod objects;
mod toast;

use super::Executor;
use crate::catalog::{Column, Constraint, ConstraintKind, Index, Oid, Relation, RelationKind, SqlType};
use crate::effect::{CatalogRows, UnknownReason};
use objects::{UserObjects, is_pinned_collation};
use smol_str::SmolStr;
use std::collections::BTreeSet;

/// System columns: tableoid, cmax, xmax, cmin, xmin, ctid (12 and newer).
const SYSTEM_COLUMNS: usize = 6;
/// `last_value`, `log_cnt`, `is_called`.
const SEQUENCE_COLUMNS: usize = 3;
/// `chunk_id`, `chunk_seq`, `chunk_data`.
const TOAST_COLUMNS: usize = 3;
/// A foreign key has two triggers on either side.
const FOREIGN_KEY_TRIGGERS: usize = 4;

impl Executor<'_> {
    /// Adds the catalog rows of the relations that the statement created since `from` (an index into `creates`).
    pub(super) fn count_catalog_rows(&mut self, from: usize) {
        let created: Vec<Oid> = self.effects.creates[from..].iter().map(|name| name.oid).collect();
        let mut rows = Count::default();
        for oid in &created {
            let relation = self.catalog.relation(*oid).clone();
            if !relation.known {
                self.note_unknown(UnknownReason::CatalogRows { relation: relation.name.clone() });
                continue;
            }
            match relation.kind {
                RelationKind::Sequence => self.count_sequence(&relation, &mut rows),
                RelationKind::Index | RelationKind::PartitionedIndex => self.count_index(&relation, &mut rows),
                _ => self.count_table(&relation, &mut rows),
            }
        }
        self.effects.catalog_rows += rows.into_rows();
    }

    fn count_sequence(&self, sequence: &Relation, rows: &mut Count) {
        rows.class += 1;
        rows.attribute += SEQUENCE_COLUMNS + SYSTEM_COLUMNS;
        rows.sequence += 1;
        let owned = sequence.sequence().is_some_and(|sequence| sequence.owned_by.is_some());
        rows.depend += 1 + usize::from(owned);
        // Older majors give it a row type.
        if !self.target.at_least(14) {
            rows.type_ += 1;
            rows.depend += 1;
        }
    }

    fn count_table(&mut self, table: &Relation, rows: &mut Count) {
        rows.class += 1;
        rows.attribute += table.columns.len() + SYSTEM_COLUMNS;
        rows.type_ += 2;
        // The schema, the table of the row type, the row type of its array type.
        rows.depend += 3 + usize::from(table.of_type.is_some());
        rows.inherits += table.parents.len();
        rows.depend += table.parents.len();
        for column in &table.columns {
            self.count_column(table, column, rows);
        }
        for constraint in &table.constraints {
            self.count_constraint(table, constraint, rows);
        }
        self.count_references(table, rows);
        self.count_partition_key(table, rows);
        for statistics in self.catalog.statistics_of(table.oid) {
            rows.depend += 1 + self.catalog.statistics_columns(&statistics).len();
        }
        for trigger in table.triggers.iter().filter(|trigger| trigger.inherited) {
            // The function, the table, and twice for the parent's trigger.
            rows.trigger += 1;
            rows.depend += 4 + trigger.columns.len();
            if trigger.constraint.is_some() {
                // It depends on the table, and on the trigger.
                rows.constraint += 1;
                rows.depend += 2;
            }
        }
        if self.needs_toast(table) {
            // The table and its index; the main table, the index's two columns.
            rows.class += 2;
            rows.attribute += TOAST_COLUMNS + SYSTEM_COLUMNS + 2;
            rows.index += 1;
            rows.depend += 3;
            if !self.target.at_least(14) {
                rows.type_ += 1;
                rows.depend += 1;
            }
        }
    }

    fn count_column(&mut self, table: &Relation, column: &Column, rows: &mut Count) {
        rows.depend += usize::from(!column.sql_type.oid.is_builtin());
        rows.depend += usize::from(column.collation.as_ref().is_some_and(|name| !is_pinned_collation(name)));
        if let Some(generated) = &column.generated {
            rows.default += 1;
            rows.depend += 1 + self.columns_of(table.oid, &generated.expression).len();
            rows.depend += self.user_objects(table, &generated.expression, Some(column.sql_type));
        } else if let Some(default) = &column.default {
            rows.default += 1;
            rows.depend += 1 + self.user_objects(table, default, Some(column.sql_type));
        }
    }

    fn count_constraint(&mut self, table: &Relation, constraint: &Constraint, rows: &mut Count) {
        match &constraint.kind {
            ConstraintKind::NotNull { .. } => {
                if self.target.at_least(18) {
                    rows.constraint += 1;
                    rows.depend += 1;
                }
            }
            ConstraintKind::Check { expression, columns } => {
                rows.constraint += 1;
                rows.depend += if columns.is_empty() { 1 } else { 2 * columns.len() };
                rows.depend += self.user_objects(table, expression, None);
            }
            ConstraintKind::ForeignKey(key) => {
                rows.constraint += 1;
                rows.depend += 2 * key.columns.len() + 1;
                let is_clone = constraint.inherited_from > 0;
                // Those of the referenced table are the parent's.
                let mut triggers = if self.has_key_triggers(table.kind) { FOREIGN_KEY_TRIGGERS / 2 } else { 0 };
                let referenced = self.catalog.get_relation(key.referenced);
                if !is_clone && referenced.is_none_or(|referenced| self.has_key_triggers(referenced.kind)) {
                    triggers += FOREIGN_KEY_TRIGGERS / 2;
                }
                rows.trigger += triggers;
                rows.depend += triggers;
                // The parent's constraint, and the parent's table.
                rows.depend += if is_clone { 2 } else { 0 };
            }
            // With their indexes.
            ConstraintKind::PrimaryKey { .. } | ConstraintKind::Unique { .. } | ConstraintKind::Exclude { .. } => {}
        }
    }

    /// A foreign key to a partitioned table has a part for each of its partitions.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `addFkRecurseReferenced` and `CloneFkReferenced`.
    fn count_references(&self, table: &Relation, rows: &mut Count) {
        let is_whole = |constraint: &&Constraint| constraint.inherited_from == 0;
        let mut count = |constraint: &Constraint, partition: RelationKind| {
            let triggers = if self.has_key_triggers(partition) { FOREIGN_KEY_TRIGGERS / 2 } else { 0 };
            rows.constraint += 1;
            rows.trigger += triggers;
            // The columns of both sides, the index, the whole, and each trigger.
            rows.depend += 2 * constraint.columns().len() + 2 + triggers;
        };
        for constraint in table.constraints.iter().map(|constraint| &**constraint).filter(is_whole) {
            if let Some(key) =
                constraint.foreign_key().filter(|key| self.catalog.get_relation(key.referenced).is_some())
            {
                for partition in self.descendants_if_partitioned(key.referenced) {
                    count(constraint, self.catalog.relation(partition).kind);
                }
            }
        }
        for parent in table.parents.iter().filter(|_| table.is_partition()) {
            for (_, constraint) in self.foreign_keys_to_family(*parent) {
                if is_whole(&&*constraint) {
                    count(&constraint, table.kind);
                }
            }
        }
    }

    /// Before 15 only tables with rows of their own have the triggers of a foreign key.
    fn has_key_triggers(&self, kind: RelationKind) -> bool {
        kind != RelationKind::PartitionedTable || self.target.at_least(15)
    }

    fn count_partition_key(&mut self, table: &Relation, rows: &mut Count) {
        let Some(key) = &table.partition_by else { return };
        let keys = std::sync::Arc::clone(&key.keys);
        let mut of_expressions = BTreeSet::new();
        for expression in keys.iter() {
            if expression.as_column().is_some() {
                rows.depend += 1;
            } else {
                of_expressions.extend(self.columns_of(table.oid, expression));
                rows.depend += self.user_objects(table, expression, None);
            }
        }
        rows.depend += of_expressions.len();
    }

    fn count_index(&mut self, relation: &Relation, rows: &mut Count) {
        let Some(index) = relation.index().cloned() else { return };
        let table = self.catalog.relation(index.table).clone();
        rows.class += 1;
        rows.attribute += index.elements.len() + index.including.len();
        rows.index += 1;
        let constraint = table.constraints.iter().find(|constraint| constraint.index() == Some(relation.oid));
        let columns: BTreeSet<SmolStr> = (index.elements.iter().filter_map(|element| element.key.as_column()))
            .chain(&index.including)
            .cloned()
            .collect();
        match constraint {
            Some(constraint) => {
                rows.constraint += 1;
                // The index on the constraint; the constraint on its columns, or on the table where one is an expression.
                rows.depend += 1 + if index.has_expressions() { 1 } else { columns.len() };
                if constraint.deferrable {
                    rows.trigger += 1;
                    rows.depend += 1;
                }
                if index.parent.is_some() {
                    rows.depend += 2;
                }
            }
            None => rows.depend += columns.len().max(1),
        }
        if index.parent.is_some() {
            rows.inherits += 1;
            rows.depend += 2;
        }
        self.count_index_expressions(&table, &index, rows);
        self.count_index_classes(&table, &index, rows);
    }

    fn count_index_expressions(&mut self, table: &Relation, index: &Index, rows: &mut Count) {
        let mut columns = BTreeSet::new();
        let mut objects = UserObjects::default();
        let expressions = index.elements.iter().map(|element| &element.key).filter(|key| key.as_column().is_none());
        for expression in expressions {
            columns.extend(self.columns_of(table.oid, expression));
            self.collect_user_objects(table, expression, None, &mut objects);
        }
        rows.depend += columns.len() + objects.len();
        if let Some(predicate) = &index.predicate {
            rows.depend += self.columns_of(table.oid, predicate).len();
            rows.depend += self.user_objects(table, predicate, None);
        }
    }

    /// Operator classes and collations that are not PostgreSQL's own.
    fn count_index_classes(&self, table: &Relation, index: &Index, rows: &mut Count) {
        let (mut classes, mut collations) = (BTreeSet::new(), BTreeSet::new());
        for element in index.elements.iter() {
            let column = element.key.as_column().and_then(|name| table.column(name));
            if let Some(class) = &element.operator_class {
                if !crate::builtin::operator_classes(&index.method).iter().any(|known| known.name == *class) {
                    classes.insert(class.to_string());
                }
            } else if let Some(column) = column.filter(|column| self.has_foreign_class(&index.method, column.sql_type))
            {
                classes.insert(self.with_analyzer(|analyzer| analyzer.format_type(column.sql_type)));
            }
            let collation = element.collation.as_ref().or_else(|| column.and_then(|column| column.collation.as_ref()));
            collations.extend(collation.filter(|name| !is_pinned_collation(name)).cloned());
        }
        rows.depend += classes.len() + collations.len();
    }

    /// The default class of a type of an extension belongs to the extension.
    fn has_foreign_class(&self, method: &str, sql_type: SqlType) -> bool {
        self.with_analyzer(|analyzer| {
            let base = analyzer.base_type(sql_type);
            !base.oid.is_builtin() && analyzer.default_operator_class(method, base).is_none()
        })
    }
}

/// [`CatalogRows`] while they are counted.
#[derive(Default)]
struct Count {
    class: usize,
    attribute: usize,
    default: usize,
    type_: usize,
    index: usize,
    constraint: usize,
    sequence: usize,
    trigger: usize,
    depend: usize,
    inherits: usize,
}

impl Count {
    fn into_rows(self) -> CatalogRows {
        CatalogRows {
            class: self.class as u64,
            attribute: self.attribute as u64,
            default: self.default as u64,
            type_: self.type_ as u64,
            index: self.index as u64,
            constraint: self.constraint as u64,
            sequence: self.sequence as u64,
            trigger: self.trigger as u64,
            depend: self.depend as u64,
            inherits: self.inherits as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::effect::CatalogRows;
    use crate::execute::testing::effects_on;

    /// 31 columns, 27 of them with a default, a serial primary key, a toast table; four more indexes.
    fn published_example(major: u8) -> CatalogRows {
        let defaults: Vec<String> = (0..26).map(|at| format!(", c{at} int DEFAULT {at}")).collect();
        let defaults = defaults.concat();
        let table = format!(
            "CREATE TEMP TABLE cart (id serial PRIMARY KEY, name text NOT NULL, address text NOT NULL, note text, x int{defaults});"
        );
        let mut rows = effects_on(major, "", &table).catalog_rows;
        for column in ["name", "address", "c0", "c1"] {
            rows += effects_on(major, &table, &format!("CREATE INDEX ON cart ({column})")).catalog_rows;
        }
        rows
    }

    #[test]
    fn the_published_example() {
        let rows = published_example(17);
        assert_eq!((rows.attribute, rows.default, rows.class), (62, 27, 9));
        assert_eq!((rows.type_, rows.index, rows.constraint, rows.depend, rows.sequence), (2, 6, 1, 42, 1));
        assert_eq!(rows.total(), 150);
        let newer = published_example(18);
        assert_eq!((newer.constraint, newer.depend, newer.total()), (4, 45, 156));
    }

    #[test]
    fn what_is_not_known_is_said() {
        let effects = effects_on(17, "", "CREATE TABLE t (LIKE other)");
        assert!(effects.catalog_rows.is_empty());
        assert!(!effects.knows_catalog_rows(), "{:?}", effects.unknown);
    }
}
