//! DROP, and everything that goes with an object.

use super::{Executor, Run};
use crate::ast::DropBehavior;
use crate::catalog::Oid;
use crate::effect::LockCause;
use crate::source::TextRange;
use smol_str::SmolStr;

impl Executor<'_> {
    pub(super) fn drop_objects(&mut self, statement: &crate::ast::Drop) -> Run {
        let _ = statement;
        Ok(())
    }

    /// Drops a relation and what belongs to it (indexes, owned sequences, row type, foreign keys of it); with CASCADE also
    /// what depends on it (views, foreign keys to it, defaults that use a sequence), otherwise fails with 2BP01.
    /// Locks everything that goes and both sides of foreign keys.
    pub(crate) fn drop_relation(
        &mut self,
        oid: Oid,
        behavior: DropBehavior,
        cause: LockCause,
        range: TextRange,
    ) -> Run {
        let _ = (oid, behavior, cause, range);
        Ok(())
    }

    /// What goes with a column: indexes, constraints, sequences, views with CASCADE.
    pub(crate) fn drop_column_dependents(
        &mut self,
        table: Oid,
        column: &SmolStr,
        behavior: DropBehavior,
        range: TextRange,
    ) -> Run {
        let _ = (table, column, behavior, range);
        Ok(())
    }

    /// Drops a constraint with its index and what depends on it.
    pub(crate) fn drop_constraint_object(
        &mut self,
        table: Oid,
        name: &SmolStr,
        behavior: DropBehavior,
        range: TextRange,
    ) -> Run {
        let _ = (table, name, behavior, range);
        Ok(())
    }
}
