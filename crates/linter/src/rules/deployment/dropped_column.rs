//! Which column a DROP COLUMN takes from deployed code, and what has its name then.

use crate::rule::RuleContext;
use crate::rules::deployment::other_statements::{
    Until, adds, ahead_of_maker, any_later, earlier, is_column_made_here, means,
};
use pgvet_model::catalog::{Catalog, Column, Copied, Relation, RelationKind};
use pgvet_model::effect::{RelationName, Removal, RemovalReason, RemovedObject, Visibility};
use pgvet_syntax::ast::{AlterTableAction, Assignment, Ast, Expr, ExprKind, Part};
use pgvet_syntax::source::TextRange;

/// What has the name of a column when the transaction has ended.
pub(crate) enum Replacement<'e> {
    Nothing,
    /// Nothing shows the columns of the relation that has the name of the table.
    NotShown,
    Column(&'e Column),
}

impl<'e> Replacement<'e> {
    /// In the table itself, or in what has its name then.
    pub(crate) fn of(end: &'e Catalog, table: &RelationName, column: &str) -> Self {
        let Some(named) = end.relation_named(&table.schema, &table.name) else { return Self::Nothing };
        let relation = end.relation(named);
        match relation.column(column) {
            Some(column) => Self::Column(column),
            None if named != table.oid && !relation.known => Self::NotShown,
            None => Self::Nothing,
        }
    }
}

/// The column of an existing table that a removal takes from deployed code, unless it exists again later.
pub(crate) fn lost<'c>(context: &RuleContext<'c>, removal: &'c Removal) -> Option<(&'c RelationName, &'c str)> {
    let (table, column) = taken(context, removal)?;
    let end = ahead_of_maker(context, column, Until::Commit);
    let comes_back = matches!(replacement(context, &end, table, column), Replacement::Column(_));
    (!comes_back).then_some((table, column))
}

/// The column of an existing table that a removal takes.
pub(crate) fn taken<'c>(context: &RuleContext<'c>, removal: &'c Removal) -> Option<(&'c RelationName, &'c str)> {
    let RemovedObject::Column { table, column } = &removal.object else { return None };
    let stays = context.after.get_relation(table.oid).is_some() && removal.reason == RemovalReason::Named;
    if !stays || table.visibility != Visibility::Existing || table.kind == RelationKind::CompositeType {
        return None;
    }
    let of_parent = |other: &Removal| {
        let RemovedObject::Column { table: parent, column: same } = &other.object else { return false };
        let relation = context.before.get_relation(table.oid);
        same == column && relation.is_some_and(|relation| relation.parents.contains(&parent.oid))
    };
    let is_of_parent = context.effects.removals.iter().any(of_parent);
    (!is_of_parent && !is_column_made_here(context, table, column)).then_some((table, column.as_str()))
}

/// What has the name of the column in the end. A plain column that is added to the table again takes its place only if it
/// gets the values back.
pub(crate) fn replacement<'e>(
    context: &RuleContext<'_>,
    end: &'e Catalog,
    table: &RelationName,
    column: &str,
) -> Replacement<'e> {
    let own = end.get_relation(table.oid).and_then(|table| table.column(column));
    match own {
        Some(own) if own.generated.is_some() || !is_emptied(context, table, column) => Replacement::Column(own),
        _ if end.relation_named(&table.schema, &table.name) == Some(table.oid) => Replacement::Nothing,
        _ => Replacement::of(end, table, column),
    }
}

/// Whether the statement, or a later one, adds a column of this name, which has none of the values.
pub(crate) fn is_emptied(context: &RuleContext<'_>, table: &RelationName, column: &str) -> bool {
    is_added_again(context, table, column)
        && !is_kept(context, table, column)
        && !is_kept_in_copy(context, table, column)
}

/// Whether an UPDATE of all rows has copied the values to another column, from which a later one takes them back.
fn is_kept(context: &RuleContext<'_>, table: &RelationName, column: &str) -> bool {
    let copies: Vec<&Assignment> = earlier(context)
        .flat_map(|ast| assigned_in_all_rows(context, ast, table))
        .filter(|assignment| is_copy(&assignment.value, column))
        .collect();
    let is_back = |assignment: &Assignment| {
        assignment.column.text == column && copies.iter().any(|copy| names(&assignment.value, &copy.column.text))
    };
    !copies.is_empty() && any_later(context, |ast| assigned_in_all_rows(context, ast, table).any(is_back))
}

/// Whether the deployment has copied all rows with this column to another table, from which a later UPDATE takes the
/// values back.
fn is_kept_in_copy(context: &RuleContext<'_>, table: &RelationName, column: &str) -> bool {
    let takes_back = |ast: &Ast, copy: &Relation| {
        let Ast::Update(update) = ast else { return false };
        let mut read = false;
        ast.visit(&mut |part| read |= matches!(part, Part::Read(read) if read.name.name.text == copy.name));
        let mut assigned = update.assignments.iter().map(|assignment| &assignment.column.text);
        read && means(context, &update.table.name, table) && assigned.any(|name| name == column)
    };
    let mut copies = whole_copies(context, table).filter(|copy| copy.column(column).is_some());
    copies.any(|copy| any_later(context, |ast| takes_back(ast, copy)))
}

/// The tables to which the deployment has copied all rows of a table.
pub(crate) fn whole_copies<'a>(context: &RuleContext<'a>, table: &RelationName) -> impl Iterator<Item = &'a Relation> {
    let (before, deployment) = (context.before, context.deployment());
    let copies = before.copies_of(table.oid);
    let is_own = move |copied: &Copied| copied.is_whole && deployment.is_some() && copied.deployment == deployment;
    copies.filter(move |(_, copied)| is_own(copied)).map(|(copy, _)| copy)
}

/// What an UPDATE of the table assigns, unless it skips rows that have a value.
fn assigned_in_all_rows<'a>(
    context: &RuleContext<'_>,
    ast: &'a Ast,
    table: &RelationName,
) -> impl Iterator<Item = &'a Assignment> + use<'a> {
    let update = match ast {
        Ast::Update(update) if update.from.is_empty() && means(context, &update.table.name, table) => Some(update),
        _ => None,
    };
    update.into_iter().flat_map(|update| &update.assignments).filter(move |assignment| {
        let is_of_value = |filter: &Expr| match &filter.kind {
            ExprKind::IsNull { operand, negated: true } => operand.is_same(&assignment.value),
            _ => false,
        };
        update.and_then(|update| update.filter.as_ref()).is_none_or(is_of_value)
    })
}

/// The column itself, perhaps as another type.
fn is_copy(value: &Expr, column: &str) -> bool {
    match &value.kind {
        ExprKind::Column(path) => path.last().is_some_and(|name| name == column),
        ExprKind::Cast { operand, .. } => is_copy(operand, column),
        _ => false,
    }
}

fn names(value: &Expr, column: &str) -> bool {
    let mut found = false;
    value.walk(&mut |part| {
        found |= matches!(&part.kind, ExprKind::Column(path) if path.last().is_some_and(|name| name == column));
    });
    found
}

/// Whether the statement, or a later one, adds a column of this name.
fn is_added_again(context: &RuleContext<'_>, table: &RelationName, column: &str) -> bool {
    let adds_it = |ast: &Ast| match ast {
        Ast::AlterTable(alter) => adds(alter, column) && means(context, &alter.name, table),
        _ => false,
    };
    adds_it(context.ast) || any_later(context, adds_it)
}

/// The name of the column, where the statement is an ALTER TABLE.
pub(crate) fn place(context: &RuleContext<'_>, range: TextRange) -> TextRange {
    let Ast::AlterTable(alter) = context.ast else { return range };
    let command = alter.commands.iter().find(|command| command.range == range);
    match command.map(|command| &command.action) {
        Some(AlterTableAction::DropColumn { column, .. }) => column.range,
        _ => range,
    }
}
