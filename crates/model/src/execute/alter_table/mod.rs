//! ALTER TABLE, and the commands that it shares with ALTER INDEX, VIEW, SEQUENCE and TYPE.
//!
//! As in PostgreSQL, commands run in passes and not in the order in which they are written: drops first, then type
//! changes, new columns, constraints; rewrites and checks of rows last.
//!
//! Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`.

mod column;
mod column_type;
mod constraint;
mod generated;
mod lock_level;
mod not_null;
mod prepare;
mod row_type;
mod storage;
mod typed;
mod using_index;
mod validate;
mod work;

use super::{Executor, Run, fail};
use crate::catalog::{Column, Oid, Relation, RelationKind};
use crate::effect::{ChangeAction, ChangedObject, LockCause, RewriteCause};
pub(crate) use column_type::use_of;
pub(crate) use constraint::{names, without_overlaps};
pub use lock_level::command_lock_level;
use pgvet_syntax::ast::{
    AlterTable, AlterTableAction as Action, AlterTableCommand, AlterTableMoveAll, ConstraintKind, LockMode, ObjectKind,
};
use work::Work;

/// PostgreSQL's `AT_PASS`_*, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pass {
    Drop,
    AlterType,
    SetExpression,
    AddColumn,
    ColumnAttributes,
    AddIndexConstraint,
    AddIndex,
    AddOtherConstraint,
    Miscellaneous,
}

fn pass_of(action: &Action) -> Pass {
    match action {
        Action::DropColumn { .. }
        | Action::DropConstraint { .. }
        | Action::DropNotNull { .. }
        | Action::DropDefault { .. }
        | Action::DropIdentity { .. }
        | Action::DropExpression { .. }
        | Action::SetWithoutOids => Pass::Drop,
        Action::AlterColumnType { .. } => Pass::AlterType,
        Action::SetExpression { .. } => Pass::SetExpression,
        Action::AddColumn { .. } => Pass::AddColumn,
        Action::SetNotNull { .. } => Pass::ColumnAttributes,
        Action::SetDefault { .. } | Action::AddIdentity { .. } => Pass::AddOtherConstraint,
        Action::AddConstraint(constraint) => match &constraint.kind {
            ConstraintKind::PrimaryKey(index) | ConstraintKind::Unique(index) if index.using_index.is_some() => {
                Pass::AddIndexConstraint
            }
            ConstraintKind::PrimaryKey(_) | ConstraintKind::Unique(_) | ConstraintKind::Exclude(_) => Pass::AddIndex,
            ConstraintKind::NotNull { .. } => Pass::ColumnAttributes,
            _ => Pass::AddOtherConstraint,
        },
        _ => Pass::Miscellaneous,
    }
}

/// The state that the commands of one statement share.
struct Altering {
    table: Oid,
    /// With children, unless ONLY was written.
    recurse: bool,
    lock: LockMode,
    work: Work,
    changed: Vec<column_type::ChangedColumn>,
}

impl Executor<'_> {
    pub(super) fn alter_table(&mut self, statement: &AlterTable) -> Run {
        for command in &statement.commands {
            self.check_command_syntax(command)?;
        }
        let lock = lock_level::lock_level(statement, self.target);
        let assumed = assumed_kind(statement.kind);
        let Some(table) = self.open_if_exists(&statement.name, assumed, lock, statement.if_exists)? else {
            return Ok(());
        };
        self.check_kind(statement, table)?;
        let altering = Altering { table, recurse: !statement.only, lock, work: Work::default(), changed: Vec::new() };
        let mut commands: Vec<&AlterTableCommand> = statement.commands.iter().collect();
        commands.sort_by_key(|command| pass_of(&command.action));
        self.catalog.read_many_mentions();
        self.prepare_commands(&altering, statement)?;
        let typed = self.typed_tables_to_alter(&altering, statement)?;
        self.run_commands(altering, &commands)?;
        typed.into_iter().try_for_each(|altering| self.run_commands(altering, &commands))
    }

    /// Runs the commands, which are in the order of their passes, on one table.
    fn run_commands(&mut self, mut altering: Altering, commands: &[&AlterTableCommand]) -> Run {
        self.lock_children(&altering, commands);
        let mut types_changed = false;
        for command in commands {
            if types_changed && pass_of(&command.action) > Pass::AlterType {
                self.rebuild_after_type_changes(&mut altering)?;
                types_changed = false;
            }
            self.command(&mut altering, command)?;
            types_changed |= pass_of(&command.action) == Pass::AlterType;
        }
        if types_changed {
            self.rebuild_after_type_changes(&mut altering)?;
        }
        self.finish(altering.work, altering.recurse)
    }

    fn is_partitioned(&self, table: Oid) -> bool {
        self.catalog.relation(table).kind == RelationKind::PartitionedTable
    }

    /// The tables that a recursing command is about: the table and its descendants.
    fn altered_tables(&self, altering: &Altering) -> Vec<Oid> {
        let mut targets = vec![altering.table];
        if altering.recurse {
            targets.extend(self.descendants(altering.table));
        }
        targets
    }

    fn command(&mut self, altering: &mut Altering, command: &AlterTableCommand) -> Run {
        match &command.action {
            Action::AddColumn { column, if_not_exists } => self.add_column(altering, column, *if_not_exists, command),
            Action::DropColumn { column, if_exists, behavior } => {
                self.drop_column(altering, column, *if_exists, *behavior, command)
            }
            Action::AlterColumnType { column, type_name, collation, using } => {
                self.alter_column_type(altering, column, type_name, collation.as_ref(), using.as_ref(), command)
            }
            Action::SetDefault { column, default } => self.set_default(altering, column, Some(default)),
            Action::DropDefault { column } => self.set_default(altering, column, None),
            Action::SetNotNull { column } => self.set_not_null(altering, column, command.keyword),
            Action::DropNotNull { column } => self.drop_not_null(altering, column),
            Action::SetExpression { column, expression } => {
                self.set_expression(altering, column, expression, command.keyword)
            }
            Action::DropExpression { column, if_exists } => self.drop_expression(altering, column, *if_exists),
            Action::SetStatistics { column: Some(column), .. } => {
                self.require_column(altering.table, column)?;
                let found = self.catalog.relation(altering.table).column(&column.text);
                let is_virtual = found.is_some_and(Column::is_virtual);
                if is_virtual {
                    return fail("0A000", "cannot alter statistics on virtual generated column", column.range);
                }
                Ok(())
            }
            Action::SetStatistics { column: None, number } => {
                self.check_index_column(altering.table, *number, command.keyword)
            }
            Action::SetColumnOptions { column, .. } => self.require_column(altering.table, column),
            Action::SetStorage { column, storage } => self.set_storage(altering, column, storage),
            Action::SetCompression { column, method } => {
                let table = self.relation_name(altering.table);
                let object = ChangedObject::Compression { table, column: column.text.clone(), method: method.clone() };
                self.change_object(object, ChangeAction::Alter, column.range);
                self.set_compression(altering, column, method, command.keyword)
            }
            Action::AddIdentity { column, always, options } => self.add_identity(altering, column, *always, options),
            Action::SetIdentity { column, options } => self.set_identity(altering, column, options, command.keyword),
            Action::DropIdentity { column, if_exists } => {
                self.drop_identity(altering, column, *if_exists, command.keyword)
            }
            Action::AddConstraint(constraint) => self.add_constraint(altering, constraint, &[], command.keyword),
            Action::AlterConstraint(change) => self.alter_constraint(altering, change, command.keyword),
            Action::ValidateConstraint { name } => self.validate_constraint(altering, name, command.keyword),
            Action::DropConstraint { name, if_exists, behavior } => {
                self.drop_constraint(altering, name, *if_exists, *behavior, command.keyword)
            }
            Action::AttachPartition { partition, bound } => {
                if self.catalog.relation(altering.table).kind.is_index() {
                    self.attach_index(altering.table, partition)
                } else {
                    self.attach_partition(altering.table, partition, bound.as_ref(), command.keyword)
                }
            }
            Action::DetachPartition { partition, concurrently, finalize } => {
                self.detach_partition(altering.table, partition, *concurrently, *finalize, command.keyword)
            }
            _ => self.storage_command(altering, command),
        }
    }

    fn require_column(&self, table: Oid, column: &pgvet_syntax::ast::Name) -> Run {
        let relation = self.catalog.relation(table);
        if relation.known && relation.column(&column.text).is_none() && !is_system_column(&column.text) {
            let reason = format!("column \"{}\" of relation \"{}\" does not exist", column.text, relation.name);
            return fail("42703", reason, column.range);
        }
        Ok(())
    }

    /// Only what an index computes has statistics of its own.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATExecSetStatistics`.
    fn check_index_column(&self, oid: Oid, number: i16, range: pgvet_syntax::source::TextRange) -> Run {
        let relation = self.catalog.relation(oid);
        let Some(index) = relation.index() else { return Ok(()) };
        let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let included = place.is_some_and(|place| place - index.elements.len().min(place) < index.including.len());
        match place.and_then(|place| index.elements.get(place)) {
            Some(element) if element.key.as_column().is_none() => Ok(()),
            None if !included => {
                let reason = format!("column number {number} of relation \"{}\" does not exist", relation.name);
                fail("42703", reason, range)
            }
            _ => {
                let reason = format!("cannot alter statistics on plain column {number} of index \"{}\"", relation.name);
                fail("0A000", reason, range)
            }
        }
    }

    /// Refuses commands that the kind of relation does not have.
    fn check_kind(&self, statement: &AlterTable, oid: Oid) -> Run {
        let relation = self.catalog.relation(oid);
        let wrong = match statement.kind {
            ObjectKind::Index => !relation.kind.is_index(),
            ObjectKind::View => relation.kind != RelationKind::View,
            ObjectKind::MaterializedView => relation.kind != RelationKind::MaterializedView,
            ObjectKind::Sequence => relation.kind != RelationKind::Sequence,
            ObjectKind::Type => relation.kind != RelationKind::CompositeType,
            ObjectKind::ForeignTable => relation.kind != RelationKind::ForeignTable,
            _ => false,
        };
        let composite = relation.kind == RelationKind::CompositeType && statement.kind == ObjectKind::Table;
        if (wrong || composite) && relation.known {
            let kind = format!("{:?}", statement.kind).to_lowercase();
            return fail("42809", format!("\"{}\" is not a {kind}", relation.name), statement.name.range());
        }
        let refused = statement.commands.iter().find(|command| !kind_allows(relation.kind, &command.action));
        if let Some(command) = refused.filter(|_| relation.known) {
            let reason = format!("the command cannot be performed on relation \"{}\"", relation.name);
            return fail("42809", reason, command.keyword);
        }
        let changes = |command: &&AlterTableCommand| {
            matches!(
                command.action,
                Action::AddColumn { .. } | Action::DropColumn { .. } | Action::AlterColumnType { .. }
            )
        };
        if let Some(command) = statement.commands.iter().find(changes).filter(|_| relation.of_type.is_some()) {
            return fail("42809", "cannot add, drop or alter columns of a typed table", command.keyword);
        }
        Ok(())
    }

    pub(super) fn alter_table_move_all(&mut self, statement: &AlterTableMoveAll) -> Run {
        if statement.from == statement.to {
            return Ok(());
        }
        let wanted: fn(RelationKind) -> bool = match statement.kind {
            ObjectKind::Index => RelationKind::is_index,
            ObjectKind::MaterializedView => |kind| kind == RelationKind::MaterializedView,
            _ => |kind| kind == RelationKind::Table,
        };
        let default = statement.from == "pg_default";
        let lies_there = |relation: &Relation| {
            wanted(relation.kind)
                && !relation.is_temporary()
                && relation.tablespace.as_ref().map_or(default, |tablespace| *tablespace == statement.from)
        };
        let moved = self.catalog.relations_where(lies_there);
        let moved: Vec<Oid> = moved.into_iter().map(|relation| relation.oid).collect();
        for oid in moved {
            let range = self.place.range;
            self.lock(oid, LockMode::AccessExclusive, LockCause::Target, range);
            self.copy_storage(oid, RewriteCause::Tablespace, range);
            self.catalog.relation_mut(oid).tablespace = Some(statement.to.clone());
        }
        Ok(())
    }
}

fn assumed_kind(kind: ObjectKind) -> RelationKind {
    match kind {
        ObjectKind::Index => RelationKind::Index,
        ObjectKind::View => RelationKind::View,
        ObjectKind::MaterializedView => RelationKind::MaterializedView,
        ObjectKind::Sequence => RelationKind::Sequence,
        ObjectKind::Type => RelationKind::CompositeType,
        ObjectKind::ForeignTable => RelationKind::ForeignTable,
        _ => RelationKind::Table,
    }
}

/// Views and materialized views have few of the commands.
///
/// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ATPrepCmd`.
fn kind_allows(kind: RelationKind, action: &Action) -> bool {
    let column_of_view = matches!(action, Action::SetDefault { .. } | Action::DropDefault { .. });
    let refused = matches!(
        action,
        Action::AddColumn { .. }
            | Action::DropColumn { .. }
            | Action::AlterColumnType { .. }
            | Action::SetNotNull { .. }
            | Action::DropNotNull { .. }
            | Action::AddConstraint(_)
            | Action::DropConstraint { .. }
            | Action::ValidateConstraint { .. }
            | Action::RowSecurity(_)
            | Action::Trigger { .. }
            | Action::Inherit { .. }
            | Action::SetLogged
            | Action::SetUnlogged
            | Action::AttachPartition { .. }
    );
    match kind {
        RelationKind::View => !refused && !matches!(action, Action::SetTablespace { .. } | Action::ClusterOn { .. }),
        RelationKind::MaterializedView => !refused && !column_of_view,
        RelationKind::Sequence => {
            let persistence = matches!(action, Action::SetLogged | Action::SetUnlogged);
            (!refused || persistence) && !column_of_view
        }
        // It has the owner of its table. On a plain index PostgreSQL only warns.
        RelationKind::PartitionedIndex => !matches!(action, Action::ChangeOwner { .. }),
        _ => true,
    }
}

pub(crate) fn is_system_column(name: &str) -> bool {
    matches!(name, "ctid" | "xmin" | "xmax" | "cmin" | "cmax" | "tableoid")
}
