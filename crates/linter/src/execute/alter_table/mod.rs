//! ALTER TABLE.

use super::{Executor, Run};
use crate::ast::AlterTable;

impl Executor<'_> {
    pub(super) fn alter_table(&mut self, statement: &AlterTable) -> Run {
        let _ = statement;
        Ok(())
    }
}
