//! SET EXPRESSION and DROP EXPRESSION.

use super::Altering;
use crate::catalog::{ConstraintKind, Oid};
use crate::effect::{RewriteCause, ScanCause};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{Expr, Name};
use pgvet_syntax::source::TextRange;
use std::sync::Arc;

impl Executor<'_> {
    pub(super) fn set_expression(
        &mut self,
        altering: &mut Altering,
        column: &Name,
        expression: &Expr,
        range: TextRange,
    ) -> Run {
        self.require_column(altering.table, column)?;
        for target in self.altered_tables(altering) {
            self.check_virtual_can_change(target, column)?;
            let relation = self.catalog.relation_mut(target);
            let Some(found) = relation.column_mut(&column.text) else { continue };
            let Some(generated) = &mut found.generated else {
                return fail("55000", format!("column \"{}\" is not a generated column", column.text), column.range);
            };
            generated.expression = Arc::new(expression.clone());
            if generated.stored {
                let cause = RewriteCause::SetExpression { column: column.text.clone() };
                altering.work.rewrite(target, cause, range);
            } else if found.not_null {
                altering.work.check(target, ScanCause::NotNull { column: column.text.clone() }, range);
            }
            self.check_generated(target)?;
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

    /// A virtual column has no values that could be checked again: no CHECK of the table, and no publication, may be
    /// there.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATExecSetExpression`.
    fn check_virtual_can_change(&self, table: Oid, column: &Name) -> Run {
        let relation = self.catalog.relation(table);
        let generated = relation.column(&column.text).and_then(|found| found.generated.as_ref());
        if generated.is_none_or(|generated| generated.stored) {
            return Ok(());
        }
        let is_check = |kind: &ConstraintKind| matches!(kind, ConstraintKind::Check { .. });
        let what = if relation.constraints.iter().any(|constraint| is_check(&constraint.kind)) {
            "in tables with check constraints"
        } else if self.catalog.publications().any(|one| one.tables.contains_key(&table)) {
            "in tables that are part of a publication"
        } else {
            return Ok(());
        };
        fail("0A000", format!("SET EXPRESSION is not supported for virtual generated columns {what}"), column.range)
    }
}
