//! Columns: ADD, DROP, defaults, NOT NULL, identity and generated columns, storage.

use super::Altering;
use crate::ast::{AlterTableCommand, ColumnDef, Constraint, ConstraintKind, DropBehavior, Expr, Name};
use crate::catalog::{self, Column, Generated, IdentityKind, Oid, SqlType};
use crate::effect::{LockCause, RelationKind, RewriteCause, ScanCause};
use crate::execute::{Executor, Run, fail};
use crate::source::TextRange;
use smol_str::{SmolStr, ToSmolStr};
use std::sync::Arc;

/// The pseudo-types that make a sequence, and the type of the column.
pub(crate) fn serial_type(name: &str) -> Option<&'static str> {
    match name {
        "serial" | "serial4" => Some("int4"),
        "bigserial" | "serial8" => Some("int8"),
        "smallserial" | "serial2" => Some("int2"),
        _ => None,
    }
}

/// What ADD COLUMN has to do to give old rows their value.
enum Fill {
    /// The rows are written anew.
    Rewrite(RewriteCause),
    /// The value is the same for all and goes into the catalog.
    Missing,
    /// Old rows read null.
    Null,
}

impl Executor<'_> {
    pub(super) fn add_column(
        &mut self,
        altering: &mut Altering,
        definition: &ColumnDef,
        if_not_exists: bool,
        command: &AlterTableCommand,
    ) -> Run {
        let table = altering.table;
        let relation = self.catalog.relation(table);
        if relation.column(&definition.name.text).is_some() {
            if if_not_exists {
                return Ok(());
            }
            let reason =
                format!("column \"{}\" of relation \"{}\" already exists", definition.name.text, relation.name);
            return fail("42701", reason, definition.name.range);
        }
        self.check_new_column_reaches_children(altering, definition)?;
        let mut column = self.new_column(table, definition)?;
        let fill = self.fill_of(table, definition, &column);
        column.has_missing_value = matches!(fill, Fill::Missing);
        let not_null_unproven = column.not_null && matches!(fill, Fill::Null);
        for target in self.altered_tables(altering) {
            if !self.merge_column(target, table, &column) {
                continue;
            }
            if let Fill::Rewrite(cause) = &fill {
                altering.work.rewrite(target, cause.clone(), command.keyword);
            } else if not_null_unproven {
                let cause = ScanCause::NotNull { column: column.name.clone() };
                altering.work.check(target, cause, command.keyword);
            }
        }
        let has_default = definition.constraints.iter().any(|one| matches!(one.kind, ConstraintKind::Default(_)));
        for constraint in &definition.constraints {
            self.add_column_constraint(altering, definition, constraint, has_default)?;
        }
        Ok(())
    }

    /// The constraints of a new column that are objects of their own.
    fn add_column_constraint(
        &mut self,
        altering: &mut Altering,
        column: &ColumnDef,
        constraint: &Constraint,
        has_default: bool,
    ) -> Run {
        let names = std::slice::from_ref(&column.name);
        match &constraint.kind {
            ConstraintKind::Check(_)
            | ConstraintKind::Unique(_)
            | ConstraintKind::PrimaryKey(_)
            | ConstraintKind::Exclude(_) => self.add_constraint(altering, constraint, names, constraint.keyword),
            // All values are null, which satisfies every foreign key, unless there is a default.
            ConstraintKind::ForeignKey(_) => self.add_foreign_key(altering.table, constraint, names, has_default),
            ConstraintKind::NotNull { .. } => {
                for target in self.altered_tables(altering) {
                    self.add_not_null_constraint(target, &column.name.text, constraint.name.as_ref());
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_new_column_reaches_children(&self, altering: &Altering, definition: &ColumnDef) -> Run {
        let relation = self.catalog.relation(altering.table);
        if relation.children.is_empty() {
            return Ok(());
        }
        if !altering.recurse {
            return fail("42P16", "column must be added to child tables too", definition.name.range);
        }
        let identity = definition.constraints.iter().any(|one| matches!(one.kind, ConstraintKind::Identity { .. }));
        let allowed = relation.kind == RelationKind::PartitionedTable && self.target.at_least(17);
        if identity && !allowed {
            let reason = "cannot recursively add identity column to table that has child tables";
            return fail("42P16", reason, definition.name.range);
        }
        Ok(())
    }

    /// A column of the catalog from its definition; makes the sequence of a serial or identity column.
    pub(crate) fn new_column(&mut self, table: Oid, definition: &ColumnDef) -> Run<Column> {
        let mut column = Column {
            name: definition.name.text.clone(),
            sql_type: SqlType::UNKNOWN,
            not_null: false,
            default: None,
            identity: None,
            generated: None,
            collation: definition.collation.as_ref().map(|name| name.name.text.clone()),
            storage: definition.storage.clone(),
            compression: definition.compression.clone(),
            is_local: true,
            inherited_from: 0,
            has_missing_value: false,
        };
        let mut sequence = false;
        if let Some(type_name) = &definition.type_name {
            let serial = serial_type(&type_name.name).filter(|_| type_name.schema.is_none());
            let mut resolved = type_name.clone();
            if let Some(integer) = serial {
                resolved.name = SmolStr::new_static(integer);
                sequence = true;
            }
            column.sql_type = self.resolve_type(&resolved);
        }
        column.not_null = sequence;
        for constraint in &definition.constraints {
            match &constraint.kind {
                ConstraintKind::NotNull { .. } | ConstraintKind::PrimaryKey(_) => column.not_null = true,
                ConstraintKind::Default(default) => column.default = Some(Arc::new(default.clone())),
                ConstraintKind::Identity { always, .. } => {
                    column.not_null = true;
                    column.identity = Some(if *always { IdentityKind::Always } else { IdentityKind::ByDefault });
                    sequence = true;
                }
                ConstraintKind::Generated { expression, stored, explicit_kind } => {
                    if !(self.target.at_least(18) || *stored && *explicit_kind) {
                        return fail("42601", "syntax error: generated columns must be STORED", constraint.keyword);
                    }
                    column.generated = Some(Generated { expression: Arc::new(expression.clone()), stored: *stored });
                }
                _ => {}
            }
        }
        if sequence {
            self.create_owned_sequence(table, &column);
        }
        Ok(column)
    }

    /// The sequence of a serial or identity column, with the name that PostgreSQL gives it.
    pub(crate) fn create_owned_sequence(&mut self, table: Oid, column: &Column) -> Oid {
        let owner = self.catalog.relation(table);
        let (schema, persistence) = (owner.schema.clone(), owner.persistence);
        let name = self.catalog.choose_relation_name(&owner.name, Some(&column.name), "seq", &schema, false);
        let oid = self.catalog.new_oid();
        let mut sequence = catalog::Relation::new(oid, schema, name, RelationKind::Sequence, self.birth(false));
        sequence.persistence = persistence;
        sequence.detail = catalog::RelationDetail::Sequence(catalog::Sequence {
            owned_by: Some((table, column.name.clone())),
            identity: column.identity.is_some(),
            sql_type: column.sql_type,
        });
        self.catalog.add_relation(sequence);
        self.catalog.relation_mut(table).owned_sequences.push(oid);
        self.created(oid);
        oid
    }

    /// How old rows get the value of a new column.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATExecAddColumn`;
    /// `src/backend/catalog/heap.c`, `AddRelationNewConstraints`.
    fn fill_of(&mut self, table: Oid, definition: &ColumnDef, column: &Column) -> Fill {
        let name = column.name.clone();
        if let Some(generated) = &column.generated {
            return if generated.stored {
                Fill::Rewrite(RewriteCause::StoredGenerated { column: name })
            } else {
                Fill::Null
            };
        }
        if column.identity.is_some() {
            return Fill::Rewrite(RewriteCause::Identity { column: name });
        }
        if definition.type_name.as_ref().is_some_and(|written| serial_type(&written.name).is_some()) {
            return Fill::Rewrite(RewriteCause::Serial { column: name });
        }
        if let Some(domain) = self.constrained_domain(column.sql_type) {
            return Fill::Rewrite(RewriteCause::ConstrainedDomain { column: name, domain });
        }
        match &column.default {
            None => Fill::Null,
            Some(default) if is_null_literal(default) => Fill::Null,
            Some(default) => match self.volatility_of_default(default, table, column.sql_type) {
                Some(function) => Fill::Rewrite(RewriteCause::VolatileDefault {
                    column: name,
                    function: Some(function).filter(|name| !name.is_empty()),
                }),
                None => Fill::Missing,
            },
        }
    }

    /// Adds the column to a table; false where a child already has it and keeps its own.
    fn merge_column(&mut self, target: Oid, parent: Oid, column: &Column) -> bool {
        let is_parent = target == parent;
        let relation = self.catalog.relation_mut(target);
        if let Some(existing) = relation.column_mut(&column.name) {
            existing.inherited_from += 1;
            return false;
        }
        let mut column = column.clone();
        if !is_parent {
            column.is_local = false;
            column.inherited_from = 1;
        }
        relation.columns.push(column);
        true
    }

    pub(super) fn drop_column(
        &mut self,
        altering: &mut Altering,
        column: &Name,
        if_exists: bool,
        behavior: DropBehavior,
        command: &AlterTableCommand,
    ) -> Run {
        let relation = self.catalog.relation(altering.table);
        match relation.column(&column.text) {
            None if if_exists => return Ok(()),
            None => self.require_column(altering.table, column)?,
            Some(found) if found.inherited_from > 0 => {
                return fail("42P16", format!("cannot drop inherited column \"{}\"", column.text), column.range);
            }
            Some(_) if !altering.recurse && self.is_partitioned(altering.table) && !relation.children.is_empty() => {
                let reason = "cannot drop column from only the partitioned table when partitions exist";
                return fail("42P16", reason, column.range);
            }
            Some(_) => {}
        }
        for target in self.altered_tables(altering) {
            let keeps = |found: &Column| target != altering.table && (found.is_local || found.inherited_from > 1);
            if self.catalog.relation(target).column(&column.text).is_some_and(keeps) {
                if let Some(found) = self.catalog.relation_mut(target).column_mut(&column.text) {
                    found.inherited_from = found.inherited_from.saturating_sub(1);
                }
                continue;
            }
            self.drop_column_dependents(target, &column.text, behavior, command.range)?;
            self.catalog.relation_mut(target).columns.retain(|found| found.name != column.text);
        }
        if !altering.recurse {
            self.lock_children_left_out(altering, command.keyword);
        }
        Ok(())
    }

    /// Without recursion the children become the owners of what goes: direct ones are locked and changed.
    pub(super) fn lock_children_left_out(&mut self, altering: &Altering, range: TextRange) {
        for child in self.catalog.relation(altering.table).children.clone() {
            self.lock(child, altering.lock, LockCause::Child, range);
        }
    }

    pub(super) fn set_default(&mut self, altering: &Altering, column: &Name, default: Option<&Expr>) -> Run {
        self.require_column(altering.table, column)?;
        let default = default.map(|default| Arc::new(default.clone()));
        for target in self.altered_tables(altering) {
            if let Some(found) = self.catalog.relation_mut(target).column_mut(&column.text) {
                if found.identity.is_some() || found.generated.is_some() {
                    let reason = format!("column \"{}\" is an identity or generated column", column.text);
                    return fail("42601", reason, column.range);
                }
                found.default.clone_from(&default);
            }
        }
        Ok(())
    }

    pub(super) fn set_not_null(&mut self, altering: &mut Altering, column: &Name, range: TextRange) -> Run {
        self.require_column(altering.table, column)?;
        for target in self.altered_tables(altering) {
            self.make_not_null(altering, target, &column.text, None, true, range);
        }
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
        if self.catalog.relation(table).column(column).is_some_and(|found| found.not_null) {
            return;
        }
        let proven = self.target.at_least(12) && self.constraints_imply_not_null(table, column);
        if check && !proven {
            altering.work.check(table, ScanCause::NotNull { column: column.clone() }, range);
        }
        if let Some(found) = self.catalog.relation_mut(table).column_mut(column) {
            found.not_null = true;
        }
        self.add_not_null_constraint(table, column, name);
    }

    /// The constraint behind NOT NULL, which has a name from 18 on.
    pub(crate) fn add_not_null_constraint(&mut self, table: Oid, column: &SmolStr, name: Option<&Name>) {
        let relation = self.catalog.relation(table);
        let exists = relation.constraints.iter().any(
            |constraint| matches!(&constraint.kind, catalog::ConstraintKind::NotNull { column: other } if other == column),
        );
        if exists {
            return;
        }
        let chosen =
            || self.catalog.choose_constraint_name(&relation.name, Some(column), "not_null", &relation.schema, &[]);
        let name = name.map_or_else(chosen, |name| name.text.clone());
        self.catalog.add_constraint(
            table,
            catalog::Constraint {
                name,
                kind: catalog::ConstraintKind::NotNull { column: column.clone() },
                valid: true,
                enforced: true,
                deferrable: false,
                initially_deferred: false,
                no_inherit: false,
                is_local: true,
                inherited_from: 0,
            },
        );
    }

    pub(super) fn drop_not_null(&mut self, altering: &Altering, column: &Name) -> Run {
        self.require_column(altering.table, column)?;
        let relation = self.catalog.relation(altering.table);
        let in_key = relation.primary_key().is_some_and(|key| key.columns().contains(&column.text));
        if in_key {
            return fail("42P16", format!("column \"{}\" is in a primary key", column.text), column.range);
        }
        if relation.column(&column.text).is_some_and(|found| found.identity.is_some()) {
            return fail("42601", format!("column \"{}\" is an identity column", column.text), column.range);
        }
        for target in self.altered_tables(altering) {
            self.forget_not_null(target, &column.text);
        }
        Ok(())
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

    pub(super) fn set_expression(
        &mut self,
        altering: &mut Altering,
        column: &Name,
        expression: &Expr,
        range: TextRange,
    ) -> Run {
        if !self.target.at_least(17) {
            return fail("42601", "syntax error at or near \"EXPRESSION\"", range);
        }
        self.require_column(altering.table, column)?;
        for target in self.altered_tables(altering) {
            let relation = self.catalog.relation_mut(target);
            let Some(found) = relation.column_mut(&column.text) else { continue };
            let Some(generated) = &mut found.generated else {
                return fail("55000", format!("column \"{}\" is not a generated column", column.text), column.range);
            };
            generated.expression = Arc::new(expression.clone());
            if generated.stored {
                let cause = RewriteCause::SetExpression { column: column.text.clone() };
                altering.work.rewrite(target, cause, range);
            }
        }
        Ok(())
    }

    pub(super) fn drop_expression(&mut self, altering: &Altering, column: &Name, if_exists: bool) -> Run {
        self.require_column(altering.table, column)?;
        for target in self.altered_tables(altering) {
            let Some(found) = self.catalog.relation_mut(target).column_mut(&column.text) else { continue };
            match found.generated.take() {
                None if !if_exists => {
                    return fail(
                        "55000",
                        format!("column \"{}\" is not a generated column", column.text),
                        column.range,
                    );
                }
                Some(generated) if !generated.stored => {
                    let reason = format!("column \"{}\" is a virtual generated column", column.text);
                    return fail("0A000", reason, column.range);
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn set_storage(&mut self, altering: &Altering, column: &Name, storage: &SmolStr) -> Run {
        self.require_column(altering.table, column)?;
        for target in self.altered_tables(altering) {
            self.lock_indexes(target, crate::effect::LockMode::AccessExclusive, column.range);
            if let Some(found) = self.catalog.relation_mut(target).column_mut(&column.text) {
                found.storage = Some(storage.to_ascii_lowercase().to_smolstr());
            }
        }
        Ok(())
    }

    pub(super) fn set_compression(
        &mut self,
        altering: &Altering,
        column: &Name,
        method: &SmolStr,
        range: TextRange,
    ) -> Run {
        if !self.target.at_least(14) {
            return fail("42601", "syntax error at or near \"COMPRESSION\"", range);
        }
        self.require_column(altering.table, column)?;
        self.lock_indexes(altering.table, crate::effect::LockMode::AccessExclusive, column.range);
        if let Some(found) = self.catalog.relation_mut(altering.table).column_mut(&column.text) {
            found.compression = Some(method.clone());
        }
        Ok(())
    }

    pub(super) fn add_identity(&mut self, altering: &Altering, column: &Name, always: bool) -> Run {
        self.require_column(altering.table, column)?;
        let Some(found) = self.catalog.relation(altering.table).column(&column.text).cloned() else { return Ok(()) };
        let refusal = if !found.not_null {
            "must be declared NOT NULL before identity can be added"
        } else if found.identity.is_some() {
            "is already an identity column"
        } else if found.default.is_some() {
            "already has a default value"
        } else {
            ""
        };
        if !refusal.is_empty() {
            return fail("55000", format!("column \"{}\" {refusal}", column.text), column.range);
        }
        let identity = Some(if always { IdentityKind::Always } else { IdentityKind::ByDefault });
        self.create_owned_sequence(altering.table, &Column { identity, ..found });
        for target in self.altered_tables(altering) {
            if let Some(found) = self.catalog.relation_mut(target).column_mut(&column.text) {
                found.identity = identity;
            }
        }
        Ok(())
    }

    pub(super) fn set_identity(&mut self, altering: &Altering, column: &Name, range: TextRange) -> Run {
        self.require_column(altering.table, column)?;
        let relation = self.catalog.relation(altering.table);
        if relation.column(&column.text).is_some_and(|found| found.identity.is_none()) {
            return fail("55000", format!("column \"{}\" is not an identity column", column.text), column.range);
        }
        if let Some(sequence) = self.owned_sequence(altering.table, &column.text) {
            use crate::effect::{LockCause, LockMode};
            self.lock(sequence, LockMode::ShareRowExclusive, LockCause::Part, range);
        }
        Ok(())
    }

    pub(super) fn drop_identity(
        &mut self,
        altering: &Altering,
        column: &Name,
        if_exists: bool,
        range: TextRange,
    ) -> Run {
        use crate::effect::LockCause;
        self.require_column(altering.table, column)?;
        let relation = self.catalog.relation(altering.table);
        let Some(found) = relation.column(&column.text) else { return Ok(()) };
        if found.identity.is_none() {
            if if_exists {
                return Ok(());
            }
            return fail("55000", format!("column \"{}\" is not an identity column", column.text), column.range);
        }
        for target in self.altered_tables(altering) {
            if let Some(found) = self.catalog.relation_mut(target).column_mut(&column.text) {
                found.identity = None;
            }
        }
        if let Some(sequence) = self.owned_sequence(altering.table, &column.text) {
            self.drop_relation(sequence, DropBehavior::Restrict, LockCause::Part, range)?;
        }
        Ok(())
    }

    /// The sequence that a serial or identity column owns.
    pub(crate) fn owned_sequence(&self, table: Oid, column: &str) -> Option<Oid> {
        let sequences = &self.catalog.relation(table).owned_sequences;
        sequences.iter().copied().find(|oid| {
            let owner = self.catalog.get_relation(*oid).and_then(|relation| relation.sequence()?.owned_by.as_ref());
            owner.is_some_and(|(_, owned)| owned == column)
        })
    }
}

/// `NULL`, also with a cast.
fn is_null_literal(expr: &Expr) -> bool {
    match &expr.kind {
        crate::ast::ExprKind::Literal(crate::ast::Literal::Null) => true,
        crate::ast::ExprKind::Cast { operand, .. } => is_null_literal(operand),
        _ => false,
    }
}
