//! The columns and constraints that a new table gets from its parents.

use super::{Executor, NewTable, Run, fail};
use crate::builtin;
use crate::catalog::{Column, Constraint, ConstraintKind, Oid, Relation};
use pgvet_syntax::ast::{CreateTable, Expr, ExprKind, Literal as LiteralKind};
use pgvet_syntax::source::TextRange;
use smol_str::{SmolStr, StrExt};
use std::sync::Arc;

impl Executor<'_> {
    /// Merges the columns, CHECKs and NOT NULLs of the parents.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `MergeAttributes`.
    pub(super) fn collect_inherited(&self, table: &mut NewTable, parents: &[Oid], statement: &CreateTable) -> Run {
        let partition = statement.partition_of.is_some();
        for parent in parents {
            let parent = self.catalog.relation(*parent);
            table.known &= parent.known;
            for column in &parent.columns {
                let not_null = column.not_null && !self.is_own_not_null(parent, &column.name);
                if let Some(merged) = table.column(&column.name) {
                    let types_differ =
                        merged.sql_type.is_known() && column.sql_type.is_known() && merged.sql_type != column.sql_type;
                    if types_differ {
                        let reason = format!("inherited column \"{}\" has a type conflict", column.name);
                        return fail("42804", reason, statement.name.range());
                    }
                    if merged.generated.is_some() != column.generated.is_some() {
                        let reason = format!("inherited column \"{}\" has a generation conflict", column.name);
                        return fail("42804", reason, statement.name.range());
                    }
                    if merged.collation != column.collation {
                        let reason = format!("inherited column \"{}\" has a collation conflict", column.name);
                        return fail("42P21", reason, statement.name.range());
                    }
                    if merged.sql_type.is_known() && storage_of(merged) != storage_of(column) {
                        let reason = format!("inherited column \"{}\" has a storage parameter conflict", column.name);
                        return fail("42804", reason, statement.name.range());
                    }
                    merged.inherited_from += 1;
                    merged.not_null |= not_null;
                    match (&merged.default, &column.default) {
                        (None, _) => merged.default.clone_from(&column.default),
                        (Some(ours), Some(theirs)) if certainly_differ(ours, theirs) => {
                            let disputed = (column.name.clone(), Arc::clone(ours));
                            table.disputed.push(disputed);
                        }
                        _ => {}
                    }
                    continue;
                }
                // Since 17 partitions share the identity of their parent; before, and in plain children, it stays behind.
                let identity = column.identity.filter(|_| partition && self.target.at_least(17));
                table.columns.push(Column {
                    identity,
                    not_null,
                    is_local: false,
                    inherited_from: 1,
                    has_missing_value: false,
                    added_in: None,
                    held: None,
                    ..column.clone()
                });
            }
            for constraint in parent.constraints.iter().filter(|constraint| is_inherited(constraint)) {
                match table.given.iter_mut().find(|given| constraint.is_counterpart(given)) {
                    Some(given) => given.inherited_from += 1,
                    None => table.given.push(Constraint {
                        is_local: false,
                        inherited_from: 1,
                        valid: constraint.enforced,
                        ..Constraint::clone(constraint)
                    }),
                }
            }
        }
        Ok(())
    }

    /// Whether the column's NOT NULL is one that children do not get. Before 18 they all do.
    fn is_own_not_null(&self, parent: &Relation, column: &SmolStr) -> bool {
        let of_column = |constraint: &Arc<Constraint>| {
            let is_it = matches!(&constraint.kind, ConstraintKind::NotNull { column: own } if own == column);
            is_it.then_some(constraint.no_inherit)
        };
        self.target.at_least(18) && parent.constraints.iter().find_map(of_column) == Some(true)
    }
}

/// A default that parents do not agree about must be overridden.
pub(super) fn check_disputed_defaults(table: &mut NewTable, range: TextRange) -> Run {
    for (name, disputed) in std::mem::take(&mut table.disputed) {
        let default = table.column(&name).and_then(|column| column.default.as_ref());
        if default.is_some_and(|default| Arc::ptr_eq(default, &disputed)) {
            return fail("42611", format!("column \"{name}\" inherits conflicting default values"), range);
        }
    }
    Ok(())
}

/// Whether they differ for PostgreSQL, too, which compares them after their coercion.
fn certainly_differ(ours: &Expr, theirs: &Expr) -> bool {
    use ExprKind::{Call, Literal};
    match (&ours.kind, &theirs.kind) {
        (Literal(LiteralKind::Integer(ours)), Literal(LiteralKind::Integer(theirs))) => ours != theirs,
        (Call(_), Literal(_)) | (Literal(_), Call(_)) => true,
        (Call(_), Call(_)) => !ours.is_same(theirs),
        _ => false,
    }
}

/// `pg_attribute.attstorage` in words. What a type of the project has by itself is assumed to be the same everywhere.
fn storage_of(column: &Column) -> SmolStr {
    let own = column.storage.as_ref().filter(|storage| !storage.eq_ignore_ascii_case("default"));
    if let Some(own) = own {
        return own.to_lowercase_smolstr();
    }
    let usual = match builtin::type_by_oid(column.sql_type.oid.0) {
        Some(known) if known.length > 0 => "plain",
        Some(known) if matches!(known.name, "numeric" | "inet" | "cidr") => "main",
        _ => "extended",
    };
    SmolStr::new_static(usual)
}

/// Keys and foreign keys are not inherited; partitions get theirs with the indexes.
fn is_inherited(constraint: &Constraint) -> bool {
    !constraint.no_inherit && matches!(constraint.kind, ConstraintKind::Check { .. } | ConstraintKind::NotNull { .. })
}
