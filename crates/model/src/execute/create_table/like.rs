//! LIKE in CREATE TABLE.

use super::{Executor, NewTable, Run, fail};
use crate::catalog::{Column, Constraint, ConstraintKind, Oid, RelationKind, Sequence};
use pgvet_syntax::ast::{LikeOptions, LockMode, ObjectName};
use pgvet_syntax::source::TextRange;

impl Executor<'_> {
    /// Copies the columns of another relation.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_utilcmd.c`, `transformTableLikeClause`.
    pub(super) fn collect_like(&mut self, table: &mut NewTable, source: &ObjectName, options: LikeOptions) -> Run {
        let oid = self.open(source, RelationKind::Table, LockMode::AccessShare)?;
        let relation = self.catalog.relation(oid).clone();
        if relation.kind.is_index() || relation.kind == RelationKind::Sequence {
            return fail("42809", format!("relation \"{source}\" is invalid in LIKE clause"), source.range());
        }
        table.known &= relation.known;
        for column in &relation.columns {
            if let Some(merged) = table.column(&column.name) {
                if merged.inherited_from > 0 && !merged.is_local {
                    merged.is_local = true;
                    merged.not_null |= column.not_null;
                    continue;
                }
                let reason = format!("column \"{}\" specified more than once", column.name);
                return fail("42701", reason, source.range());
            }
            let generated = column.generated.clone().filter(|_| options.generated);
            let identity = column.identity.filter(|_| options.identity);
            table.columns.push(Column {
                default: column.default.clone().filter(|_| options.defaults),
                identity,
                generated,
                storage: column.storage.clone().filter(|_| options.storage),
                compression: column.compression.clone().filter(|_| options.compression),
                is_local: true,
                inherited_from: 0,
                has_missing_value: false,
                added_in: None,
                held: None,
                ..column.clone()
            });
            if identity.is_some() {
                let mut owned =
                    relation.owned_sequences.iter().filter_map(|oid| self.catalog.relation(*oid).sequence());
                let of_column =
                    |sequence: &&Sequence| sequence.owned_by.as_ref().is_some_and(|(_, owner)| *owner == column.name);
                let counting = owned.find(of_column).map(|sequence| sequence.counting.clone()).unwrap_or_default();
                self.new_sequence(table, &column.name, Some(counting), column.sql_type);
            }
        }
        for constraint in &relation.constraints {
            let copied = match constraint.kind {
                // PostgreSQL 18 keeps the names of NOT NULL constraints; before, they had none.
                ConstraintKind::NotNull { .. } => self.target.at_least(18),
                ConstraintKind::Check { .. } => options.constraints,
                _ => false,
            };
            if copied && table.given.iter().all(|given| given.name != constraint.name) {
                let no_inherit = constraint.no_inherit;
                let copy = Constraint::new(constraint.name.clone(), constraint.kind.clone());
                table.given.push(Constraint {
                    no_inherit,
                    enforced: constraint.enforced,
                    valid: constraint.enforced,
                    ..copy
                });
            }
        }
        table.likes.push((oid, options));
        Ok(())
    }

    /// Copies the indexes and statistics of the tables of LIKE, under names of their own.
    ///
    /// Source: PostgreSQL 18, `src/backend/parser/parse_utilcmd.c`, `expandTableLikeClause`.
    pub(super) fn copy_likes(&mut self, table: Oid, new: &NewTable, range: TextRange) -> Run {
        for (source, options) in &new.likes {
            if options.indexes {
                for index in self.catalog.relation(*source).indexes.clone() {
                    self.copy_index(table, index, range)?;
                }
            }
            if options.statistics {
                for copied in self.catalog.statistics_of(*source) {
                    let relation = self.catalog.relation(table);
                    let (schema, name) = (relation.schema.clone(), relation.name.clone());
                    let columns = self.catalog.statistics_columns(&copied).to_vec();
                    let free = self.catalog.choose_statistics_name(&name, &columns, &schema);
                    self.catalog.add_statistics((schema, free), table, columns);
                }
            }
        }
        Ok(())
    }
}
