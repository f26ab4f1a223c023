//! NOT NULL: SET and DROP, and the constraint that is behind it from 18 on.

use super::Altering;
use crate::catalog::{self, Oid, RelationKind};
use crate::effect::{LockCause, ScanCause};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{Constraint, Name};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

impl Executor<'_> {
    /// ADD CONSTRAINT ... NOT NULL.
    pub(super) fn add_named_not_null(
        &mut self,
        altering: &mut Altering,
        constraint: &Constraint,
        column: &Name,
        range: TextRange,
    ) -> Run {
        self.require_column(altering.table, column)?;
        let relation = self.catalog.relation(altering.table);
        if constraint.no_inherit && relation.kind == RelationKind::PartitionedTable {
            let reason = "not-null constraints on partitioned tables cannot be NO INHERIT";
            return fail("0A000", reason, range);
        }
        let existing = self.not_null_constraint(altering.table, &column.text);
        if let (Some(name), Some(existing)) = (&constraint.name, existing)
            && name.text != existing
        {
            let reason = format!("column \"{}\" has the not-null constraint \"{existing}\" already", column.text);
            return fail("55000", reason, name.range);
        }
        if let Some(name) = constraint.name.as_ref().filter(|_| !self.forbids_nulls(altering.table, &column.text)) {
            self.check_constraint_is_new(altering.table, name)?;
        }
        if !constraint.no_inherit {
            self.check_not_null_reaches_children(altering, &column.text, true, range)?;
        }
        // What is there already is not handed down again.
        let alone = constraint.no_inherit || self.forbids_nulls(altering.table, &column.text);
        let targets = if alone { vec![altering.table] } else { self.altered_tables(altering) };
        for target in &targets {
            self.check_not_null_fits(*target, &column.text, constraint, range)?;
        }
        for target in targets {
            let before = self.catalog.relation(target).column(&column.text).is_some_and(|found| found.not_null);
            self.make_not_null(altering, target, &column.text, constraint.name.as_ref(), !constraint.not_valid, range);
            if constraint.no_inherit && !before {
                self.set_no_inherit(target, &column.text);
            }
            if constraint.not_valid && !before {
                self.set_validity(target, &column.text, false);
            }
        }
        Ok(())
    }

    fn set_no_inherit(&mut self, table: Oid, column: &SmolStr) {
        if let Some(name) = self.not_null_constraint(table, column) {
            self.update_constraint(table, &name, |constraint| constraint.no_inherit = true);
        }
    }

    fn set_validity(&mut self, table: Oid, column: &SmolStr, valid: bool) {
        let is_meant = |constraint: &catalog::Constraint| matches!(&constraint.kind, catalog::ConstraintKind::NotNull { column: other } if other == column);
        let constraints = &mut self.catalog.relation_mut(table).constraints;
        constraints.update_where(is_meant, |constraint| constraint.valid = valid);
    }

    /// A primary key needs NOT NULL constraints that are valid and that children inherit.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `verifyNotNullPKCompatible`.
    pub(super) fn check_not_nulls_of_key(&self, table: Oid, columns: &[Name]) -> Run {
        let relation = self.catalog.relation(table);
        let unfit = |column: &&Name| {
            let name = self.not_null_constraint(table, &column.text);
            let constraint = name.and_then(|name| relation.constraint(&name));
            constraint.is_some_and(|constraint| !constraint.valid || constraint.no_inherit)
        };
        match columns.iter().find(unfit) {
            Some(column) => {
                fail("55000", format!("cannot create primary key on column \"{}\"", column.text), column.range)
            }
            None => Ok(()),
        }
    }

    /// Gives the NOT NULL of a column its constraint, which descendants inherit with its name.
    pub(super) fn name_not_null(&mut self, altering: &Altering, column: &SmolStr, name: Option<SmolStr>) {
        self.add_not_null_constraint(altering.table, column, name);
        let name = self.not_null_constraint(altering.table, column);
        for target in self.altered_tables(altering) {
            if target != altering.table {
                self.add_not_null_constraint(target, column, name.clone());
                self.mark_not_null_inherited(target, column);
            }
        }
    }

    pub(super) fn set_not_null(&mut self, altering: &mut Altering, column: &Name, range: TextRange) -> Run {
        self.require_column(altering.table, column)?;
        self.check_not_null_reaches_children(altering, &column.text, false, range)?;
        let forbids = self.forbids_nulls(altering.table, &column.text);
        if !self.target.at_least(18) {
            for target in self.altered_tables(altering) {
                self.make_not_null(altering, target, &column.text, None, true, range);
            }
        } else if let Some(own) = self.not_null_of(altering.table, &column.text).cloned().filter(|_| forbids) {
            return self.set_not_null_again(altering, &own, range);
        } else {
            self.make_not_null(altering, altering.table, &column.text, None, true, range);
            self.set_not_null_below(altering, altering.table, &column.text, range)?;
        }
        let relation = self.catalog.relation(altering.table);
        let alone = !altering.recurse && !relation.children.is_empty() && !self.is_partitioned(altering.table);
        if let Some(name) = self.not_null_constraint(altering.table, &column.text).filter(|_| alone) {
            // ONLY says that the children need not follow.
            self.update_constraint(altering.table, &name, |constraint| constraint.no_inherit = true);
        }
        Ok(())
    }

    /// SET NOT NULL on what has the constraint makes it the table's own, or else validates it.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATExecSetNotNull`.
    fn set_not_null_again(&mut self, altering: &mut Altering, own: &catalog::Constraint, range: TextRange) -> Run {
        if own.no_inherit && altering.recurse {
            return fail("0A000", format!("cannot change NO INHERIT status of \"{}\"", own.name), range);
        }
        if own.is_local && !own.valid {
            return self.validate_constraint(altering, &Name::new(own.name.clone(), range), range);
        }
        self.update_constraint(altering.table, &own.name, |own| own.is_local = true);
        Ok(())
    }

    /// Goes down level by level, as far as children do not have the constraint already.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATExecSetNotNull`.
    fn set_not_null_below(&mut self, altering: &mut Altering, table: Oid, column: &SmolStr, range: TextRange) -> Run {
        for child in self.children_to_alter(altering, table, range) {
            if !self.forbids_nulls(child, column) {
                self.make_not_null(altering, child, column, None, true, range);
                self.set_not_null_below(altering, child, column, range)?;
            } else if let Some(own) = self.not_null_of(child, column).cloned() {
                if own.no_inherit {
                    return fail("0A000", format!("cannot change NO INHERIT status of \"{}\"", own.name), range);
                }
                self.inherit_not_null(child, &own.name);
            }
        }
        Ok(())
    }

    /// Counts one parent more for a NOT NULL.
    pub(super) fn inherit_not_null(&mut self, table: Oid, name: &str) {
        self.update_constraint(table, name, |own| own.inherited_from = own.inherited_from.saturating_add(1));
    }

    /// The children of a table, locked, unless the statement says ONLY.
    fn children_to_alter(&mut self, altering: &Altering, table: Oid, range: TextRange) -> Vec<Oid> {
        let children: Vec<Oid> =
            if altering.recurse { self.catalog.relation(table).children.iter().copied().collect() } else { Vec::new() };
        for child in &children {
            self.lock(*child, altering.lock, LockCause::Child, range);
        }
        children
    }

    pub(super) fn forbids_nulls(&self, table: Oid, column: &str) -> bool {
        self.catalog.relation(table).column(column).is_some_and(|found| found.not_null)
    }

    /// ONLY is enough where the partitions forbid nulls already; ADD NOT NULL (`named`) asks that of all children.
    pub(super) fn check_not_null_reaches_children(
        &mut self,
        altering: &Altering,
        column: &SmolStr,
        named: bool,
        range: TextRange,
    ) -> Run {
        let relation = self.catalog.relation(altering.table);
        let forbids = |oid: &Oid| self.catalog.relation(*oid).column(column).is_none_or(|found| found.not_null);
        let strict = relation.kind == RelationKind::PartitionedTable || named;
        if altering.recurse || !strict || relation.children.is_empty() || forbids(&altering.table) {
            return Ok(());
        }
        if self.target.at_least(18) || !relation.children.iter().all(forbids) {
            return fail("42P16", "constraint must be added to child tables too", range);
        }
        self.lock_keeping_children(altering, range);
        Ok(())
    }

    /// Forbids nulls in a column: reads the table unless valid constraints prove that there are none.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `NotNullImpliedByRelConstraints`.
    pub(super) fn make_not_null(
        &mut self,
        altering: &mut Altering,
        table: Oid,
        column: &SmolStr,
        name: Option<&Name>,
        check: bool,
        range: TextRange,
    ) {
        if self.forbids_nulls(table, column) {
            return;
        }
        let proven = self.target.at_least(12) && self.constraints_imply_not_null(table, column);
        if check && !proven {
            altering.work.check(table, ScanCause::NotNull { column: column.clone() }, range);
        }
        if let Some(found) = self.catalog.relation_mut(table).column_mut(column) {
            found.not_null = true;
        }
        let inherited = self.not_null_constraint(altering.table, column).filter(|_| table != altering.table);
        let given = inherited.clone().or_else(|| name.map(|name| name.text.clone()));
        self.add_not_null_constraint(table, column, given);
        if inherited.is_some() {
            self.mark_not_null_inherited(table, column);
        }
    }

    /// The constraint behind NOT NULL.
    fn not_null_of(&self, table: Oid, column: &SmolStr) -> Option<&Arc<catalog::Constraint>> {
        let name = self.not_null_constraint(table, column)?;
        self.catalog.relation(table).constraint(&name)
    }

    /// Whether a NOT NULL exists that old rows need not obey.
    pub(super) fn has_unproven_not_null(&self, table: Oid, column: &SmolStr) -> bool {
        self.not_null_of(table, column).is_some_and(|own| !own.valid)
    }

    /// NOT NULL is asked for once more: what there is must be inherited and valid, where that is asked for.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/pg_constraint.c`, `AdjustNotNullInheritance`.
    fn check_not_null_fits(&self, table: Oid, column: &SmolStr, asked: &Constraint, range: TextRange) -> Run {
        let Some(own) = self.not_null_of(table, column).filter(|_| self.forbids_nulls(table, column)) else {
            return Ok(());
        };
        if own.no_inherit != asked.no_inherit {
            return fail("55000", format!("cannot change NO INHERIT status of \"{}\"", own.name), range);
        }
        if !own.valid && !asked.not_valid {
            return fail("55000", format!("incompatible NOT VALID constraint \"{}\"", own.name), range);
        }
        Ok(())
    }

    /// The name of the constraint behind NOT NULL.
    pub(in crate::execute) fn not_null_constraint(&self, table: Oid, column: &SmolStr) -> Option<SmolStr> {
        let constraints = &self.catalog.relation(table).constraints;
        constraints.iter().find_map(|constraint| match &constraint.kind {
            catalog::ConstraintKind::NotNull { column: other } if other == column => Some(constraint.name.clone()),
            _ => None,
        })
    }

    fn mark_not_null_inherited(&mut self, table: Oid, column: &SmolStr) {
        if let Some(name) = self.not_null_constraint(table, column) {
            self.update_constraint(table, &name, |constraint| {
                constraint.is_local = false;
                constraint.inherited_from = constraint.inherited_from.max(1);
            });
        }
    }

    /// The constraint behind NOT NULL, which has a name from 18 on.
    pub(crate) fn add_not_null_constraint(&mut self, table: Oid, column: &SmolStr, name: Option<SmolStr>) {
        if self.not_null_constraint(table, column).is_some() {
            return;
        }
        let relation = self.catalog.relation(table);
        let chosen =
            || self.catalog.choose_constraint_name(&relation.name, Some(column), "not_null", &relation.schema, &[]);
        // Before 18 the given name is forgotten.
        let name = name.filter(|_| self.target.at_least(18)).unwrap_or_else(chosen);
        let kind = catalog::ConstraintKind::NotNull { column: column.clone() };
        self.catalog.add_constraint(table, catalog::Constraint::new(name, kind));
    }

    pub(super) fn drop_not_null(&mut self, altering: &Altering, column: &Name) -> Run {
        self.require_column(altering.table, column)?;
        let relation = self.catalog.relation(altering.table);
        if relation.column(&column.text).is_some_and(|found| found.identity.is_some()) {
            return fail("42601", format!("column \"{}\" is an identity column", column.text), column.range);
        }
        let not_null = self.forbids_nulls(altering.table, &column.text);
        let mut losing = vec![altering.table];
        let mut keeping = Vec::new();
        let alone = self.not_null_of(altering.table, &column.text).is_some_and(|own| own.no_inherit);
        if !self.target.at_least(18) {
            losing = self.altered_tables(altering);
        } else if not_null && !alone {
            self.find_losing_below(altering, column, altering.table, &mut losing, &mut keeping);
        }
        let relation = self.catalog.relation(altering.table);
        let in_key = |table: &Oid| {
            let key = self.catalog.relation(*table).primary_key();
            key.is_some_and(|key| key.columns().contains(&column.text))
        };
        if losing.iter().any(in_key) {
            return fail("42P16", format!("column \"{}\" is in a primary key", column.text), column.range);
        }
        let inherited = if self.target.at_least(18) {
            let constraint = self.not_null_constraint(altering.table, &column.text);
            constraint.is_some_and(|name| relation.constraint(&name).is_some_and(|found| found.inherited_from > 0))
        } else {
            relation.is_partition()
                && relation.parents.iter().any(|parent| {
                    let parent = self.catalog.get_relation(*parent).and_then(|parent| parent.column(&column.text));
                    parent.is_some_and(|found| found.not_null)
                })
        };
        if inherited {
            return fail(
                "42P16",
                format!("column \"{}\" is marked NOT NULL in parent table", column.text),
                column.range,
            );
        }
        if !altering.recurse && not_null && !alone && self.target.at_least(18) {
            self.lock_keeping_children(altering, column.range);
            self.disinherit_not_null(altering, &column.text);
        }
        for target in losing {
            self.forget_not_null(target, &column.text);
        }
        for target in keeping {
            if let Some(name) = self.not_null_constraint(target, &column.text) {
                self.update_constraint(target, &name, |own| own.inherited_from = own.inherited_from.saturating_sub(1));
            }
        }
        Ok(())
    }

    /// Goes down level by level: children keep a constraint that they also have from
    /// elsewhere, and with it those below them.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `dropconstraint_internal`.
    fn find_losing_below(
        &mut self,
        altering: &Altering,
        column: &Name,
        table: Oid,
        losing: &mut Vec<Oid>,
        keeping: &mut Vec<Oid>,
    ) {
        for child in self.children_to_alter(altering, table, column.range) {
            let name = self.not_null_constraint(child, &column.text);
            let own = name.and_then(|name| self.catalog.relation(child).constraint(&name).cloned());
            if own.is_none_or(|own| !own.is_local && own.inherited_from <= 1) {
                losing.push(child);
                self.find_losing_below(altering, column, child, losing, keeping);
            } else {
                keeping.push(child);
            }
        }
    }

    pub(super) fn forget_not_null(&mut self, table: Oid, column: &SmolStr) {
        if let Some(found) = self.catalog.relation_mut(table).column_mut(column) {
            found.not_null = false;
        }
        let constraints = &self.catalog.relation(table).constraints;
        let named = constraints.iter().find_map(|constraint| match &constraint.kind {
            catalog::ConstraintKind::NotNull { column: other } if other == column => Some(constraint.name.clone()),
            _ => None,
        });
        if let Some(name) = named {
            self.catalog.remove_constraint(table, &name);
        }
    }
}
