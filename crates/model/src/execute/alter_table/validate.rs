//! VALIDATE CONSTRAINT.
//!
//! Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATExecValidateConstraint`.

use super::Altering;
use crate::catalog::ConstraintKind;
use crate::effect::{LockCause, ScanCause};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{LockMode, Name};
use pgvet_syntax::source::TextRange;

impl Executor<'_> {
    pub(super) fn validate_constraint(&mut self, altering: &mut Altering, name: &Name, range: TextRange) -> Run {
        let relation = self.catalog.relation(altering.table);
        let Some(constraint) = relation.constraint(&name.text).cloned() else {
            self.missing_constraint(altering, name, false)?;
            altering.work.check(altering.table, ScanCause::Validate { constraint: name.text.clone() }, range);
            return Ok(());
        };
        let supported = match constraint.kind {
            ConstraintKind::Check { .. } | ConstraintKind::ForeignKey(_) => true,
            ConstraintKind::NotNull { .. } => self.target.at_least(18),
            _ => false,
        };
        if !supported {
            let reason = format!("constraint \"{}\" is not a foreign key or check constraint", name.text);
            return fail("42809", reason, name.range);
        }
        if !constraint.enforced {
            return fail("55000", "cannot validate NOT ENFORCED constraint", name.range);
        }
        if constraint.valid {
            return Ok(());
        }
        if constraint.foreign_key().is_some() {
            return self.validate_foreign_keys(altering, name, range);
        }
        let children = if constraint.no_inherit { Vec::new() } else { self.descendants(altering.table) };
        if !altering.recurse && !children.is_empty() {
            return fail("42P16", "constraint must be validated on child tables too", name.range);
        }
        for target in std::iter::once(altering.table).chain(children) {
            if target != altering.table {
                self.lock(target, altering.lock, LockCause::Child, range);
            }
            let counterpart = match &constraint.kind {
                // In children it may have another name.
                ConstraintKind::NotNull { column } => self.not_null_constraint(target, column),
                _ => Some(name.text.clone()),
            };
            let own = counterpart.and_then(|name| self.catalog.relation(target).constraint(&name).cloned());
            if let Some(own) = own.filter(|own| !own.valid) {
                altering.work.check(target, ScanCause::Validate { constraint: name.text.clone() }, range);
                self.update_constraint(target, &own.name, |constraint| constraint.valid = true);
            }
        }
        Ok(())
    }

    fn validate_foreign_keys(&mut self, altering: &mut Altering, name: &Name, range: TextRange) -> Run {
        let descendants = self.descendants(altering.table);
        for target in std::iter::once(altering.table).chain(descendants) {
            let own = self.catalog.relation(target).constraint(&name.text);
            let Some(own) = own.filter(|own| !own.valid).cloned() else { continue };
            let Some(key) = own.foreign_key() else { continue };
            if target != altering.table {
                self.lock(target, altering.lock, LockCause::Child, range);
            }
            self.lock(key.referenced, LockMode::RowShare, LockCause::ForeignKey, range);
            let cause = ScanCause::Validate { constraint: name.text.clone() };
            self.demand_of_check(target, &cause, range);
            altering.work.check_foreign_key(target, cause, range);
            self.update_constraint(target, &own.name, |constraint| constraint.valid = true);
        }
        Ok(())
    }
}
