//! ALTER TYPE on a composite type: the tables OF that type change with it.
//!
//! Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATTypedTableRecursion` and
//! `find_typed_table_dependencies`.

use super::Altering;
use super::work::Work;
use crate::catalog::{Mention, Oid, RelationKind};
use crate::effect::LockCause;
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::AlterTable;

impl Executor<'_> {
    /// Locks and prepares the tables that the commands apply to as well, which only CASCADE allows.
    pub(super) fn typed_tables_to_alter(&mut self, altering: &Altering, statement: &AlterTable) -> Run<Vec<Altering>> {
        let mut typed = Vec::new();
        if self.catalog.relation(altering.table).kind != RelationKind::CompositeType {
            return Ok(typed);
        }
        for table in self.typed_tables(altering.table) {
            if !statement.cascade {
                let reason = "cannot alter a type that is the type of a typed table";
                return fail("2BP01", reason, statement.name.range());
            }
            self.lock(table, altering.lock, LockCause::TypeUser, statement.name.range());
            let own =
                Altering { table, recurse: true, lock: altering.lock, work: Work::default(), changed: Vec::new() };
            self.prepare_commands(&own, statement)?;
            typed.push(own);
        }
        Ok(typed)
    }

    /// The tables OF a stand-alone composite type.
    pub(in crate::execute) fn typed_tables(&self, composite: Oid) -> Vec<Oid> {
        let Some(row_type) = self.row_type_of(composite) else { return Vec::new() };
        let typed = self.catalog.relations_mentioning(&[Mention::Object(row_type)]).into_iter();
        typed.filter(|relation| relation.of_type == Some(row_type)).map(|relation| relation.oid).collect()
    }
}
