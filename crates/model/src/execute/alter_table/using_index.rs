//! UNIQUE and PRIMARY KEY that adopt an index.

use super::Altering;
use crate::catalog::{self, Oid, RelationKind};
use crate::effect::LockCause;
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{Constraint, ConstraintKind, IndexConstraint, LockMode, Name};
use pgvet_syntax::source::TextRange;
use std::sync::Arc;

impl Executor<'_> {
    /// UNIQUE and PRIMARY KEY that adopt an index.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_utilcmd.c`, `transformIndexConstraint`;
    /// `src/backend/commands/tablecmds.c`, `ATExecAddIndexConstraint`.
    pub(super) fn add_constraint_using_index(
        &mut self,
        altering: &mut Altering,
        constraint: &Constraint,
        key: &IndexConstraint,
        range: TextRange,
    ) -> Run {
        let Some(written) = &key.using_index else { return Ok(()) };
        let table = self.catalog.relation(altering.table);
        let partitioned = table.kind == RelationKind::PartitionedTable;
        let schema = table.schema.clone();
        let Some(oid) = self.catalog.relation_named(&schema, &written.text) else {
            if table.known {
                return fail("42704", format!("index \"{}\" does not exist", written.text), written.range);
            }
            self.unknown(format!("index \"{}\" was used before any statement created it", written.text));
            return Ok(());
        };
        let Some(index) = self.catalog.relation(oid).index().cloned() else {
            if !self.catalog.relation(oid).known {
                self.unknown(format!("the statement that creates the index \"{}\" was refused", written.text));
                return Ok(());
            }
            return fail("42809", format!("\"{}\" is not an index", written.text), written.range);
        };
        self.check_usable_for_constraint(altering.table, oid, &index, written, constraint)?;
        if partitioned {
            let reason = "ALTER TABLE / ADD CONSTRAINT USING INDEX is not supported on partitioned tables";
            return fail("0A000", reason, written.range);
        }
        let columns = index.plain_columns().unwrap_or_default();
        let primary = matches!(constraint.kind, ConstraintKind::PrimaryKey(_));
        if primary {
            let named: Vec<Name> = columns.iter().map(|column| Name::new(column.clone(), written.range)).collect();
            self.prepare_primary_key(altering, &named, range)?;
        }
        let renamed = constraint.name.as_ref().filter(|name| name.text != written.text);
        let lock = if renamed.is_some() { LockMode::ShareUpdateExclusive } else { LockMode::AccessShare };
        self.lock(oid, lock, LockCause::Part, range);
        if let Some(name) = renamed {
            if let Some(taken) = self.catalog.relation_named(&schema, &name.text) {
                let reason = format!("relation \"{}\" already exists", name.text);
                return self.refuse_taken_name(taken, reason, name.range);
            }
            self.catalog.rename_relation(oid, schema, name.text.clone());
        }
        let mut adopted = (*index).clone();
        adopted.primary = primary;
        self.catalog.relation_mut(oid).detail = catalog::RelationDetail::Index(Arc::new(adopted));
        let kind = if primary {
            catalog::ConstraintKind::PrimaryKey { columns, index: oid }
        } else {
            catalog::ConstraintKind::Unique { columns, index: oid }
        };
        self.add_index_constraint(altering.table, oid, constraint, kind);
        Ok(())
    }

    fn check_usable_for_constraint(
        &self,
        table: Oid,
        oid: Oid,
        index: &catalog::Index,
        written: &Name,
        constraint: &Constraint,
    ) -> Run {
        let quoted = &written.text;
        let taken = self.catalog.relation(table).constraints.iter().any(|other| other.index() == Some(oid));
        let is_other_class = |element: &pgvet_syntax::ast::IndexElement| {
            let column = element.key.as_column().and_then(|name| self.catalog.relation(table).column(name));
            let usual = column.and_then(|column| {
                self.with_analyzer(|analyzer| analyzer.default_operator_class(&index.method, column.sql_type))
            });
            element.operator_class.as_ref().is_some_and(|class| usual.is_none_or(|usual| usual.name != class))
        };
        let sorts_otherwise = |element: &pgvet_syntax::ast::IndexElement| {
            element.descending || element.nulls_first == Some(true) || is_other_class(element)
        };
        let (sqlstate, reason) = if taken {
            ("55000", format!("index \"{quoted}\" is already associated with a constraint"))
        } else if index.table != table {
            ("55000", format!("index \"{quoted}\" does not belong to table"))
        } else if !index.valid {
            ("55000", format!("index \"{quoted}\" is not valid"))
        } else if !index.unique {
            ("42809", format!("\"{quoted}\" is not a unique index"))
        } else if index.has_expressions() {
            ("42809", format!("index \"{quoted}\" contains expressions"))
        } else if index.predicate.is_some() {
            ("42809", format!("\"{quoted}\" is a partial index"))
        } else if index.elements.iter().any(sorts_otherwise) {
            ("42809", format!("index \"{quoted}\" does not have default sorting behavior"))
        } else if index.nulls_not_distinct && matches!(constraint.kind, ConstraintKind::PrimaryKey(_)) {
            ("42P16", "primary keys cannot use NULLS NOT DISTINCT indexes".to_owned())
        } else {
            return Ok(());
        };
        fail(sqlstate, reason, written.range)
    }
}
