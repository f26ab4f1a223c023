//! Checks and locks of ALTER TABLE before any of its commands runs.
//!
//! Source: PostgreSQL 14 to 18, `src/backend/commands/tablecmds.c`, `ATPrepCmd`.

use super::Altering;
use crate::catalog::{Oid, Relation, RelationKind};
use crate::effect::LockCause;
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{
    AlterTable, AlterTableAction as Action, AlterTableCommand, ConstraintKind, Name, TriggerChoice,
};
use smol_str::SmolStr;

impl Executor<'_> {
    /// Checks what each command needs of the table as it is now.
    pub(super) fn prepare_commands(&mut self, altering: &Altering, statement: &AlterTable) -> Run {
        for command in &statement.commands {
            self.prepare_command(altering, command)?;
        }
        Ok(())
    }

    /// Syntax that older majors do not have.
    pub(super) fn check_command_syntax(&self, command: &AlterTableCommand) -> Run {
        match &command.action {
            Action::AddColumn { column, .. } => {
                for constraint in &column.constraints {
                    self.check_generated_syntax(constraint)?;
                    self.check_constraint_syntax(constraint, constraint.keyword)?;
                }
                Ok(())
            }
            Action::AddConstraint(constraint) => self.check_constraint_syntax(constraint, command.keyword),
            Action::SetExpression { .. } if !self.target.at_least(17) => {
                fail("42601", "syntax error at or near \"EXPRESSION\"", command.keyword)
            }
            Action::SetAccessMethod { .. } if !self.target.at_least(15) => {
                fail("42601", "syntax error at or near \"ACCESS\"", command.keyword)
            }
            Action::SetAccessMethod { method: None } if !self.target.at_least(17) => {
                fail("42601", "syntax error at or near \"DEFAULT\"", command.keyword)
            }
            Action::DropExpression { .. } if !self.target.at_least(13) => {
                fail("42601", "syntax error at or near \"EXPRESSION\"", command.keyword)
            }
            Action::DetachPartition { concurrently: true, .. } if !self.target.at_least(14) => {
                fail("42601", "syntax error at or near \"CONCURRENTLY\"", command.keyword)
            }
            Action::DetachPartition { finalize: true, .. } if !self.target.at_least(14) => {
                fail("42601", "syntax error at or near \"FINALIZE\"", command.keyword)
            }
            Action::AttachPartition { bound: Some(bound), .. } => self.check_bound_syntax(bound, command.keyword),
            _ => Ok(()),
        }
    }

    fn prepare_command(&mut self, altering: &Altering, command: &AlterTableCommand) -> Run {
        let relation = self.catalog.relation(altering.table);
        let partitioned = relation.kind == RelationKind::PartitionedTable;
        let has_children = !relation.children.is_empty();
        match &command.action {
            Action::SetNotNull { column } if partitioned && !self.target.at_least(18) => {
                self.require_column(altering.table, column)
            }
            Action::DropNotNull { column } if partitioned && !altering.recurse && has_children => {
                self.require_column(altering.table, column)?;
                if self.target.at_least(18) {
                    return Ok(());
                }
                let reason = "cannot remove constraint from only the partitioned table when partitions exist";
                fail("42P16", reason, column.range)
            }
            Action::AlterColumnType { column, type_name, collation, using } => {
                let collation = collation.as_ref();
                self.prepare_column_type(altering, column, type_name, collation, using.as_ref(), command.keyword)
            }
            Action::DropExpression { column, .. } => self.prepare_drop_expression(altering, column),
            Action::AddIdentity { column, .. }
            | Action::SetIdentity { column, .. }
            | Action::DropIdentity { column, .. } => self.prepare_identity(altering, column),
            // The partitions must not be in use.
            Action::DropConstraint { .. } if partitioned => {
                self.lock_descendants(altering.table, altering.lock, command.keyword);
                Ok(())
            }
            Action::AlterConstraint(_)
                if partitioned && !altering.recurse && has_children && self.target.at_least(18) =>
            {
                fail("42P16", "constraint must be altered in child tables too", command.keyword)
            }
            _ => Ok(()),
        }
    }

    /// Only the last level but one may be named with its children: the others are prepared as if with ONLY.
    fn prepare_drop_expression(&self, altering: &Altering, column: &Name) -> Run {
        let relation = self.catalog.relation(altering.table);
        let has_children = |oid: &Oid| !self.catalog.relation(*oid).children.is_empty();
        let misses_children = if altering.recurse {
            self.descendants(altering.table).iter().any(has_children)
        } else {
            has_children(&altering.table)
        };
        if misses_children {
            let reason = "ALTER TABLE / DROP EXPRESSION must be applied to child tables too";
            return fail("0A000", reason, column.range);
        }
        if relation.column(&column.text).is_some_and(|found| found.inherited_from > 0) {
            return fail("42P16", "cannot drop generation expression from inherited column", column.range);
        }
        Ok(())
    }

    /// Since 17 the identity of a partitioned table is that of all its partitions.
    fn prepare_identity(&self, altering: &Altering, column: &Name) -> Run {
        if !self.target.at_least(17) {
            return Ok(());
        }
        let relation = self.catalog.relation(altering.table);
        if relation.kind == RelationKind::PartitionedTable && !altering.recurse {
            let reason = "cannot change the identity of a column of only the partitioned table";
            return fail("42P16", reason, column.range);
        }
        if relation.is_partition() {
            return fail("42P16", "cannot change the identity of a column of a partition", column.range);
        }
        Ok(())
    }

    /// Commands that recurse lock every descendant at once, with the lock of the statement.
    pub(super) fn lock_children(&mut self, altering: &Altering, commands: &[&AlterTableCommand]) {
        if !altering.recurse || self.catalog.relation(altering.table).children.is_empty() {
            return;
        }
        if let Some(command) = commands.iter().find(|command| self.recurses(altering.table, &command.action)) {
            self.lock_descendants(altering.table, altering.lock, command.keyword);
        }
    }

    /// Whether the command applies to children, too.
    fn recurses(&self, table: Oid, action: &Action) -> bool {
        let relation = self.catalog.relation(table);
        let partitioned = relation.kind == RelationKind::PartitionedTable;
        let is_not_null = |column: &Name| relation.column(&column.text).is_some_and(|found| found.not_null);
        let has_identity = |column: &Name| relation.column(&column.text).is_some_and(|found| found.identity.is_some());
        let missing = |column: &Name| relation.known && relation.column(&column.text).is_none();
        match action {
            Action::AddColumn { column, if_not_exists } => !*if_not_exists || missing(&column.name),
            Action::DropColumn { column, if_exists, .. } => !*if_exists || !missing(column),
            // Until 17 children of plain tables may have nulls where the parent has none.
            // Since 18 they go down level by level.
            Action::SetNotNull { .. } | Action::DropNotNull { .. } if self.target.at_least(18) => false,
            Action::SetNotNull { column } => !is_not_null(column) || !partitioned,
            Action::DropNotNull { .. } => true,
            Action::AlterColumnType { .. }
            | Action::SetDefault { .. }
            | Action::DropDefault { .. }
            | Action::SetStatistics { .. }
            | Action::SetStorage { .. }
            | Action::SetExpression { .. }
            | Action::DropExpression { .. } => true,
            Action::AddIdentity { .. } => partitioned && self.target.at_least(17),
            Action::SetIdentity { column, .. } | Action::DropIdentity { column, .. } => {
                partitioned && self.target.at_least(17) && has_identity(column)
            }
            Action::Trigger { which, .. } => {
                // Before 15 the triggers of foreign keys stay behind.
                partitioned && has_row_trigger(relation, which, self.target.at_least(15))
            }
            Action::AddConstraint(constraint) => match constraint.kind {
                _ if self.target.at_least(18) => true,
                ConstraintKind::Check(_) => !constraint.no_inherit,
                _ => false,
            },
            _ => false,
        }
    }

    /// ONLY still locks the children, which keep what the parent loses.
    pub(super) fn lock_keeping_children(&mut self, altering: &Altering, range: pgvet_syntax::source::TextRange) {
        for child in self.catalog.relation(altering.table).children.clone() {
            self.lock(child, altering.lock, LockCause::Child, range);
        }
    }

    /// Counts one parent less for a NOT NULL of the children.
    pub(super) fn disinherit_not_null(&mut self, altering: &Altering, column: &SmolStr) {
        for child in self.catalog.relation(altering.table).children.clone() {
            if let Some(name) = self.not_null_constraint(child, column) {
                self.disinherit_constraint(child, &name);
            }
        }
    }
}

/// Whether the chosen triggers include one FOR EACH ROW. Foreign keys have some, if `internal` ones are included.
fn has_row_trigger(relation: &Relation, which: &TriggerChoice, internal: bool) -> bool {
    let named = |name: &SmolStr| !matches!(which, TriggerChoice::Named(wanted) if wanted.text != *name);
    let internal = internal
        && matches!(which, TriggerChoice::All)
        && (!relation.referenced_by.is_empty() || relation.constraints.iter().any(|one| one.foreign_key().is_some()));
    internal || relation.triggers.iter().any(|trigger| trigger.for_each_row && named(&trigger.name))
}
