//! ALTER COLUMN TYPE: whether it rewrites the table, and the objects that depend on the column.
//!
//! Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATPrepAlterColumnType`, `ATExecAlterColumnType`,
//! `ATPostAlterTypeCleanup`; `src/backend/commands/indexcmds.c`, `CheckIndexCompatible`.

use super::Altering;
use crate::builtin::{CastContext, oid};
use crate::catalog::{Column, Constraint, ConstraintKind, Index, Oid, RelationDetail, RelationKind, SqlType};
use crate::effect::{IndexBuildCause, LockCause, RewriteCause, ScanCause, Using};
use crate::execute::expressions::{TypeChange, collation_asked, mentions};
use crate::execute::{Executor, Run, fail};
use crate::expression::Coercion;
use pgvet_syntax::ast::{AlterTableCommand, Expr, ExprKind, Literal, LockMode, Name, ObjectName, TypeName};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

/// A column whose type has changed, until what hangs on it is rebuilt.
#[derive(Debug, Clone)]
pub(super) struct ChangedColumn {
    table: Oid,
    column: SmolStr,
    old: SqlType,
    new: SqlType,
    collation_changed: bool,
    range: TextRange,
}

impl Executor<'_> {
    pub(super) fn alter_column_type(
        &mut self,
        altering: &mut Altering,
        column: &Name,
        type_name: &TypeName,
        collation: Option<&ObjectName>,
        using: Option<&Expr>,
        command: &AlterTableCommand,
    ) -> Run {
        let twice = |changed: &ChangedColumn| {
            changed.table == altering.table && changed.column == column.text && changed.old != changed.new
        };
        if altering.changed.iter().any(twice) {
            return fail("0A000", format!("cannot alter type of column \"{}\" twice", column.text), column.range);
        }
        let new = self.require_type(type_name)?;
        let new_collation = collation_asked(collation);
        for target in self.altered_tables(altering) {
            let Some(found) = self.catalog.relation(target).column(&column.text).cloned() else {
                self.check_column_users(target, column)?;
                self.type_change_of_unknown(altering, target, column, new, command);
                continue;
            };
            self.change_type(altering, target, &found, new, new_collation.clone(), using, command)?;
        }
        Ok(())
    }

    /// Checks the command before any command of the statement has changed the table.
    pub(super) fn prepare_column_type(
        &mut self,
        altering: &Altering,
        column: &Name,
        type_name: &TypeName,
        collation: Option<&ObjectName>,
        using: Option<&Expr>,
        range: TextRange,
    ) -> Run {
        self.require_column(altering.table, column)?;
        let new = self.require_type(type_name)?;
        let found = self.catalog.relation(altering.table).column(&column.text);
        if found.is_some_and(|found| found.identity.is_some()) {
            check_identity_type(new, column.range)?;
        }
        self.check_type_can_change(altering, column, using)?;
        if let Some(collation) = collation {
            self.check_collation(new, collation.range())?;
        }
        self.check_no_other_parent(&self.altered_tables(altering), column, "alter")?;
        for target in self.altered_tables(altering) {
            self.check_not_in_partition_key(target, column)?;
            if matches!(
                self.catalog.relation(target).kind,
                RelationKind::CompositeType | RelationKind::PartitionedTable
            ) {
                self.check_row_type_unused(target, range)?;
            }
            if let Some(found) = self.catalog.relation(target).column(&column.text).cloned()
                && let TypeChange::Impossible(sqlstate) = self.type_change_of_rows(target, &found, new, using)
            {
                return fail_type_change(sqlstate, &found.name, range);
            }
        }
        Ok(())
    }

    /// A column that no statement has shown: its old type, and so the work, is not known.
    fn type_change_of_unknown(
        &mut self,
        altering: &mut Altering,
        table: Oid,
        column: &Name,
        new: SqlType,
        command: &AlterTableCommand,
    ) {
        self.unknown(format!("the type of column \"{}\" before the change is not known", column.text));
        let cause = RewriteCause::TypeChange {
            column: column.text.clone(),
            from: SqlType::UNKNOWN,
            to: new,
            using: Using::Absent,
        };
        altering.work.rewrite(table, cause, command.keyword);
    }

    /// Returns the effect of the change on stored rows: a composite type has none.
    fn type_change_of_rows(&mut self, table: Oid, found: &Column, new: SqlType, using: Option<&Expr>) -> TypeChange {
        if self.catalog.relation(table).kind == RelationKind::CompositeType {
            return TypeChange::NoRewrite;
        }
        self.type_change(table, found, new, using)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one command")]
    fn change_type(
        &mut self,
        altering: &mut Altering,
        table: Oid,
        found: &Column,
        new: SqlType,
        new_collation: Option<SmolStr>,
        using: Option<&Expr>,
        command: &AlterTableCommand,
    ) -> Run {
        let old = found.sql_type;
        let cause = RewriteCause::TypeChange {
            column: found.name.clone(),
            from: old,
            to: new,
            using: use_of(using, &found.name),
        };
        match self.type_change_of_rows(table, found, new, using) {
            TypeChange::Impossible(sqlstate) => {
                return fail_type_change(sqlstate, &found.name, command.keyword);
            }
            // What is computed when it is read is not stored.
            TypeChange::Rewrite | TypeChange::NoRewriteInUtc if found.is_virtual() => {}
            TypeChange::Rewrite => {
                self.demand_of_type_change(table, found, new, using, command.keyword);
                altering.work.rewrite(table, cause, command.keyword);
            }
            TypeChange::NoRewriteInUtc => self.rewrite_unless_utc(table, cause, command.keyword),
            TypeChange::NoRewrite => {}
        }
        altering.work.gives_values(table, command.keyword);
        self.check_default_can_change(table, found, new, command.keyword)?;
        self.check_column_users(table, &Name::new(found.name.clone(), command.keyword))?;
        if found.identity.is_some()
            && let Some(sequence) = self.owned_sequence(table, &found.name)
        {
            self.lock(sequence, LockMode::ShareRowExclusive, LockCause::Part, command.keyword);
        }
        let collation_changed = new_collation != found.collation && self.is_collatable(new);
        self.settle_literals(table, &found.name);
        self.settle_default(table, found);
        if let Some(column) = self.catalog.relation_mut(table).column_mut(&found.name) {
            column.sql_type = new;
            column.collation = new_collation;
            column.has_missing_value = false;
            // As is usual for the new type.
            column.storage = None;
            column.held = None;
        }
        altering.changed.push(ChangedColumn {
            table,
            column: found.name.clone(),
            old,
            new,
            collation_changed,
            range: command.keyword,
        });
        Ok(())
    }

    fn check_type_can_change(&self, altering: &Altering, column: &Name, using: Option<&Expr>) -> Run {
        let relation = self.catalog.relation(altering.table);
        if using.is_some() && relation.column(&column.text).is_some_and(|found| found.generated.is_some()) {
            return fail("42611", "cannot specify USING when altering type of generated column", column.range);
        }
        if let Some(found) = relation.column(&column.text)
            && found.inherited_from > 0
        {
            return fail("42P16", format!("cannot alter inherited column \"{}\"", column.text), column.range);
        }
        if !altering.recurse && !relation.children.is_empty() {
            let reason = format!("type of inherited column \"{}\" must be changed in child tables too", column.text);
            return fail("42P16", reason, column.range);
        }
        Ok(())
    }

    /// A default, or what a generated column is computed from, must fit the new type as well; USING says nothing of it.
    fn check_default_can_change(&self, table: Oid, column: &Column, new: SqlType, range: TextRange) -> Run {
        let (expression, what) = match (&column.generated, &column.default) {
            (Some(generated), _) => (&generated.expression, "generation expression"),
            (None, Some(default)) => (default, "default"),
            (None, None) => return Ok(()),
        };
        let typed = self.analyze(expression, Some(table)).sql_type;
        let fits = self.with_analyzer(|analyzer| {
            // A literal has taken the type that the column had.
            let from = if typed.oid.0 == oid::UNKNOWN { analyzer.base_type(column.sql_type) } else { typed };
            analyzer.coercion(from, new, CastContext::Assignment) != Coercion::Impossible
        });
        if !fits {
            let reason = format!("{what} for column \"{}\" cannot be cast automatically to the new type", column.name);
            return fail("42804", reason, range);
        }
        Ok(())
    }

    /// Every parent of a child that has the column must be among the tables that change. The first is not looked at.
    pub(in crate::execute) fn check_no_other_parent(&self, tables: &[Oid], column: &Name, what: &str) -> Run {
        for child in tables.iter().skip(1) {
            let relation = self.catalog.relation(*child);
            let expected = relation.parents.iter().filter(|parent| tables.contains(parent)).count();
            let found = relation.column(&column.text).map_or(0, |found| usize::from(found.inherited_from));
            if found > expected {
                let reason =
                    format!("cannot {what} inherited column \"{}\" of relation \"{}\"", column.text, relation.name);
                return fail("42P16", reason, column.range);
            }
        }
        Ok(())
    }

    fn check_not_in_partition_key(&self, table: Oid, column: &Name) -> Run {
        let relation = self.catalog.relation(table);
        let name = &column.text;
        if relation.partition_by.iter().flat_map(|key| key.keys.iter()).any(|key| mentions(key, name)) {
            let reason = format!(
                "cannot alter column \"{name}\" because it is part of the partition key of \"{}\"",
                relation.name
            );
            return fail("42P16", reason, column.range);
        }
        Ok(())
    }

    /// PostgreSQL refuses to change a column that certain objects use, once it knows that the type can be changed.
    fn check_column_users(&self, table: Oid, column: &Name) -> Run {
        let relation = self.catalog.relation(table);
        let name = &column.text;
        let generated = relation.columns.iter().filter_map(|other| other.generated.as_ref());
        if generated.into_iter().any(|generated| mentions(&generated.expression, name)) {
            let sqlstate = if self.target.at_least(15) { "0A000" } else { "42601" };
            return fail(sqlstate, "cannot alter type of a column used by a generated column", column.range);
        }
        let used_by = if self.view_using(table, name).is_some() {
            "a view or rule"
        } else if relation
            .policies
            .iter()
            .any(|policy| policy.using.iter().chain(&policy.check).any(|e| mentions(e, name)))
        {
            "a policy definition"
        } else if relation.triggers.iter().any(|trigger| {
            trigger.columns.contains(name) || trigger.condition.as_ref().is_some_and(|e| mentions(e, name))
        }) {
            "a trigger definition"
        } else {
            ""
        };
        if !used_by.is_empty() {
            let reason = format!("cannot alter type of a column used by {used_by}");
            return fail("0A000", reason, column.range);
        }
        Ok(())
    }

    /// The view that uses a column, if one is known to.
    fn view_using(&self, table: Oid, column: &SmolStr) -> Option<Oid> {
        let viewed_by = &self.catalog.relation(table).viewed_by;
        viewed_by.iter().copied().find(|view| {
            let definition = self.catalog.get_relation(*view).and_then(|relation| relation.view());
            definition.is_some_and(|definition| {
                definition.references.iter().any(|(oid, columns)| *oid == table && columns.contains(column))
            })
        })
    }

    /// Keeps the old type of literals beside the column, in expressions that will be read again.
    fn settle_literals(&mut self, table: Oid, column: &SmolStr) {
        let scope = self.scope_of(table);
        let settled = |executor: &Self, expression: &Arc<Expr>| {
            let mut settled = Expr::clone(expression);
            executor.with_analyzer(|analyzer| analyzer.settle_literals(&mut settled, &scope));
            Arc::new(settled)
        };
        for constraint in &self.catalog.relation(table).constraints.clone() {
            if let ConstraintKind::Check { columns, expression } = &constraint.kind
                && columns.contains(column)
            {
                let kept = settled(self, expression);
                self.update_constraint(table, &constraint.name, |constraint| {
                    if let ConstraintKind::Check { expression, .. } = &mut constraint.kind {
                        expression.clone_from(&kept);
                    }
                });
            }
        }
        for oid in self.catalog.relation(table).indexes.clone() {
            let Some(index) = self.catalog.relation(oid).index() else { continue };
            let Some(predicate) = index.predicate.as_ref().filter(|predicate| mentions(predicate, column)) else {
                continue;
            };
            let kept = settled(self, predicate);
            if let RelationDetail::Index(index) = &mut self.catalog.relation_mut(oid).detail {
                Arc::make_mut(index).predicate = Some(kept);
            }
        }
    }

    /// Keeps the old type of a literal that is the default or the expression of the column: PostgreSQL casts the value
    /// to the new type, and reads no literal again.
    fn settle_default(&mut self, table: Oid, found: &Column) {
        let settled = |executor: &Self, expression: &Arc<Expr>| {
            let mut settled = Expr::clone(expression);
            executor.with_analyzer(|analyzer| {
                if matches!(settled.kind, ExprKind::Literal(Literal::String(_))) {
                    analyzer.settle_literal(&mut settled, analyzer.base_type(found.sql_type).oid);
                }
            });
            Arc::new(settled)
        };
        let default = found.default.as_ref().map(|default| settled(self, default));
        let generated = found.generated.as_ref().map(|generated| settled(self, &generated.expression));
        if let Some(column) = self.catalog.relation_mut(table).column_mut(&found.name) {
            column.default = default;
            if let (Some(column), Some(expression)) = (&mut column.generated, generated) {
                column.expression = expression;
            }
        }
    }

    /// Rebuilds indexes and constraints of the columns whose type changed.
    pub(super) fn rebuild_after_type_changes(&mut self, altering: &mut Altering) -> Run {
        for changed in std::mem::take(&mut altering.changed) {
            self.check_keys_comparable(&changed)?;
            self.rebuild_indexes(altering, &changed)?;
            let constraints = self.catalog.relation(changed.table).constraints.clone();
            for constraint in &constraints {
                self.rebuild_constraint(altering, &changed, constraint)?;
            }
            for (referencing, constraint) in self.catalog.foreign_keys_to(changed.table) {
                let uses = constraint.foreign_key().is_some_and(|key| key.referenced_columns.contains(&changed.column));
                if uses && referencing != changed.table {
                    self.lock(referencing, LockMode::AccessExclusive, LockCause::ForeignKey, changed.range);
                    self.recheck_foreign_key(altering, &changed, referencing, &constraint);
                }
            }
        }
        Ok(())
    }

    /// Foreign keys of the column, in both directions, must still compare what they compare.
    fn check_keys_comparable(&self, changed: &ChangedColumn) -> Run {
        let own = self.catalog.relation(changed.table).constraints.iter();
        let own = own.map(|constraint| (changed.table, Arc::clone(constraint)));
        for (referencing, constraint) in own.chain(self.catalog.foreign_keys_to(changed.table)) {
            let Some(key) = constraint.foreign_key() else { continue };
            if self.catalog.get_relation(key.referenced).is_none() {
                continue;
            }
            for (column, referenced) in key.columns.iter().zip(&key.referenced_columns) {
                let about = (referencing, column) == (changed.table, &changed.column)
                    || (key.referenced, referenced) == (changed.table, &changed.column);
                if about {
                    self.check_comparable((referencing, column), (key.referenced, referenced), changed.range)?;
                }
            }
        }
        Ok(())
    }

    fn rebuild_indexes(&mut self, altering: &Altering, changed: &ChangedColumn) -> Run {
        for oid in self.catalog.relation(changed.table).indexes.clone() {
            let Some(index) = self.catalog.relation(oid).index().cloned() else { continue };
            if !index_uses(&index, &changed.column) {
                continue;
            }
            self.lock(oid, LockMode::AccessExclusive, LockCause::Part, changed.range);
            if index.parent.is_some() {
                self.name_again(changed.table, oid, changed.range);
            }
            // The definition is read again, so that functions and casts are those for the new type.
            self.check_index(changed.table, &self.definition_of(oid, changed.range))?;
            let elements = self.stored_keys(changed.table, &index.elements);
            if let RelationDetail::Index(index) = &mut self.catalog.relation_mut(oid).detail {
                Arc::make_mut(index).elements = elements;
            }
            let rewritten = altering.work.is_rewritten(changed.table);
            if !rewritten && !self.index_is_compatible(&index, changed) && self.is_plain_table(changed.table) {
                let cause = IndexBuildCause::TypeChange { column: changed.column.clone() };
                self.build_index(oid, cause, false, changed.range);
                self.scan(changed.table, ScanCause::IndexBuild, changed.range);
            }
        }
        Ok(())
    }

    /// Renames an index of a partition that is rebuilt with that of its parent to the name that PostgreSQL chooses by
    /// itself.
    fn name_again(&mut self, table: Oid, index: Oid, range: TextRange) {
        let schema = self.catalog.relation(index).schema.clone();
        let constraint = self.constraint_of_index(table, index);
        let definition = self.definition_of(index, range);
        // The old one is dropped before.
        let unnamed = SmolStr::new_static("");
        self.catalog.rename_relation(index, schema.clone(), unnamed.clone());
        if let Some(constraint) = &constraint {
            self.catalog.rename_constraint(table, constraint, unnamed.clone());
        }
        let name = self.choose_index_name(table, &definition);
        if constraint.is_some() {
            self.catalog.rename_constraint(table, &unnamed, name.clone());
        }
        self.catalog.rename_relation(index, schema, name);
    }

    fn is_plain_table(&self, table: Oid) -> bool {
        matches!(self.catalog.relation(table).kind, RelationKind::Table | RelationKind::MaterializedView)
    }

    /// Whether the index may keep its storage.
    fn index_is_compatible(&self, index: &Index, changed: &ChangedColumn) -> bool {
        // An index of a partition is rebuilt with that of its parent.
        // A GIN index of an array has its elements as keys, which is never treated as the same type.
        let keys_are_elements = index.method == "gin"
            && self.with_analyzer(|analyzer| analyzer.element_type(analyzer.base_type(changed.new).oid).is_some());
        // What INCLUDE adds is not compared.
        let is_key = index.elements.iter().any(|element| element.key.as_column() == Some(&changed.column));
        let same_key = !keys_are_elements
            && !changed.collation_changed
            && self.same_operator_class(&index.method, changed.old, changed.new);
        index.parent.is_none()
            && index.valid
            && !index.has_expressions()
            && index.predicate.is_none()
            && (same_key || !is_key)
    }

    fn rebuild_constraint(
        &mut self,
        altering: &mut Altering,
        changed: &ChangedColumn,
        constraint: &Arc<Constraint>,
    ) -> Run {
        match &constraint.kind {
            ConstraintKind::Check { columns, expression } if columns.contains(&changed.column) => {
                self.check_columns_exist(changed.table, expression)?;
                if constraint.valid && constraint.enforced {
                    let cause = ScanCause::Recheck { constraint: constraint.name.clone() };
                    altering.work.check(changed.table, cause, changed.range);
                }
            }
            ConstraintKind::ForeignKey(key)
                if key.columns.contains(&changed.column)
                    || (key.referenced == changed.table && key.referenced_columns.contains(&changed.column)) =>
            {
                let partitions = self.descendants_if_partitioned(key.referenced);
                for referenced in std::iter::once(key.referenced).chain(partitions) {
                    let mode = if self.has_foreign_key_triggers(referenced) {
                        LockMode::AccessExclusive
                    } else {
                        LockMode::ShareRowExclusive
                    };
                    self.lock(referenced, mode, LockCause::ForeignKey, changed.range);
                }
                self.recheck_foreign_key(altering, changed, changed.table, constraint);
            }
            _ => {}
        }
        Ok(())
    }

    /// A foreign key is checked again unless the comparison is the same as before.
    fn recheck_foreign_key(
        &self,
        altering: &mut Altering,
        changed: &ChangedColumn,
        referencing: Oid,
        constraint: &Constraint,
    ) {
        let same =
            !altering.work.is_rewritten(changed.table) && self.same_operator_class("btree", changed.old, changed.new);
        if constraint.valid && constraint.enforced && !same {
            let cause = ScanCause::ForeignKey { constraint: Some(constraint.name.clone()) };
            altering.work.check_foreign_key(referencing, cause, changed.range);
        }
    }
}

/// What USING says of the old values.
pub(crate) fn use_of(using: Option<&Expr>, column: &str) -> Using {
    let Some(mut value) = using else { return Using::Absent };
    while let ExprKind::Cast { operand, .. } = &value.kind {
        value = operand;
    }
    if value.as_column().is_some_and(|name| name == column) { Using::Cast } else { Using::Computed }
}

fn fail_type_change(sqlstate: &'static str, column: &str, range: TextRange) -> Run {
    let reason = match sqlstate {
        "0A000" => "cannot use subquery in transform expression".to_owned(),
        "42846" => format!("column \"{column}\" cannot be cast to the new type"),
        _ => format!("column \"{column}\" cannot be cast automatically to the new type"),
    };
    fail(sqlstate, reason, range)
}

/// The sequence of an identity column takes its type before anything else is done.
pub(super) fn check_identity_type(sql_type: SqlType, range: TextRange) -> Run {
    if sql_type.oid.is_builtin() && !matches!(sql_type.oid.0, oid::INT2 | oid::INT4 | oid::INT8) {
        return fail("22023", "identity column type must be smallint, integer, or bigint", range);
    }
    Ok(())
}

/// Whether the index uses the column in a key, an expression, its predicate or INCLUDE.
pub(crate) fn index_uses(index: &Index, column: &SmolStr) -> bool {
    index.elements.iter().any(|element| mentions(&element.key, column))
        || index.including.contains(column)
        || index.predicate.as_ref().is_some_and(|predicate| mentions(predicate, column))
}
