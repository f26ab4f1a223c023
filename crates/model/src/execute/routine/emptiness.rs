//! Tables that code has found empty: it raises an error if they have rows.
//!
//! `IF (SELECT count(*) FROM t) > 0 THEN RAISE EXCEPTION ...`.

use super::Code;
use super::rows::{Row, output_name};
use super::value::Value;
use crate::catalog::{EmptiedBy, Oid};
use crate::execute::Executor;
use pgvet_syntax::ast::{Expr, ExprKind, FromItem, OperatorForm, Query, QueryBody, Select, SubqueryKind};
use pgvet_syntax::plpgsql::{Conditional, RaiseLevel, Statement, StatementKind};
use smol_str::SmolStr;

impl Executor<'_> {
    /// The tables that have no rows if an IF does not raise an error.
    pub(super) fn empty_after(&self, conditional: &Conditional, code: &Code) -> Vec<Oid> {
        let condition = |branch: &pgvet_syntax::plpgsql::Branch| code.expression(&branch.condition);
        let refusing = conditional.branches.iter().take_while(|branch| raises(&branch.statements));
        let mut found: Vec<Oid> =
            refusing.filter_map(condition).flat_map(|condition| self.empty_if(&condition, false)).collect();
        if let ([branch], Some(otherwise)) = (conditional.branches.as_slice(), &conditional.otherwise)
            && raises(&otherwise.statements)
        {
            found.extend(condition(branch).iter().flat_map(|condition| self.empty_if(condition, true)));
        }
        found
    }

    pub(super) fn note_found_empty(&mut self, tables: Vec<Oid>) {
        for table in tables {
            if self.emptied(self.catalog.relation(table)).is_none() {
                self.note_emptied(table, EmptiedBy::Nobody);
            }
        }
    }

    /// The tables that have no rows if a condition has this truth.
    fn empty_if(&self, condition: &Expr, truth: bool) -> Vec<Oid> {
        match &condition.kind {
            ExprKind::Not(inner) => self.empty_if(inner, !truth),
            ExprKind::Or(parts) if !truth => parts.iter().flat_map(|part| self.empty_if(part, false)).collect(),
            ExprKind::And(parts) if truth => parts.iter().flat_map(|part| self.empty_if(part, true)).collect(),
            ExprKind::Subquery { kind: SubqueryKind::Exists, query, .. } if !truth => {
                self.plain_table(query).map(|(table, _)| table).into_iter().collect()
            }
            ExprKind::Operator { operator, form: OperatorForm::Plain, operands, .. } => {
                let [left, right] = operands.as_slice() else { return Vec::new() };
                let is_none =
                    |table, operator, number: Option<i64>| means_none(operator, number?, truth).then_some(table);
                let found = match (self.value(left), self.value(right)) {
                    (Some(Value::RowsOf(table)), Some(number)) => is_none(table, operator, number.as_integer()),
                    (Some(number), Some(Value::RowsOf(table))) => is_none(table, turned(operator), number.as_integer()),
                    _ => None,
                };
                found.into_iter().collect()
            }
            _ => match self.value(condition) {
                Some(Value::HasRows(table)) if !truth => vec![table],
                _ => Vec::new(),
            },
        }
    }

    /// The row of `SELECT count(*) FROM t`.
    pub(super) fn counts(&self, query: &Query) -> Option<Row> {
        let (table, select) = self.plain_table(query).filter(|_| query.limit.is_none())?;
        let [target] = select.targets.as_slice() else { return None };
        counts_rows(&target.value).then(|| vec![(output_name(target), Some(Value::RowsOf(table)))])
    }

    /// What FOUND says after a query of all rows of a table.
    pub(super) fn found_rows(&self, query: &Query) -> Option<Value> {
        let (table, select) = self.plain_table(query)?;
        let has_own_rows = select.targets.iter().all(|target| super::rows::aggregate(&target.value).is_none());
        has_own_rows.then_some(Value::HasRows(table))
    }

    /// The table of a query that has a row for each of its rows, or one for all of them.
    fn plain_table<'q>(&self, query: &'q Query) -> Option<(Oid, &'q Select)> {
        let QueryBody::Select(select) = &query.body else { return None };
        let [FromItem::Relation(from)] = select.from.as_slice() else { return None };
        let is_plain = query.with.is_none()
            && query.offset.is_none()
            && select.filter.is_none()
            && select.group_by.is_empty()
            && select.having.is_none()
            && query.omitted.is_none()
            && !from.only;
        let table = self.find(&from.name).filter(|_| is_plain)?;
        self.catalog.relation(table).kind.is_table().then_some((table, select))
    }
}

/// Whether statements end with an error, however they begin.
fn raises(statements: &[Statement]) -> bool {
    let goes_on = |statement: &Statement| {
        matches!(statement.kind, StatementKind::Raise(_) | StatementKind::Assign(_) | StatementKind::Perform(_))
    };
    let is_error = |statement: &Statement| matches!(&statement.kind, StatementKind::Raise(raise) if raise.level == RaiseLevel::Exception);
    let first = statements.iter().find(|statement| is_error(statement) || !goes_on(statement));
    first.is_some_and(is_error)
}

/// Whether a number of rows is 0 if its comparison with another number has this truth.
fn means_none(operator: &str, number: i64, truth: bool) -> bool {
    match (operator, truth) {
        (">" | "<>" | "!=", false) | ("=" | "<=", true) => number == 0,
        (">=", false) | ("<", true) => number == 1,
        _ => false,
    }
}

/// The operator for operands in the other order.
fn turned(operator: &str) -> &str {
    match operator {
        "<" => ">",
        ">" => "<",
        "<=" => ">=",
        ">=" => "<=",
        other => other,
    }
}

/// `count(*)` or `count(1)`.
fn counts_rows(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Cast { operand, .. } => counts_rows(operand),
        ExprKind::Call(call) => {
            let is_constant = |value: &Expr| matches!(value.kind, ExprKind::Literal(_));
            let of_all = call.star || call.arguments.iter().all(|argument| is_constant(&argument.value));
            call.name == SmolStr::new_static("count") && of_all && call.filter.is_none() && call.window.is_none()
        }
        _ => false,
    }
}
