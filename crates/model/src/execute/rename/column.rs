//! RENAME COLUMN and RENAME ATTRIBUTE: everything that names the column follows.

use crate::catalog::{Column, Constraint, ConstraintKind, Oid, RelationDetail, RelationKind};
use crate::effect::{LockCause, RenamedObject, Renaming};
use crate::execute::alter_table::is_system_column;
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{Expr, ExprKind, LockMode, Name, Rename};
use smol_str::SmolStr;
use std::sync::Arc;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `renameatt`.
    pub(super) fn rename_column(&mut self, rename: &Rename) -> Run {
        let mode = LockMode::AccessExclusive;
        let kind = Self::assumed_kind(rename.relation_kind);
        let Some(table) = self.open_if_exists(&rename.object, kind, mode, rename.if_exists)? else {
            return Ok(());
        };
        let Some(old) = &rename.sub_name else { return Ok(()) };
        if rename.only && !self.catalog.relation(table).children.is_empty() {
            let reason = format!("inherited column \"{}\" must be renamed in child tables too", old.text);
            return fail("42P16", reason, old.range);
        }
        let typed_tables = self.typed_tables(table);
        if !typed_tables.is_empty() && !rename.cascade {
            return fail("2BP01", "cannot alter a type that is the type of a typed table", rename.object.range());
        }
        self.check_column_rename(table, old, &rename.new_name)?;
        let mut tables = vec![table];
        if !rename.only {
            tables.extend(self.lock_descendants(table, mode, rename.object.range()));
        }
        for typed in typed_tables {
            self.lock(typed, mode, LockCause::TypeUser, rename.object.range());
            tables.push(typed);
        }
        self.check_no_other_parent(&tables, old, "rename")?;
        let (old_name, new_name) = (old.text.clone(), rename.new_name.text.clone());
        let object = RenamedObject::Column { table: self.relation_name(table), old: old_name, new: new_name };
        self.effects.renames.push(Renaming { object, range: old.range });
        for table in tables {
            self.rename_column_in(table, &old.text, &rename.new_name.text);
        }
        Ok(())
    }

    fn check_column_rename(&self, table: Oid, old: &Name, new: &Name) -> Run {
        let relation = self.catalog.relation(table);
        let column = relation.column(&old.text);
        if relation.kind == RelationKind::Sequence {
            return fail("42809", format!("cannot rename columns of relation \"{}\"", relation.name), old.range);
        }
        if relation.of_type.is_some() {
            return fail("42809", "cannot rename column of typed table", old.range);
        }
        if is_system_column(&old.text) {
            return fail("0A000", format!("cannot rename system column \"{}\"", old.text), old.range);
        }
        if is_system_column(&new.text) {
            return fail("42701", format!("column name \"{}\" conflicts with a system column", new.text), new.range);
        }
        if column.is_none() && relation.known {
            return fail("42703", format!("column \"{}\" does not exist", old.text), old.range);
        }
        if column.is_some_and(|column| column.inherited_from > 0) {
            return fail("42P16", format!("cannot rename inherited column \"{}\"", old.text), old.range);
        }
        if relation.column(&new.text).is_some() {
            let reason = format!("column \"{}\" of relation \"{}\" already exists", new.text, relation.name);
            return fail("42701", reason, new.range);
        }
        Ok(())
    }

    fn rename_column_in(&mut self, table: Oid, old: &SmolStr, new: &SmolStr) {
        self.catalog.rename_column_of_statistics(table, old, new);
        self.catalog.rename_column_privileges(table, old, new);
        let indexes = self.catalog.relation(table).indexes.clone();
        let relation = self.catalog.relation_mut(table);
        if !relation.known && !relation.gone_columns.contains(old) {
            relation.gone_columns.push(old.clone());
        }
        relation.gone_columns.retain(|gone| gone != new);
        for column in &mut relation.columns {
            if column.name == *old {
                column.name = new.clone();
            }
            rename_in_column(column, old, new);
        }
        relation.constraints.update_where(|_| true, |constraint| rename_in_constraint(&mut constraint.kind, old, new));
        relation.triggers.update_where(
            |trigger| trigger.condition.is_some() || trigger.columns.contains(old),
            |trigger| {
                replace(&mut trigger.columns, old, new);
                if let Some(condition) = &mut trigger.condition {
                    rename_in(Arc::make_mut(condition), old, new);
                }
            },
        );
        relation.policies.update_where(
            |_| true,
            |policy| {
                for expression in policy.using.iter_mut().chain(&mut policy.check) {
                    rename_in(Arc::make_mut(expression), old, new);
                }
            },
        );
        if let Some(key) = &mut relation.partition_by {
            Arc::make_mut(&mut key.keys).iter_mut().for_each(|expr| rename_in(expr, old, new));
        }
        let (sequences, referencing, views) =
            (relation.owned_sequences.clone(), relation.referenced_by.clone(), relation.viewed_by.clone());
        for index in indexes {
            self.rename_in_index(index, old, new);
        }
        for sequence in sequences {
            if let RelationDetail::Sequence(sequence) = &mut self.catalog.relation_mut(sequence).detail
                && let Some((_, column)) = &mut sequence.owned_by
                && column == old
            {
                *column = new.clone();
            }
        }
        for other in referencing {
            self.rename_in_foreign_keys(other, table, old, new);
        }
        for view in views {
            if self.catalog.get_relation(view).is_some()
                && let RelationDetail::View(definition) = &mut self.catalog.relation_mut(view).detail
            {
                let references = Arc::make_mut(definition).references.iter_mut();
                references.filter(|(oid, _)| *oid == table).for_each(|(_, columns)| replace(columns, old, new));
            }
        }
    }

    fn rename_in_index(&mut self, index: Oid, old: &SmolStr, new: &SmolStr) {
        if let RelationDetail::Index(index) = &mut self.catalog.relation_mut(index).detail {
            let index = Arc::make_mut(index);
            for element in Arc::make_mut(&mut index.elements) {
                rename_in(&mut element.key, old, new);
            }
            replace(&mut index.including, old, new);
            if let Some(predicate) = &mut index.predicate {
                rename_in(Arc::make_mut(predicate), old, new);
            }
        }
    }

    fn rename_in_foreign_keys(&mut self, referencing: Oid, referenced: Oid, old: &SmolStr, new: &SmolStr) {
        if self.catalog.get_relation(referencing).is_none() {
            return;
        }
        let is_meant =
            |constraint: &Constraint| constraint.foreign_key().is_some_and(|key| key.referenced == referenced);
        self.catalog.relation_mut(referencing).constraints.update_where(is_meant, |constraint| {
            if let ConstraintKind::ForeignKey(key) = &mut constraint.kind {
                replace(&mut key.referenced_columns, old, new);
            }
        });
    }
}

fn rename_in_column(column: &mut Column, old: &SmolStr, new: &SmolStr) {
    if let Some(generated) = &mut column.generated {
        rename_in(Arc::make_mut(&mut generated.expression), old, new);
    }
}

fn rename_in_constraint(kind: &mut ConstraintKind, old: &SmolStr, new: &SmolStr) {
    match kind {
        ConstraintKind::NotNull { column } => {
            if column == old {
                *column = new.clone();
            }
        }
        ConstraintKind::Check { expression, columns } => {
            rename_in(Arc::make_mut(expression), old, new);
            replace(columns, old, new);
        }
        ConstraintKind::PrimaryKey { columns, .. } | ConstraintKind::Unique { columns, .. } => {
            replace(columns, old, new);
        }
        ConstraintKind::ForeignKey(key) => {
            replace(&mut key.columns, old, new);
            replace(&mut key.set_columns, old, new);
        }
        ConstraintKind::Exclude { .. } => {}
    }
}

fn replace(columns: &mut [SmolStr], old: &SmolStr, new: &SmolStr) {
    columns.iter_mut().filter(|column| *column == old).for_each(|column| *column = new.clone());
}

/// Renames a column in an expression over one table.
fn rename_in(expr: &mut Expr, old: &SmolStr, new: &SmolStr) {
    if let ExprKind::Column(path) = &mut expr.kind
        && let Some(last) = path.last_mut()
        && last == old
    {
        *last = new.clone();
    }
    expr.for_each_child_mut(&mut |child| rename_in(child, old, new));
}
