//! COPY.

use super::values::RowChange;
use super::{Depth, Env};
use crate::catalog::{Oid, RelationKind};
use crate::effect::{DataChangeKind, Rows, RowsReason, ScanCause};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{Copy, LockMode, TriggerTiming};

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/copy.c`, `DoCopy`.
    pub(crate) fn copy(&mut self, copy: &Copy) -> Run {
        let env = Env::new(Depth::Run);
        if let Some(query) = &copy.query {
            return self.query_statement(query, &env);
        }
        let Some(name) = &copy.table else { return Ok(()) };
        if self.is_system_relation(name) {
            return Ok(());
        }
        if copy.from {
            // COPY is no query.
            self.check_schema_of(name)?;
            let Some(table) = self.open_changed(name)? else { return Ok(()) };
            let relation = self.catalog.relation(table);
            let instead = relation.triggers.iter().any(|trigger| trigger.timing == TriggerTiming::InsteadOf);
            if relation.kind == RelationKind::View && !instead && relation.known {
                return fail("42809", format!("cannot copy to view \"{}\"", relation.name), name.range());
            }
            self.check_freeze(copy, table)?;
            self.expressions(&copy.filter, &env)?;
            let change = RowChange::new(DataChangeKind::Insert, false, name.range());
            self.change(table, &change, Depth::Run)?;
            let rows = match copy.rows_at_most {
                Some(rows) => Rows::at_most(rows, RowsReason::Listed),
                None => Rows::unknown_part(RowsReason::GivenAtRunTime),
            };
            self.note_change(table, &change, rows, Depth::Run, name.range());
            return Ok(());
        }
        let table = self.open(name, RelationKind::Table, LockMode::AccessShare)?;
        let refused = match self.catalog.relation(table).kind {
            RelationKind::View => Some("view"),
            RelationKind::PartitionedTable => Some("partitioned table"),
            RelationKind::MaterializedView if !self.target.at_least(18) => Some("materialized view"),
            RelationKind::ForeignTable => Some("foreign table"),
            RelationKind::Sequence => Some("sequence"),
            _ => None,
        };
        if let Some(kind) = refused {
            return fail("42809", format!("cannot copy from {kind} \"{}\"", name.name.text), name.range());
        }
        self.scan(table, ScanCause::Query, name.range());
        Ok(())
    }

    /// FREEZE wants a table that this transaction created or truncated, which holds `AccessExclusive` on it.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/copyfrom.c`, `CopyFrom`.
    fn check_freeze(&mut self, copy: &Copy, table: Oid) -> Run {
        let freeze = copy.options.iter().any(|option| option.name == "freeze" && option.as_bool() == Some(true));
        if !freeze {
            return Ok(());
        }
        let relation = self.catalog.relation(table);
        let range = copy.table.as_ref().map(pgvet_syntax::ast::ObjectName::range).unwrap_or_default();
        if relation.kind == RelationKind::PartitionedTable {
            return fail("0A000", "cannot perform COPY FREEZE on a partitioned table", range);
        }
        let made_here = relation.birth.transaction == self.transaction && relation.birth.deployment.is_some();
        let block = self.session.block.as_ref();
        let may_be_truncated = block.is_some_and(|block| block.locks.holds(table, LockMode::AccessExclusive));
        if made_here || may_be_truncated {
            return Ok(());
        }
        let reason = "cannot perform COPY FREEZE because the table was not created or truncated in this transaction";
        fail("55000", reason, range)
    }
}
