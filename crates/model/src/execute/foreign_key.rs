//! Foreign keys: they touch two tables, and all partitions of both.

use super::{Executor, Run, fail};
use crate::builtin::{CastContext, is_polymorphic};
use crate::catalog::{self, ForeignKeyConstraint, Oid, RelationKind, foreign_key_name_addition};
use crate::effect::{LockCause, ScanCause};
use crate::execute::alter_table::names;
use crate::execute::column_rules::MAX_KEYS;
use crate::expression::Coercion;
use pgvet_syntax::ast::{Constraint, ConstraintKind, ForeignKey, LockMode, Name, Persistence, ReferentialAction};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// Refuses one column more than a foreign key can have.
///
/// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `transformColumnNameList`.
fn check_key_count(existing: usize, column: &Name) -> Run {
    if existing < MAX_KEYS {
        return Ok(());
    }
    fail("54011", format!("cannot have more than {MAX_KEYS} keys in a foreign key"), column.range)
}

impl Executor<'_> {
    /// Adds a foreign key to `table`: locks the referenced table, finds its key, names the constraint and, unless it is
    /// NOT VALID, checks the rows. `columns` are given apart because column syntax (`REFERENCES`) has none.
    /// `check_rows` is false where PostgreSQL knows that there are none or that all values are null.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATAddForeignKeyConstraint`.
    pub(crate) fn add_foreign_key(
        &mut self,
        table: Oid,
        constraint: &Constraint,
        columns: &[Name],
        check_rows: bool,
    ) -> Run {
        let ConstraintKind::ForeignKey(key) = &constraint.kind else { return Ok(()) };
        self.check_constraint_syntax(constraint, constraint.keyword)?;
        let range = constraint.keyword;
        if let Some(name) = &constraint.name {
            self.check_constraint_is_new(table, name)?;
        }
        let referenced = match self.find(&key.table) {
            Some(oid) if oid == table => oid,
            _ => self.open_referenced(key)?,
        };
        self.check_partitioned_not_valid(table, constraint, range)?;
        self.check_persistence(table, referenced, range)?;
        for (at, column) in columns.iter().enumerate() {
            let relation = self.catalog.relation(table);
            if relation.known && relation.column(&column.text).is_none() {
                let reason = format!("column \"{}\" referenced in foreign key constraint does not exist", column.text);
                return fail("42703", reason, column.range);
            }
            check_key_count(at, column)?;
        }
        let (referenced_columns, referenced_index) = self.referenced_key(referenced, key, columns.len())?;
        self.check_generated_columns(table, key, columns)?;
        let columns = names(columns);
        for (column, other) in columns.iter().zip(&referenced_columns) {
            self.check_comparable((table, column), (referenced, other), range)?;
        }
        let relation = self.catalog.relation(table);
        let name = constraint
            .name
            .as_ref()
            .map_or_else(|| self.fresh_name(&relation.name, &columns, &relation.schema), |name| name.text.clone());
        let checked = !constraint.not_valid && !constraint.not_enforced;
        let added = catalog::Constraint {
            name,
            kind: catalog::ConstraintKind::ForeignKey(ForeignKeyConstraint {
                columns,
                referenced,
                referenced_columns,
                referenced_index,
                on_delete: key.on_delete,
                on_update: key.on_update,
                set_columns: names(&key.set_columns),
                match_full: key.match_full,
            }),
            valid: checked,
            enforced: !constraint.not_enforced,
            deferrable: constraint.deferrable,
            initially_deferred: constraint.initially_deferred,
            no_inherit: true,
            is_local: true,
            inherited_from: 0,
            may_be_gone: false,
        };
        for partition in self.descendants_if_partitioned(referenced) {
            self.lock(partition, LockMode::ShareRowExclusive, LockCause::ForeignKeyAdded, range);
        }
        self.add_foreign_key_to_tree(table, &added, checked && check_rows, range);
        Ok(())
    }

    /// Refuses actions that would set generated columns.
    fn check_generated_columns(&self, table: Oid, key: &ForeignKey, columns: &[Name]) -> Run {
        use ReferentialAction::{Cascade, SetDefault, SetNull};
        for column in columns {
            let found = self.catalog.relation(table).column(&column.text);
            let Some(generated) = found.and_then(|found| found.generated.as_ref()) else { continue };
            if matches!(key.on_update, Cascade | SetDefault | SetNull) || matches!(key.on_delete, SetDefault | SetNull)
            {
                let reason = "invalid action for foreign key constraint containing generated column";
                return fail("42601", reason, column.range);
            }
            if !generated.stored {
                let reason = "foreign key constraints on virtual generated columns are not supported";
                return fail("0A000", reason, column.range);
            }
        }
        Ok(())
    }

    /// Both sides must be of one operator family, or the referencing one becomes the other by itself. Types that are
    /// not PostgreSQL's own are assumed to be comparable.
    pub(super) fn check_comparable(
        &self,
        (table, column): (Oid, &SmolStr),
        (referenced, other): (Oid, &SmolStr),
        range: TextRange,
    ) -> Run {
        let sql_type = |table: Oid, column: &SmolStr| {
            let found = self.catalog.relation(table).column(column)?.sql_type;
            let base = self.with_analyzer(|analyzer| analyzer.base_type(found));
            let kind = self.catalog.get_type(base.oid).map(|definition| &definition.kind);
            let is_known = base.oid.is_builtin() || matches!(kind, Some(catalog::TypeKind::Enum { .. }));
            is_known.then_some(base)
        };
        let (Some(ours), Some(theirs)) = (sql_type(table, column), sql_type(referenced, other)) else { return Ok(()) };
        if ours.oid == theirs.oid {
            return Ok(());
        }
        // An enum compares with itself alone.
        let both_builtin = ours.oid.is_builtin() && theirs.oid.is_builtin();
        let comparable = both_builtin
            && self.with_analyzer(|analyzer| {
                let family = |sql_type| analyzer.default_operator_class("btree", sql_type).map(|class| class.family);
                let Some(theirs_family) = family(theirs) else { return true };
                // Arrays, ranges and other polymorphic types compare with their own type.
                if analyzer.default_operator_class("btree", theirs).is_some_and(|class| is_polymorphic(class.input)) {
                    return false;
                }
                family(ours) == Some(theirs_family)
                    || analyzer.coercion(ours, theirs, CastContext::Implicit) != Coercion::Impossible
            });
        if comparable {
            return Ok(());
        }
        fail("42804", format!("foreign key cannot be implemented: \"{column}\" and \"{other}\" do not compare"), range)
    }

    fn open_referenced(&mut self, key: &ForeignKey) -> Run<Oid> {
        let oid = self.open(&key.table, RelationKind::Table, LockMode::ShareRowExclusive)?;
        self.effects.locks.explain(0, |locked, cause, range| {
            if locked == oid && *cause == LockCause::Target && *range == key.table.range() {
                *cause = LockCause::ForeignKeyAdded;
            }
        });
        let relation = self.catalog.relation(oid);
        // PostgreSQL 11, `src/backend/commands/tablecmds.c`, `ATAddForeignKeyConstraint`.
        if relation.kind == RelationKind::PartitionedTable && !self.target.at_least(12) {
            let reason = format!("cannot reference partitioned table \"{}\"", relation.name);
            return fail("42809", reason, key.table.range());
        }
        if matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable) {
            return Ok(oid);
        }
        fail("42809", format!("referenced relation \"{}\" is not a table", relation.name), key.table.range())
    }

    fn check_partitioned_not_valid(&self, table: Oid, constraint: &Constraint, range: TextRange) -> Run {
        let relation = self.catalog.relation(table);
        if relation.kind == RelationKind::PartitionedTable && !self.target.at_least(11) {
            return fail("0A000", "foreign key constraints are not supported on partitioned tables", range);
        }
        if relation.kind == RelationKind::PartitionedTable && constraint.not_valid && !self.target.at_least(18) {
            let reason = format!("cannot add NOT VALID foreign key on partitioned table \"{}\"", relation.name);
            return fail("42809", reason, range);
        }
        Ok(())
    }

    fn check_persistence(&self, table: Oid, referenced: Oid, range: TextRange) -> Run {
        let relation = self.catalog.relation(referenced);
        if !relation.known {
            return Ok(());
        }
        let (own, other) = (self.catalog.relation(table).persistence, relation.persistence);
        let refused = match own {
            Persistence::Permanent => other != Persistence::Permanent,
            Persistence::Unlogged => other == Persistence::Temporary,
            Persistence::Temporary => other != Persistence::Temporary,
        };
        if refused {
            let kind = format!("{own:?}").to_lowercase();
            return fail("42P16", format!("constraints on {kind} tables may reference only {kind} tables"), range);
        }
        Ok(())
    }

    /// The referenced columns and the unique index over them; fails where the table is known and has none.
    fn referenced_key(&self, referenced: Oid, key: &ForeignKey, arity: usize) -> Run<(Vec<SmolStr>, Oid)> {
        let relation = self.catalog.relation(referenced);
        if key.referenced_columns.is_empty() {
            return match &relation.primary_key().map(|constraint| constraint.kind.clone()) {
                Some(catalog::ConstraintKind::PrimaryKey { columns, index }) => {
                    if self.is_deferrable(referenced, *index) {
                        let reason =
                            format!("cannot use a deferrable primary key for referenced table \"{}\"", relation.name);
                        return fail("55000", reason, key.table.range());
                    }
                    if columns.len() != arity {
                        let reason = "number of referencing and referenced columns for foreign key disagree";
                        return fail("42830", reason, key.table.range());
                    }
                    Ok((columns.clone(), *index))
                }
                _ if !relation.known => Ok((Vec::new(), Oid::INVALID)),
                _ => {
                    let reason = format!("there is no primary key for referenced table \"{}\"", relation.name);
                    fail("42704", reason, key.table.range())
                }
            };
        }
        key.referenced_columns.get(MAX_KEYS).map_or(Ok(()), |column| check_key_count(MAX_KEYS, column))?;
        let columns = names(&key.referenced_columns);
        if let Some(missing) = key.referenced_columns.iter().find(|name| relation.column(&name.text).is_none())
            && relation.known
        {
            let reason = format!("column \"{}\" referenced in foreign key constraint does not exist", missing.text);
            return fail("42703", reason, missing.range);
        }
        let mut matching = relation.indexes.iter().copied().filter(|oid| self.is_key_over(*oid, &columns)).peekable();
        let deferrable = matching.peek().is_some();
        match matching.find(|index| !self.is_deferrable(referenced, *index)) {
            Some(index) => Ok((columns, index)),
            None if deferrable => {
                let reason =
                    format!("cannot use a deferrable unique constraint for referenced table \"{}\"", relation.name);
                fail("55000", reason, key.table.range())
            }
            None if !relation.known || self.may_be_declared_unique(referenced, &columns) => Ok((columns, Oid::INVALID)),
            None => {
                let reason = format!(
                    "there is no unique constraint matching given keys for referenced table \"{}\"",
                    relation.name
                );
                fail("42830", reason, key.table.range())
            }
        }
    }

    /// Whether the type of a column is unknown. A placeholder such as `$%AUTO_INCREMENT_PRIMARY_KEY%$` in the place of
    /// a type may be a primary key as well.
    fn may_be_declared_unique(&self, table: Oid, columns: &[SmolStr]) -> bool {
        let relation = self.catalog.relation(table);
        let is_assumed = |oid| {
            let definition = self.catalog.get_type(oid);
            definition.is_some_and(|definition| matches!(definition.kind, catalog::TypeKind::Assumed))
        };
        columns.iter().filter_map(|column| relation.column(column)).any(|column| {
            let sql_type = column.sql_type;
            !sql_type.is_known() || is_assumed(sql_type.oid)
        })
    }

    /// Whether uniqueness is checked late, so that rows cannot rely on it.
    pub(super) fn is_deferrable(&self, table: Oid, index: Oid) -> bool {
        let mut constraints = self.catalog.relation(table).constraints.iter();
        constraints.any(|constraint| constraint.index() == Some(index) && constraint.deferrable)
    }

    /// A unique index over exactly these columns, in any order, without predicate.
    fn is_key_over(&self, oid: Oid, columns: &[SmolStr]) -> bool {
        let Some(index) = self.catalog.get_relation(oid).and_then(|relation| relation.index()) else { return false };
        let Some(keys) = index.plain_columns() else { return false };
        index.unique
            && index.predicate.is_none()
            && keys.len() == columns.len()
            && columns.iter().all(|column| keys.contains(column))
    }

    fn fresh_name(&self, table: &str, columns: &[SmolStr], schema: &str) -> SmolStr {
        let addition = foreign_key_name_addition(columns);
        self.catalog.choose_constraint_name(table, Some(&addition), "fkey", schema, &[])
    }

    pub(super) fn descendants_if_partitioned(&self, table: Oid) -> Vec<Oid> {
        match self.catalog.relation(table).kind {
            RelationKind::PartitionedTable => self.descendants(table),
            _ => Vec::new(),
        }
    }

    /// Adds the constraint to a table and its partitions, and checks those that have rows.
    pub(crate) fn add_foreign_key_to_tree(
        &mut self,
        table: Oid,
        constraint: &catalog::Constraint,
        check_rows: bool,
        range: TextRange,
    ) {
        let partitions = self.descendants_if_partitioned(table);
        for target in std::iter::once(table).chain(partitions) {
            let mut own = constraint.clone();
            if target != table {
                self.lock(target, LockMode::ShareRowExclusive, LockCause::Child, range);
                if self.adopt_foreign_key(target, &own) {
                    continue;
                }
                own.is_local = false;
                own.inherited_from = 1;
                let relation = self.catalog.relation(target);
                if relation.constraint(&own.name).is_some() {
                    let columns = own.columns().to_vec();
                    own.name = self.fresh_name(&relation.name, &columns, &relation.schema);
                }
            }
            let cause = ScanCause::ForeignKey { constraint: Some(own.name.clone()) };
            self.catalog.add_constraint(target, own);
            if check_rows && self.catalog.relation(target).kind == RelationKind::Table {
                self.demand_of_check(target, &cause, range);
                self.scan(target, cause, range);
            } else if check_rows {
                self.check_partitions(target, cause, range);
            }
        }
    }

    /// A partition that has an equal and valid foreign key of its own keeps it as the counterpart of its parent's, and is
    /// not checked again.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `tryAttachPartitionForeignKey`.
    fn adopt_foreign_key(&mut self, partition: Oid, parents: &catalog::Constraint) -> bool {
        let Some(key) = parents.foreign_key() else { return false };
        let equal = |other: &&std::sync::Arc<catalog::Constraint>| {
            other.foreign_key().is_some_and(|own| own == key)
                && other.valid
                && other.enforced == parents.enforced
                && other.deferrable == parents.deferrable
                && other.initially_deferred == parents.initially_deferred
        };
        let found = self.catalog.relation(partition).constraints.iter().find(equal);
        let Some(name) = found.map(|constraint| constraint.name.clone()) else { return false };
        let is_meant = |constraint: &catalog::Constraint| constraint.name == name && constraint.inherited_from == 0;
        self.catalog.relation_mut(partition).constraints.update_where(is_meant, |constraint| {
            constraint.inherited_from = 1;
            constraint.is_local = false;
        });
        true
    }
}
