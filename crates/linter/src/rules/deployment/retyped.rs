//! Columns of existing tables whose type a statement changes.

use super::other_statements::{earlier, means};
use crate::rule::RuleContext;
use pgvet_model::catalog::SqlType;
use pgvet_model::effect::{RelationName, RemovedObject, Rewrite, RewriteCause, Using, Visibility};
use pgvet_syntax::ast::{AlterTableAction, Ast, Expr, ExprKind, Literal, LockMode};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// A column with its old and new type.
pub(crate) struct Retyped<'c> {
    pub(crate) table: &'c RelationName,
    pub(crate) column: &'c SmolStr,
    pub(crate) from: SqlType,
    pub(crate) to: SqlType,
    /// The new type in ALTER TABLE, or what runs the change.
    pub(crate) range: TextRange,
    /// What USING says of old values.
    pub(crate) using: Using,
    /// Whether USING cuts texts that are too long, as `left()` and an explicit cast to `varchar(n)` do.
    pub(crate) cuts: bool,
    /// An earlier statement of the migration changes old values.
    pub(crate) updated: bool,
}

/// The changes of a statement, those of partitions and children left to their parents.
pub(crate) fn retyped<'c>(context: &'c RuleContext<'_>) -> Vec<Retyped<'c>> {
    let mut found: Vec<Retyped<'c>> = Vec::new();
    if context.effects.fails.is_some() {
        return found;
    }
    for lock in &context.effects.locks {
        let table = &lock.relation;
        let is_old = table.kind.is_table() && table.visibility == Visibility::Existing;
        if !is_old || lock.mode != LockMode::AccessExclusive || found.iter().any(|known| known.table.oid == table.oid) {
            continue;
        }
        let (Some(before), Some(after)) =
            (context.before.get_relation(table.oid), context.after.get_relation(table.oid))
        else {
            continue;
        };
        for (at, column) in after.columns.iter().enumerate().filter(|(_, column)| column.inherited_from == 0) {
            let old = before.column_near(at, &column.name);
            let Some(from) = old.map(|old| old.sql_type).filter(|from| *from != column.sql_type) else { continue };
            if is_recreated(context, table, &column.name) {
                continue;
            }
            let range = place(context, &column.name).unwrap_or(lock.range);
            let (column, to) = (&column.name, column.sql_type);
            let (using, updated) = (using(context, table, column), is_updated(context, table, column));
            // PostgreSQL's VARHDRSZ is part of the modifier.
            let limit = i64::from(to.typmod) - 4;
            let cuts = using_expression(context, column).is_some_and(|using| cuts_text(using, limit));
            found.push(Retyped { table, column, from, to, range, using, cuts, updated });
        }
    }
    found
}

/// Dropped and added again: another column of the same name.
fn is_recreated(context: &RuleContext<'_>, table: &RelationName, name: &str) -> bool {
    context.effects.removals.iter().any(|removal| {
        matches!(&removal.object, RemovedObject::Column { table: other, column } if other.oid == table.oid && column == name)
    })
}

fn using(context: &RuleContext<'_>, table: &RelationName, name: &str) -> Using {
    let of_column = |rewrite: &Rewrite| match &rewrite.cause {
        RewriteCause::TypeChange { column, using, .. } if column == name && rewrite.relation.oid == table.oid => {
            Some(*using)
        }
        _ => None,
    };
    context.effects.rewrites.iter().find_map(of_column).unwrap_or(Using::Absent)
}

fn is_updated(context: &RuleContext<'_>, table: &RelationName, name: &str) -> bool {
    earlier(context).any(|ast| {
        let Ast::Update(update) = ast else { return false };
        update.assignments.iter().any(|assignment| assignment.column.text == name)
            && means(context, &update.table.name, table)
    })
}

/// The expression of USING, if the statement itself has one.
fn using_expression<'c>(context: &RuleContext<'c>, name: &str) -> Option<&'c Expr> {
    let Ast::AlterTable(alter) = context.ast else { return None };
    alter.commands.iter().find_map(|command| match &command.action {
        AlterTableAction::AlterColumnType { column, using, .. } if column.text == name => using.as_ref(),
        _ => None,
    })
}

/// Whether an expression keeps only so much of a text as the new type holds. An explicit cast to a type with a length does
/// so without an error.
///
/// Source: PostgreSQL 18, `src/backend/utils/adt/varchar.c`, `varchar` and `bpchar`.
fn cuts_text(using: &Expr, limit: i64) -> bool {
    let fits =
        |length: Option<&Literal>| matches!(length, Some(Literal::Integer(length)) if (1..=limit).contains(length));
    match &using.kind {
        ExprKind::Cast { operand, target } if target.modifiers.is_empty() && !target.is_array => {
            cuts_text(operand, limit)
        }
        ExprKind::Cast { operand, target } => {
            let is_text = matches!(target.name.as_str(), "varchar" | "bpchar") && !target.is_array;
            is_text && fits(target.modifiers.first()) && names_column(operand)
        }
        ExprKind::Call(call) => {
            let at = match call.name.as_str() {
                "left" | "right" => 1,
                "substr" | "substring" => 2,
                _ => return false,
            };
            let length = call.arguments.get(at).and_then(|length| match &length.value.kind {
                ExprKind::Literal(length) => Some(length),
                _ => None,
            });
            fits(length) && call.arguments.first().is_some_and(|text| names_column(&text.value))
        }
        _ => false,
    }
}

fn names_column(expression: &Expr) -> bool {
    let mut found = false;
    expression.walk(&mut |part| found |= matches!(part.kind, ExprKind::Column(_)));
    found
}

fn place(context: &RuleContext<'_>, name: &str) -> Option<TextRange> {
    let Ast::AlterTable(alter) = context.ast else { return None };
    alter.commands.iter().find_map(|command| match &command.action {
        AlterTableAction::AlterColumnType { column, type_name, .. } if column.text == name => Some(type_name.range),
        _ => None,
    })
}
