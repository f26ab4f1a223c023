//! The columns of CREATE TABLE.

use super::{Executor, NewSequence, NewTable, Run, fail};
use crate::catalog::{Counting, Generated, IdentityKind, Oid, SqlType};
use crate::execute::column_rules::{bare_column, check_column_count};
use crate::execute::expressions::collation_asked;
use crate::execute::sequence::{counting, nextval};
use pgvet_syntax::ast::{ColumnDef, ConstraintKind, TypeName};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

/// The integer type under serial, bigserial and smallserial.
///
/// Source: PostgreSQL 18, `src/backend/parser/parse_utilcmd.c`, `transformColumnDefinition`.
fn serial_type(name: &TypeName) -> Option<SqlType> {
    if name.schema.is_some() || name.percent_type.is_some() {
        return None;
    }
    let oid = match name.name.as_str() {
        "smallserial" | "serial2" => 21,
        "serial" | "serial4" => 23,
        "bigserial" | "serial8" => 20,
        _ => return None,
    };
    Some(SqlType::new(Oid(oid)))
}

impl Executor<'_> {
    /// Adds a column as written, with its sequence; its other constraints are left for later.
    pub(super) fn collect_column(&mut self, table: &mut NewTable, definition: &ColumnDef) -> Run {
        let name = definition.name.text.clone();
        let serial = definition.type_name.as_ref().and_then(serial_type);
        self.check_column_definition(definition, serial.is_some())?;
        let sql_type = match (&definition.type_name, serial) {
            (_, Some(integer)) => Some(integer),
            (Some(type_name), None) => Some(self.require_type(type_name)?),
            (None, None) => None,
        };
        if let (Some(sql_type), Some(collation)) = (sql_type, &definition.collation) {
            self.check_collation(sql_type, collation.range())?;
        }
        Self::collect_own_column(table, definition, sql_type)?;
        self.check_merged_generation(table, definition)?;
        if let Some(integer) = serial {
            let sequence = self.new_sequence(table, &name, None, integer);
            let default = nextval(&table.schema, &sequence, definition.name.range);
            if let Some(column) = table.column(&name) {
                column.default = Some(Arc::new(default));
                column.not_null = true;
            }
        }
        for constraint in &definition.constraints {
            self.collect_column_constraint(table, &name, &constraint.kind, constraint.range)?;
            let kept = !matches!(
                constraint.kind,
                ConstraintKind::Null
                    | ConstraintKind::Default(_)
                    | ConstraintKind::Identity { .. }
                    | ConstraintKind::Generated { .. }
            );
            if kept {
                table.own.push((Some(definition.name.clone()), constraint.clone()));
            }
        }
        Ok(())
    }

    /// Applies the part of a column's constraint that concerns the column itself.
    fn collect_column_constraint(
        &mut self,
        table: &mut NewTable,
        name: &SmolStr,
        constraint: &ConstraintKind,
        range: TextRange,
    ) -> Run {
        if let ConstraintKind::Identity { always, options } = constraint {
            let sql_type = table.column(name).map_or(SqlType::UNKNOWN, |column| column.sql_type);
            if sql_type.oid.is_builtin() && !matches!(sql_type.oid.0, 20 | 21 | 23) {
                return fail("22023", "identity column type must be smallint, integer, or bigint", range);
            }
            self.new_sequence(table, name, Some(counting(options)), sql_type);
            if let Some(column) = table.column(name) {
                column.identity = Some(if *always { IdentityKind::Always } else { IdentityKind::ByDefault });
                column.not_null = true;
            }
            return Ok(());
        }
        let Some(column) = table.column(name) else { return Ok(()) };
        match constraint {
            ConstraintKind::NotNull { .. } | ConstraintKind::PrimaryKey(_) => column.not_null = true,
            ConstraintKind::Default(default) => column.default = self.stored_default(default, column.sql_type)?,
            ConstraintKind::Generated { expression, stored, .. } => {
                column.generated = Some(Generated { expression: Arc::new(expression.clone()), stored: *stored });
            }
            _ => {}
        }
        Ok(())
    }

    /// A column that its parents generate is generated as well, and no other is generated in the child alone.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `MergeChildAttribute`; 15, `MergeAttributes`.
    fn check_merged_generation(&self, table: &mut NewTable, definition: &ColumnDef) -> Run {
        let name = &definition.name;
        let inherited = table.column(&name.text).filter(|column| column.inherited_from > 0);
        let Some(computed) = inherited.map(|column| column.generated.is_some()) else { return Ok(()) };
        let has = |wanted: fn(&ConstraintKind) -> bool| definition.constraints.iter().any(|one| wanted(&one.kind));
        let generated = has(|kind| matches!(kind, ConstraintKind::Generated { .. }));
        let wrong = if !computed {
            (generated && self.target.at_least(16)).then_some("is generated, but not in its parent")
        } else if generated && !self.target.at_least(16) {
            Some("inherits the expression that generates it")
        } else if has(|kind| matches!(kind, ConstraintKind::Default(_) | ConstraintKind::Identity { .. })) {
            Some("inherits from a generated column")
        } else {
            None
        };
        match wrong {
            Some(wrong) => fail("42611", format!("column \"{}\" {wrong}", name.text), name.range),
            None => Ok(()),
        }
    }

    /// Adds the column, or merges it with the parent's of that name.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `MergeAttributes`.
    fn collect_own_column(table: &mut NewTable, definition: &ColumnDef, sql_type: Option<SqlType>) -> Run {
        let name = &definition.name;
        let known = table.known;
        if let Some(column) = table.column(&name.text) {
            let inherited = column.inherited_from > 0 && !column.is_local;
            if !inherited && sql_type.is_some() {
                return fail("42701", format!("column \"{}\" specified more than once", name.text), name.range);
            }
            let types_differ =
                sql_type.is_some_and(|ours| ours.is_known() && column.sql_type.is_known() && ours != column.sql_type);
            if types_differ {
                return fail("42804", format!("column \"{}\" has a type conflict", name.text), name.range);
            }
            let collation = collation_asked(definition.collation.as_ref());
            if inherited && sql_type.is_some() && collation != column.collation {
                return fail("42P21", format!("column \"{}\" has a collation conflict", name.text), name.range);
            }
            // A column of PARTITION OF or OF type only adds constraints, and may be given once.
            column.is_local |= sql_type.is_some();
            return Ok(());
        }
        if sql_type.is_none() && known {
            return fail("42703", format!("column \"{}\" does not exist", name.text), name.range);
        }
        check_column_count(table.columns.len(), name)?;
        table.columns.push(bare_column(definition, sql_type.unwrap_or(SqlType::UNKNOWN)));
        Ok(())
    }

    /// Notes the sequence of a serial column, or of an identity column with its options, and returns its name.
    pub(super) fn new_sequence(
        &self,
        table: &mut NewTable,
        column: &SmolStr,
        of_identity: Option<Counting>,
        sql_type: SqlType,
    ) -> SmolStr {
        let name = self.catalog.choose_relation_name(&table.name, Some(column), "seq", &table.schema, false);
        let (identity, counting) = (of_identity.is_some(), of_identity.unwrap_or_default());
        table.sequences.push(NewSequence { name: name.clone(), column: column.clone(), identity, sql_type, counting });
        name
    }
}
