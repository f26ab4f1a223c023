//! Columns: ADD, DROP, defaults, NOT NULL, identity and generated columns, storage.

use super::Altering;
use super::column_type::check_identity_type;
use crate::builtin;
use crate::catalog::{self, Column, Generated, Held, HeldByAll, IdentityKind, Oid, RelationKind, SqlType};
use crate::effect::{RewriteCause, ScanCause};
use crate::execute::column_rules::{bare_column, check_column_count};
use crate::execute::expressions::{is_null_literal, mentions};
use crate::execute::sequence::{change_counting, counting, nextval};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{
    AlterTableCommand, ColumnDef, Constraint, ConstraintKind, DefElem, DefValue, DropBehavior, Expr, Literal, Name,
};
use pgvet_syntax::source::TextRange;
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

/// The work of ADD COLUMN to give old rows their value.
enum Fill {
    /// The rows are rewritten.
    Rewrite(RewriteCause),
    /// The value is the same for all and goes into the catalog.
    Missing,
    /// Old rows read null.
    Null,
}

/// Returns the value that all old rows have in an added column.
fn held_value(fill: &Fill, column: &Column) -> Option<Held> {
    match fill {
        Fill::Null => Some(Held::Null),
        Fill::Missing | Fill::Rewrite(RewriteCause::DefaultBefore11 { .. }) => column.default.clone().map(Held::Value),
        Fill::Rewrite(_) => None,
    }
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
        if relation.is_partition() {
            return fail("42809", "cannot add column to a partition", definition.name.range);
        }
        if relation.column(&definition.name.text).is_some() {
            if if_not_exists {
                return Ok(());
            }
            let reason =
                format!("column \"{}\" of relation \"{}\" already exists", definition.name.text, relation.name);
            return fail("42701", reason, definition.name.range);
        }
        check_column_count(relation.columns.len(), &definition.name)?;
        // A column that no statement shows makes the command do nothing.
        let is_certain = !if_not_exists || relation.known && !self.catalog.is_doubtful(table);
        let serial = definition.type_name.as_ref().is_some_and(|written| serial_type(&written.name).is_some());
        self.check_column_definition(definition, serial)?;
        self.check_new_column_reaches_children(altering, definition)?;
        let mut column = self.new_column(table, definition)?;
        let fill = self.fill_of(table, definition, &column);
        column.has_missing_value = matches!(fill, Fill::Missing);
        column.added_in = self.deployment;
        let held = held_value(&fill, &column).filter(|_| is_certain);
        column.held = held.map(|value| HeldByAll { value, since: self.deployment });
        for target in self.altered_tables(altering) {
            self.check_mergeable(target, &column, definition)?;
            if !self.merge_column(target, table, &column) {
                continue;
            }
            match &fill {
                Fill::Rewrite(cause) => altering.work.rewrite(target, cause.clone(), command.keyword),
                Fill::Missing => altering.work.gives_values(target, command.keyword),
                Fill::Null if column.not_null => {
                    let cause = ScanCause::NotNull { column: column.name.clone() };
                    altering.work.check(target, cause, command.keyword);
                    if is_certain {
                        self.catalog.relation_mut(target).birth.empty_in = self.deployment;
                    }
                }
                Fill::Null => {}
            }
        }
        if column.generated.is_some() {
            self.check_generated(table)?;
        }
        let has_default = definition.constraints.iter().any(|one| matches!(one.kind, ConstraintKind::Default(_)));
        for constraint in &definition.constraints {
            self.add_column_constraint(altering, definition, constraint, has_default)?;
        }
        if column.not_null {
            self.name_not_null(altering, &column.name, None);
        }
        Ok(())
    }

    fn check_mergeable(&self, target: Oid, column: &Column, definition: &ColumnDef) -> Run {
        let relation = self.catalog.relation(target);
        match relation.column(&column.name) {
            Some(existing)
                if existing.sql_type != column.sql_type
                    && existing.sql_type.is_known()
                    && column.sql_type.is_known() =>
            {
                let reason =
                    format!("child table \"{}\" has different type for column \"{}\"", relation.name, column.name);
                fail("42804", reason, definition.name.range)
            }
            _ => Ok(()),
        }
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
                self.name_not_null(altering, &column.name.text, constraint.name.as_ref().map(|name| name.text.clone()));
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
        let mut column = bare_column(definition, SqlType::UNKNOWN);
        let (mut sequence, mut options) = (false, &[][..]);
        if let Some(type_name) = &definition.type_name {
            let serial = serial_type(&type_name.name).filter(|_| type_name.schema.is_none());
            let mut resolved = type_name.clone();
            if let Some(integer) = serial {
                resolved.name = SmolStr::new_static(integer);
                sequence = true;
            }
            column.sql_type = self.require_type(&resolved)?;
            if let Some(collation) = &definition.collation {
                self.check_collation(column.sql_type, collation.range())?;
            }
        }
        column.not_null = sequence;
        for constraint in &definition.constraints {
            match &constraint.kind {
                ConstraintKind::NotNull { .. } | ConstraintKind::PrimaryKey(_) => column.not_null = true,
                ConstraintKind::Default(default) => column.default = self.stored_default(default, column.sql_type)?,
                ConstraintKind::Identity { always, options: given } => {
                    options = given;
                    column.not_null = true;
                    column.identity = Some(if *always { IdentityKind::Always } else { IdentityKind::ByDefault });
                    sequence = true;
                }
                ConstraintKind::Generated { expression, stored, .. } => {
                    self.check_generated_syntax(constraint)?;
                    column.generated = Some(Generated { expression: Arc::new(expression.clone()), stored: *stored });
                }
                _ => {}
            }
        }
        if sequence {
            let owned = self.create_owned_sequence(table, &column, options);
            if column.identity.is_none() {
                let owned = self.catalog.relation(owned);
                column.default = Some(Arc::new(nextval(&owned.schema, &owned.name, definition.name.range)));
            }
        }
        Ok(column)
    }

    /// Before 18 a generated column is STORED and says so; before 12 there is none.
    pub(crate) fn check_generated_syntax(&self, constraint: &Constraint) -> Run {
        match &constraint.kind {
            ConstraintKind::Generated { .. } if !self.target.at_least(12) => {
                fail("42601", "syntax error: PostgreSQL before 12 has no generated columns", constraint.keyword)
            }
            ConstraintKind::Generated { stored, explicit_kind, .. }
                if !(self.target.at_least(18) || *stored && *explicit_kind) =>
            {
                fail("42601", "syntax error: generated columns must be STORED", constraint.keyword)
            }
            _ => Ok(()),
        }
    }

    /// The sequence of a serial or identity column, with the name that PostgreSQL gives it.
    pub(crate) fn create_owned_sequence(&mut self, table: Oid, column: &Column, options: &[DefElem]) -> Oid {
        let owner = self.catalog.relation(table);
        let (schema, persistence) = (owner.schema.clone(), self.sequence_persistence(table));
        let name = self.catalog.choose_relation_name(&owner.name, Some(&column.name), "seq", &schema, false);
        let oid = self.catalog.new_oid();
        let mut sequence = catalog::Relation::new(oid, schema, name, RelationKind::Sequence, self.birth(false));
        sequence.persistence = persistence;
        sequence.detail = catalog::RelationDetail::Sequence(catalog::Sequence {
            owned_by: Some((table, column.name.clone())),
            identity: column.identity.is_some(),
            sql_type: column.sql_type,
            counting: counting(options),
        });
        self.catalog.add_relation(sequence);
        self.catalog.relation_mut(table).owned_sequences.push(oid);
        self.created(oid);
        oid
    }

    /// How old rows get the value of a new column.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATExecAddColumn`;
    /// `src/backend/catalog/heap.c`, `AddRelationNewConstraints`. Before 11, `ATExecAddColumn` rewrites the table for
    /// each default: PostgreSQL 11 release notes, section "Utility
    /// Commands".
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
        let default = column.default.clone().or_else(|| self.domain_default(column.sql_type));
        match &default {
            None => Fill::Null,
            Some(default) if is_null_literal(default) => Fill::Null,
            Some(default) => match self.volatility_of_default(default, table, column.sql_type) {
                Some(function) => Fill::Rewrite(RewriteCause::VolatileDefault {
                    column: name,
                    function: Some(function).filter(|name| !name.is_empty()),
                }),
                None if self.target.at_least(11) => Fill::Missing,
                None => Fill::Rewrite(RewriteCause::DefaultBefore11 { column: name }),
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
            None if if_exists && !relation.may_have_column(&column.text) => return Ok(()),
            None => self.require_column(altering.table, column)?,
            Some(found) if found.inherited_from > 0 => {
                return fail("42P16", format!("cannot drop inherited column \"{}\"", column.text), column.range);
            }
            Some(_) => {}
        }
        self.check_not_partition_key(altering, column)?;
        if !altering.recurse && !self.catalog.relation(altering.table).children.is_empty() {
            if self.is_partitioned(altering.table) {
                let reason = "cannot drop column from only the partitioned table when partitions exist";
                return fail("42P16", reason, column.range);
            }
            self.lock_keeping_children(altering, command.keyword);
            for child in self.catalog.relation(altering.table).children.clone() {
                if let Some(kept) = self.catalog.relation_mut(child).column_mut(&column.text) {
                    kept.inherited_from = kept.inherited_from.saturating_sub(1);
                    kept.is_local = true;
                }
            }
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
            self.catalog.remove_column(target, &column.text);
        }
        Ok(())
    }

    fn check_not_partition_key(&self, altering: &Altering, column: &Name) -> Run {
        for target in self.altered_tables(altering) {
            let relation = self.catalog.relation(target);
            let mut keys = relation.partition_by.iter().flat_map(|key| key.keys.iter());
            if keys.any(|key| mentions(key, &column.text)) {
                let reason = format!(
                    "cannot drop column \"{}\" because it is part of the partition key of relation \"{}\"",
                    column.text, relation.name
                );
                return fail("42P16", reason, column.range);
            }
        }
        Ok(())
    }

    pub(super) fn set_default(&mut self, altering: &Altering, column: &Name, default: Option<&Expr>) -> Run {
        self.require_column(altering.table, column)?;
        for target in self.altered_tables(altering) {
            let Some(found) = self.catalog.relation(target).column(&column.text) else { continue };
            if found.identity.is_some() || found.generated.is_some() {
                let reason = format!("column \"{}\" is an identity or generated column", column.text);
                return fail("42601", reason, column.range);
            }
            let sql_type = found.sql_type;
            default.map_or(Ok(()), |default| self.check_default(default))?;
            let stored = default.map(|default| self.stored_default(default, sql_type)).transpose()?.flatten();
            if let Some(found) = self.catalog.relation_mut(target).column_mut(&column.text) {
                found.default = stored;
            }
        }
        Ok(())
    }

    pub(super) fn set_storage(&mut self, altering: &Altering, column: &Name, storage: &SmolStr) -> Run {
        self.require_column(altering.table, column)?;
        self.check_storage(altering.table, column, storage)?;
        for target in self.altered_tables(altering) {
            self.lock_indexes(target, pgvet_syntax::ast::LockMode::AccessExclusive, column.range);
            if let Some(found) = self.catalog.relation_mut(target).column_mut(&column.text) {
                found.storage = Some(storage.to_ascii_lowercase().to_smolstr());
            }
        }
        Ok(())
    }

    /// A type of fixed length is always stored PLAIN.
    fn check_storage(&self, table: Oid, column: &Name, storage: &SmolStr) -> Run {
        let Some(found) = self.catalog.relation(table).column(&column.text) else { return Ok(()) };
        let base = self.with_analyzer(|analyzer| analyzer.base_type(found.sql_type)).oid;
        let is_enum = matches!(self.catalog.get_type(base).map(|own| &own.kind), Some(catalog::TypeKind::Enum { .. }));
        let fixed = is_enum || crate::builtin::type_by_oid(base.0).is_some_and(|builtin| builtin.length > 0);
        let plain = ["plain", "default"].iter().any(|word| storage.eq_ignore_ascii_case(word));
        if !["plain", "external", "extended", "main", "default"].iter().any(|word| storage.eq_ignore_ascii_case(word)) {
            return fail("22023", format!("invalid storage type \"{storage}\""), column.range);
        }
        if storage.eq_ignore_ascii_case("default") && !self.target.at_least(16) {
            return fail("42601", "syntax error at or near \"DEFAULT\"", column.range);
        }
        if fixed && !plain {
            return fail("0A000", "column data type can only have storage PLAIN", column.range);
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
        if !["pglz", "lz4", "default"].contains(&method.as_str()) {
            return fail("22023", format!("invalid compression method \"{method}\""), column.range);
        }
        if let Some(found) = self.catalog.relation(altering.table).column(&column.text) {
            let base = self.with_analyzer(|analyzer| analyzer.base_type(found.sql_type)).oid;
            let is_short = self.is_enum(base) || builtin::type_by_oid(base.0).is_some_and(|builtin| builtin.length > 0);
            if method != "default" && is_short {
                return fail("0A000", "column data type does not support compression", column.range);
            }
        }
        self.lock_indexes(altering.table, pgvet_syntax::ast::LockMode::AccessExclusive, column.range);
        if let Some(found) = self.catalog.relation_mut(altering.table).column_mut(&column.text) {
            found.compression = Some(method.clone());
        }
        Ok(())
    }

    pub(super) fn add_identity(
        &mut self,
        altering: &Altering,
        column: &Name,
        always: bool,
        options: &[DefElem],
    ) -> Run {
        self.require_column(altering.table, column)?;
        let Some(found) = self.catalog.relation(altering.table).column(&column.text).cloned() else { return Ok(()) };
        check_identity_type(found.sql_type, column.range)?;
        let refusal = if !found.not_null || self.has_unproven_not_null(altering.table, &column.text) {
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
        self.create_owned_sequence(altering.table, &Column { identity, ..found }, options);
        for target in self.identity_tables(altering) {
            if let Some(found) = self.catalog.relation_mut(target).column_mut(&column.text) {
                found.identity = identity;
            }
        }
        Ok(())
    }

    pub(super) fn set_identity(
        &mut self,
        altering: &Altering,
        column: &Name,
        options: &[DefElem],
        range: TextRange,
    ) -> Run {
        self.require_column(altering.table, column)?;
        let relation = self.catalog.relation(altering.table);
        if relation.column(&column.text).is_some_and(|found| found.identity.is_none()) {
            return fail("55000", format!("column \"{}\" is not an identity column", column.text), column.range);
        }
        if let Some(sequence) = self.owned_sequence(altering.table, &column.text) {
            use crate::effect::LockCause;
            use pgvet_syntax::ast::LockMode;
            self.lock(sequence, LockMode::ShareRowExclusive, LockCause::Part, range);
            if let catalog::RelationDetail::Sequence(detail) = &mut self.catalog.relation_mut(sequence).detail {
                change_counting(&mut detail.counting, options);
            }
        }
        // The grammar gives SET GENERATED as the letter of `pg_attribute.attidentity`.
        let generated = options.iter().find(|option| option.name == "generated").map(|option| &option.value);
        if let Some(DefValue::Literal(Literal::Integer(letter))) = generated {
            let always = *letter == i64::from(b'a');
            for target in self.identity_tables(altering) {
                if let Some(found) = self.catalog.relation_mut(target).column_mut(&column.text) {
                    found.identity = Some(if always { IdentityKind::Always } else { IdentityKind::ByDefault });
                }
            }
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
        for target in self.identity_tables(altering) {
            if let Some(found) = self.catalog.relation_mut(target).column_mut(&column.text) {
                found.identity = None;
            }
        }
        if let Some(sequence) = self.owned_sequence(altering.table, &column.text) {
            self.drop_relation(sequence, DropBehavior::Restrict, LockCause::Part, range)?;
        }
        Ok(())
    }

    /// Partitions have the identity of their parent since 17; children that inherit never do.
    fn identity_tables(&self, altering: &Altering) -> Vec<Oid> {
        if self.is_partitioned(altering.table) && self.target.at_least(17) {
            self.altered_tables(altering)
        } else {
            vec![altering.table]
        }
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
