//! Updates whose new keys collide with those of rows that the statement has yet to change.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::conflict::unique::{UniqueIndex, unique_indexes};
use crate::rules::text::{identifier, sql_name};
use pgvet_model::effect::{DataChange, DataChangeKind};
use pgvet_syntax::ast::{Assignment, Ast, Expr, ExprKind, Literal, OperatorForm, Update};
use smol_str::SmolStr;

declare_rule! {
    /// An `UPDATE` that adds a number to a column of a unique key, or subtracts a number from it, such as
    /// `SET position = position + 1`.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL checks a unique index after each row, and not at the end of the statement.
    /// `SET position = position + 1` gives the first row the position that the second row still has, so the statement
    /// fails with a duplicate key error. Whether it fails depends on the order in which PostgreSQL reads the rows, so
    /// the statement may succeed in a test.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE items (id bigint PRIMARY KEY, list_id bigint, position int, UNIQUE (list_id, position));
    /// -- migration:
    /// UPDATE items SET position = position + 1 WHERE list_id = 7;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE items (
    ///     id bigint PRIMARY KEY, list_id bigint, position int, UNIQUE (list_id, position) DEFERRABLE
    /// );
    /// -- migration:
    /// UPDATE items SET position = position + 1 WHERE list_id = 7;
    /// ```
    ///
    /// PostgreSQL checks a deferrable constraint at the end of the statement, even if it is `INITIALLY IMMEDIATE`,
    /// which is the default.
    ///
    /// ## When it is not reported
    ///
    /// - deferrable constraints
    /// - an `UPDATE` of at most one row
    /// - a statement that also changes another column of the key
    ///
    /// ## Confidence
    ///
    /// The confidence is `likely` for `+ 1`, because PostgreSQL usually reads rows in the order in which they were
    /// inserted, and the numbers are usually consecutive. The confidence is `possible` for other amounts, and for
    /// `- 1`, which succeeds in that order.
    ///
    /// ## Other linters
    ///
    /// No other known linter reports these updates.
    "update-collides-with-itself", Data, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::Update(update) = context.ast else { return };
    if context.effects.fails.is_some() {
        return;
    }
    let own = context.effects.data_changes.iter();
    let mut own = own.filter(|change| change.kind == DataChangeKind::Update && !change.by_trigger);
    let Some(change) = own.find(|change| change.range == update.keyword) else { return };
    let has_rows = change.relation.visibility.may_have_rows();
    if !has_rows || change.rows.bound().is_some_and(|rows| rows < 2) {
        return;
    }
    let Some(table) = context.before.get_relation(change.relation.oid) else { return };
    for assignment in &update.assignments {
        let Some(amount) = amount(assignment) else { continue };
        let mut indexes = unique_indexes(context.before, table).into_iter();
        if let Some(index) = indexes.find(|index| is_moved(index, update, &assignment.column.text)) {
            report(context, reporter, change, assignment, amount, &index);
        }
    }
}

/// By how much an assignment moves the old value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Amount {
    OneUp,
    Other,
}

fn amount(assignment: &Assignment) -> Option<Amount> {
    let ExprKind::Operator { operator, form: OperatorForm::Plain, operands, .. } = &assignment.value.kind else {
        return None;
    };
    let column = &assignment.column.text;
    let is_own = |expression: &Expr| matches!(&expression.kind, ExprKind::Column(path) if path.last() == Some(column));
    let by = match (operator.as_str(), operands.as_slice()) {
        ("+", [own, by] | [by, own]) | ("-", [own, by]) if is_own(own) => by,
        _ => return None,
    };
    let mut reads_row = false;
    by.walk(&mut |part| reads_row |= matches!(part.kind, ExprKind::Column(_) | ExprKind::Subquery { .. }));
    match &by.kind {
        _ if reads_row => None,
        ExprKind::Literal(Literal::Integer(0)) => None,
        ExprKind::Literal(Literal::Integer(1)) if operator == "+" => Some(Amount::OneUp),
        _ => Some(Amount::Other),
    }
}

/// Whether a unique index refuses a row at once whose column has the value of another row, and nothing else of its key
/// changes.
fn is_moved(index: &UniqueIndex<'_>, update: &Update, column: &SmolStr) -> bool {
    let Some(columns) = index.columns() else { return false };
    let is_deferrable = index.constraint.is_some_and(|constraint| constraint.deferrable);
    let changes_other = || {
        let mut others = update.assignments.iter().map(|assignment| &assignment.column.text);
        others.any(|other| other != column && columns.contains(other))
    };
    !is_deferrable && columns.contains(column) && !changes_other()
}

fn report(
    context: &RuleContext<'_>,
    reporter: &mut Reporter<'_>,
    change: &DataChange,
    assignment: &Assignment,
    amount: Amount,
    index: &UniqueIndex<'_>,
) {
    let (table, column) = (&change.relation.name, &assignment.column.text);
    let message = format!(
        "this fails with a duplicate key error on `{}` if a row of `{table}` gets the `{column}` of another row before \
         that row is updated",
        index.name
    );
    let name = sql_name(context, &change.relation);
    let help = match index.constraint {
        Some(constraint) => format!(
            "make the constraint deferrable, so that PostgreSQL checks it at the end of the statement (ON CONFLICT and \
             foreign keys cannot use a deferrable constraint):\n    ALTER TABLE {name} DROP CONSTRAINT \
             {constraint}, ADD CONSTRAINT {constraint} ...\n        DEFERRABLE;\nor first set \
             `{column}` to values that no row has, then set the new values in a second UPDATE",
            constraint = identifier(&constraint.name)
        ),
        None => format!("first set `{column}` to values that no row has, then set the new values in a second UPDATE"),
    };
    let doubt = match amount {
        Amount::OneUp => Assumption::NeighboursInOrder { table: table.clone() },
        Amount::Other => Assumption::ReadInOtherOrder { table: table.clone() },
    };
    reporter.report(assignment.column.range, message).relation(&change.relation).assuming(doubt).help(help).emit();
}
