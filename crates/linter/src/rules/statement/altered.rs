//! ALTER TABLE behind its effects: which command or constraint an effect comes from, and which tables it is about.

use crate::rule::RuleContext;
use crate::rules::text::enumerate;
use pgvet_model::catalog::RelationKind;
use pgvet_model::effect::{LockCause, RelationName};
use pgvet_syntax::ast::{AlterTable, AlterTableAction, AlterTableCommand, Ast, ColumnDef, Constraint, Name};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;

/// An ALTER TABLE and the table that it names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Altered<'a> {
    pub(crate) statement: &'a AlterTable,
    pub(crate) table: &'a RelationName,
}

/// Where a constraint is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WrittenConstraint<'a> {
    pub(crate) constraint: &'a Constraint,
    /// The column that ADD COLUMN defines it on.
    pub(crate) column: Option<&'a ColumnDef>,
}

impl<'a> Altered<'a> {
    /// `None` where the statement is something else, such as a DO block that alters tables.
    pub(crate) fn of(context: &RuleContext<'a>) -> Option<Self> {
        let Ast::AlterTable(statement) = context.ast else { return None };
        let name = statement.name.range();
        let named = |lock: &&pgvet_model::effect::Lock| lock.range == name && lock.cause == LockCause::Target;
        let table = &context.effects.locks.iter().find(named)?.relation;
        Some(Self { statement, table })
    }

    /// The command that caused an effect.
    pub(crate) fn command(&self, range: TextRange) -> Option<&'a AlterTableCommand> {
        self.statement.commands.iter().find(|command| command.range.contains(range))
    }

    /// The constraint that caused an effect.
    pub(crate) fn constraint(&self, range: TextRange) -> Option<WrittenConstraint<'a>> {
        match &self.command(range)?.action {
            AlterTableAction::AddConstraint(constraint) => Some(WrittenConstraint { constraint, column: None }),
            AlterTableAction::AddColumn { column, .. } => {
                let constraint = column.constraints.iter().find(|constraint| constraint.range.contains(range))?;
                Some(WrittenConstraint { constraint, column: Some(column) })
            }
            _ => None,
        }
    }

    /// The column whose type a command changes.
    pub(crate) fn type_change(&self, range: TextRange) -> Option<&'a Name> {
        match &self.command(range)?.action {
            AlterTableAction::AlterColumnType { column, .. } => Some(column),
            _ => None,
        }
    }
}

/// Effects by the range that caused them, in the order of the first of each.
pub(crate) fn by_range<'e, T>(
    effects: impl IntoIterator<Item = &'e T>,
    range: impl Fn(&T) -> TextRange,
) -> Vec<(TextRange, Vec<&'e T>)> {
    let mut groups: Vec<(TextRange, Vec<&T>)> = Vec::new();
    let mut places: FxHashMap<TextRange, usize> = FxHashMap::default();
    for effect in effects {
        let at = range(effect);
        let place = *places.entry(at).or_insert_with(|| {
            groups.push((at, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(effect);
    }
    groups
}

/// The tables of an effect in a message: `` `orders` ``, or `` `events` and its 12 partitions ``.
pub(crate) fn subject(altered: Option<Altered<'_>>, tables: &[&RelationName]) -> String {
    let Some(Altered { table, .. }) = altered else { return enumerate(tables.iter().map(|table| table.name.as_str())) };
    let others = tables.iter().filter(|other| other.oid != table.oid).count();
    let (one, many) = match table.kind {
        RelationKind::PartitionedTable => ("partition", "partitions"),
        _ => ("child", "children"),
    };
    match others {
        0 => format!("`{}`", table.name),
        1 => format!("`{}` and its {one}", table.name),
        _ => format!("`{}` and its {others} {many}", table.name),
    }
}
