//! Conditions that hold for every row, because of what all rows have in a column.

use super::{Joined, Owner};
use crate::catalog::{Column, Held, Oid, Relation};
use crate::effect::{Extent, Rows, RowsReason};
use crate::execute::Executor;
use crate::execute::routine::{Value, Variables};
use pgvet_syntax::ast::{Expr, ExprKind, OperatorForm};
use smol_str::SmolStr;

impl Joined<'_> {
    /// How many rows of a member meet a condition, if it excludes none or few.
    pub(super) fn left_by(&self, at: usize, condition: &Expr) -> Option<Rows> {
        let (truth, reasons) = self.decide_for_all(at, condition)?;
        match truth {
            Some(true) => Some(reasons.into_iter().reduce(Rows::or_less).unwrap_or(Rows::all(RowsReason::NoCondition))),
            _ => self.all_but_listed(at, condition),
        }
    }

    /// Returns why no row of a member meets a condition: it wants a column to be NULL that never is, or to have another
    /// value than the same deployment gave to all rows.
    pub(super) fn excluded_by(&self, at: usize, condition: &Expr) -> Option<RowsReason> {
        let (truth, reasons) = self.decide_for_all(at, condition)?;
        let [rows, ..] = reasons.as_slice() else { return None };
        let is_of_all = |rows: &Rows| rows.extent == Extent::All;
        (truth == Some(false) && reasons.iter().all(is_of_all)).then(|| rows.reason.clone())
    }

    /// What a condition is for every row, and what makes it so.
    fn decide_for_all(&self, at: usize, condition: &Expr) -> Option<(Option<bool>, Vec<Rows>)> {
        let relation = self.executor.catalog.relation(self.table(at)?);
        let columns = self.own_columns(at, condition)?;
        let mut values = Variables::default();
        let mut reasons = Vec::new();
        for path in columns {
            let column = path.last().and_then(|name| relation.column(name));
            let Some((value, rows)) = column.and_then(|column| self.executor.value_of_all(column)) else { continue };
            values.set(path.join(".").into(), Some(value));
            reasons.push(rows);
        }
        Some((self.executor.decide_for_row(values, condition), reasons))
    }

    /// The columns that a condition names, if all are of this member.
    fn own_columns<'c>(&self, at: usize, condition: &'c Expr) -> Option<Vec<&'c [SmolStr]>> {
        let (mut columns, mut is_own) = (Vec::new(), self.members[at].columns.is_empty());
        condition.walk(&mut |part| match &part.kind {
            ExprKind::Column(path) => {
                is_own &= self.owner(path) == Owner::Member(at);
                columns.push(path.as_slice());
            }
            ExprKind::Subquery { .. } => is_own = false,
            _ => {}
        });
        is_own.then_some(columns)
    }

    /// `id <> 1`, `id NOT IN (1, 2)`, of a unique column.
    fn all_but_listed(&self, at: usize, condition: &Expr) -> Option<Rows> {
        let ExprKind::Operator { operator, operands, form: OperatorForm::Plain | OperatorForm::In, .. } =
            &condition.kind
        else {
            return None;
        };
        let [tested, values @ ..] = operands.as_slice() else { return None };
        let ExprKind::Column(path) = &tested.kind else { return None };
        let column = path.last().filter(|_| self.owner(path) == Owner::Member(at))?;
        let is_listed = operator == "<>" && values.iter().all(|value| self.is_constant(value));
        let is_key = self.executor.is_unique_column(self.table(at)?, column);
        let reason = || RowsReason::AllButListed { column: column.clone() };
        (is_listed && is_key).then(|| Rows::new(Extent::Most, reason()))
    }
}

impl Executor<'_> {
    /// The value that all rows have in a column, and how sure that is: rows that were written since an earlier
    /// deployment may differ.
    fn value_of_all(&self, column: &Column) -> Option<(Value, Rows)> {
        let name = column.name.clone();
        if let Some(held) = &column.held {
            let since = if held.since.is_some() && held.since == self.deployment { Extent::All } else { Extent::Most };
            return Some(match &held.value {
                Held::Null => (Value::Null, Rows::new(since, RowsReason::NullSinceAdded { column: name })),
                Held::Value(value) => (self.value(value)?, Rows::new(since, RowsReason::SameValue { column: name })),
            });
        }
        column.not_null.then(|| (Value::Something, Rows::all(RowsReason::NeverNull { column: name })))
    }

    fn is_unique_column(&self, table: Oid, column: &SmolStr) -> bool {
        let relation: &Relation = self.catalog.relation(table);
        let mut indexes = relation.unique_indexes.iter().filter_map(|oid| self.catalog.relation(*oid).index());
        relation.column(column).is_some_and(|column| column.not_null)
            && indexes.any(|index| {
                index.valid
                    && index.predicate.is_none()
                    && index.plain_columns().as_deref() == Some(std::slice::from_ref(column))
            })
    }

    /// An UPDATE has given these columns values: `None` for one that differs from row to row.
    pub(in crate::execute::query) fn hold(
        &mut self,
        table: Oid,
        columns: &[SmolStr],
        value: impl Fn(&SmolStr) -> Option<Held>,
    ) {
        let since = self.deployment;
        let held = |value| crate::catalog::HeldByAll { value, since };
        let changes: Vec<(SmolStr, Option<crate::catalog::HeldByAll>)> = columns
            .iter()
            .filter_map(|name| {
                let column = self.catalog.relation(table).column(name)?;
                let next = value(name).map(held);
                (column.held.is_some() || next.is_some()).then(|| (name.clone(), next))
            })
            .collect();
        for (name, held) in changes {
            if let Some(column) = self.catalog.relation_mut(table).column_mut(&name) {
                column.held = held;
            }
        }
    }
}
