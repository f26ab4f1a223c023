//! Rows that a table usually has, because the schema lists the values of a column, and that a new CHECK refuses.

use super::counterexample::{Constants, Row, as_sql, value_in};
use crate::builtin::oid;
use crate::catalog::{Catalog, Column, Constraint, ConstraintKind, Held, Relation, TypeKind};
use crate::effect::{Demand, Listed, RowDemand, UsualRows};
use crate::execute::Executor;
use crate::expression::Value;
use pgvet_syntax::ast::{Expr, ExprKind, Literal};
use smol_str::SmolStr;

/// How many columns of a condition are tried.
const MOST_COLUMNS: usize = 3;
/// How many rows are tried.
const MOST_ROWS: usize = 4096;
/// A text that no list contains.
const UNLISTED: &str = "\u{1}unlisted";

/// A value that rows have in a column.
#[derive(Clone)]
struct Usual {
    value: Value,
    /// `None` if all rows have it.
    listed: Option<Listed>,
}

impl Executor<'_> {
    /// Returns the rows that a table usually has, and that do not meet a CHECK: all of them, or those with a listed value
    /// beside a column that has the same value in all rows, or with a value that only a dropped CHECK listed.
    pub(super) fn usual_rows(&self, demand: &RowDemand, before: &Catalog) -> Option<UsualRows> {
        let Demand::Check { constraint, .. } = &demand.demand else { return None };
        let relation = self.catalog.get_relation(demand.relation.oid)?;
        let old = before.get_relation(demand.relation.oid)?;
        let added = relation.constraint(constraint)?;
        let ConstraintKind::Check { expression, columns } = &added.kind else { return None };
        if self.has_placeholders || columns.is_empty() || columns.len() > MOST_COLUMNS {
            return None;
        }
        let before_it = old.constraints.iter().filter(|check| check.holds()).map(|check| &**check);
        let is_kept = |check: &&Constraint| {
            check.name != *constraint && relation.constraint(&check.name).is_some_and(|found| found.valid)
        };
        let (kept, dropped): (Vec<&Constraint>, Vec<&Constraint>) = before_it.partition(is_kept);
        let dropped = dropped.into_iter().chain(self.dropped_by_deployment(old)).collect();
        let lists = Lists { executor: self, kept, dropped };
        let usual = |column: &SmolStr| lists.of(relation, relation.column(column)?);
        let usual: Option<Vec<Vec<Usual>>> = columns.iter().map(usual).collect();
        let usual = usual?;
        if usual.iter().map(Vec::len).product::<usize>() > MOST_ROWS {
            return None;
        }
        let condition = self.without_enum_casts(expression);
        rows(columns, &usual).into_iter().find_map(|row| {
            let values: Row = row.iter().map(|(column, usual)| (column.clone(), usual.value.clone())).collect();
            let is_refused = value_in(&condition, &values) == Some(Value::Boolean(false));
            (is_refused && lists.allow(&values)).then(|| described(&row)).flatten()
        })
    }

    /// Labels of enums as plain texts.
    fn without_enum_casts(&self, expression: &Expr) -> Expr {
        let mut plain = expression.clone();
        self.remove_enum_casts(&mut plain);
        plain
    }

    fn remove_enum_casts(&self, expression: &mut Expr) {
        expression.for_each_child_mut(&mut |child| self.remove_enum_casts(child));
        if let ExprKind::Cast { operand, target } = &expression.kind
            && matches!(operand.kind, ExprKind::Literal(Literal::String(_)) | ExprKind::Array(_))
        {
            let cast_to = self.with_analyzer(|analyzer| {
                let resolved = analyzer.resolve_type(target);
                analyzer.element_type(resolved.oid).unwrap_or(resolved.oid)
            });
            if self.is_enum(cast_to) {
                *expression = (**operand).clone();
            }
        }
    }
}

/// What lists the values of columns.
struct Lists<'a, 'e> {
    executor: &'a Executor<'e>,
    /// Valid CHECKs that stay.
    kept: Vec<&'a Constraint>,
    /// Those that the deployment drops.
    dropped: Vec<&'a Constraint>,
}

impl Lists<'_, '_> {
    /// The values of a column; `None` if nothing lists them.
    fn of(&self, relation: &Relation, column: &Column) -> Option<Vec<Usual>> {
        let always = |value| Some(vec![Usual { value, listed: None }]);
        match self.executor.held_here(relation, &column.name) {
            Some(Held::Null) => return always(Value::Null),
            Some(Held::Value(value)) => return always(value_in(value, &Vec::new())?),
            None if column.added_in.is_some() && column.added_in == self.executor.deployment => return None,
            None => {}
        }
        let dropped = self.dropped.iter().map(|check| (*check, Listed::ByDropped(check.name.clone())));
        let kept = self.kept.iter().map(|check| (*check, Listed::ByCheck(check.name.clone())));
        let by_check = dropped.chain(kept).find_map(|(check, listed)| {
            let values = self.listed_by(check, &column.name)?;
            Some(values.into_iter().map(|value| Usual { value, listed: Some(listed.clone()) }).collect())
        });
        by_check.or_else(|| self.of_type(column))
    }

    fn of_type(&self, column: &Column) -> Option<Vec<Usual>> {
        let usual = |value, listed: &Listed| Usual { value, listed: Some(listed.clone()) };
        if column.sql_type.oid.0 == oid::BOOL {
            return Some([true, false].map(|value| usual(Value::Boolean(value), &Listed::ByBoolean)).into());
        }
        let TypeKind::Enum { labels } = &self.executor.catalog.get_type(column.sql_type.oid)?.kind else { return None };
        // Rows with a label that ALTER TYPE has added may still be to come.
        let labels = labels.iter().filter(|label| label.added_in.is_none());
        Some(labels.map(|label| usual(Value::Text(label.label.clone()), &Listed::ByEnum)).collect())
    }

    /// The constants that a CHECK on one column allows, if it allows no others.
    fn listed_by(&self, check: &Constraint, column: &SmolStr) -> Option<Vec<Value>> {
        let ConstraintKind::Check { expression, columns } = &check.kind else { return None };
        if columns.as_slice() != std::slice::from_ref(column) {
            return None;
        }
        let condition = self.executor.without_enum_casts(expression);
        let result = |value: &Value| value_in(&condition, &vec![(column.clone(), value.clone())]);
        let mut constants = Constants::default();
        constants.collect(&condition);
        let others = [Value::Text(UNLISTED.into()), Value::Integer(i128::from(i64::MAX))];
        let texts = constants.texts.into_iter().map(Value::Text);
        let values: Vec<Value> = texts.chain(constants.integers.into_iter().map(Value::Integer)).collect();
        let other = if values.iter().any(|value| matches!(value, Value::Text(_))) { &others[0] } else { &others[1] };
        let is_allowed = |value: &Value| result(value) == Some(Value::Boolean(true));
        let values: Vec<Value> = values.into_iter().filter(is_allowed).collect();
        (!values.is_empty() && result(other) == Some(Value::Boolean(false))).then_some(values)
    }

    /// Whether the constraints so far allow a row with these values.
    fn allow(&self, row: &Row) -> bool {
        let is_known = |columns: &[SmolStr]| columns.iter().all(|column| row.iter().any(|(name, _)| name == column));
        self.kept.iter().chain(&self.dropped).all(|check| match &check.kind {
            ConstraintKind::Check { expression, columns } if is_known(columns) => {
                let condition = self.executor.without_enum_casts(expression);
                matches!(value_in(&condition, row), Some(Value::Null | Value::Boolean(true)))
            }
            _ => true,
        })
    }
}

/// All combinations of the values of columns.
fn rows(columns: &[SmolStr], usual: &[Vec<Usual>]) -> Vec<Vec<(SmolStr, Usual)>> {
    let mut rows: Vec<Vec<(SmolStr, Usual)>> = vec![Vec::new()];
    for (column, values) in std::iter::zip(columns, usual) {
        let longer = |row: &Vec<(SmolStr, Usual)>| {
            let with = |value: &Usual| [row.as_slice(), &[(column.clone(), value.clone())]].concat();
            values.iter().map(with).collect::<Vec<_>>()
        };
        rows = rows.iter().flat_map(longer).collect();
    }
    rows
}

/// The rows in the terms of their first listed value. Without a column that has the same value in all rows, the author of
/// a CHECK may know which combinations exist, unless a list loses a value.
fn described(row: &[(SmolStr, Usual)]) -> Option<UsualRows> {
    let listed = row.iter().find_map(|(column, usual)| Some((column, &usual.value, usual.listed.as_ref()?)));
    let Some((column, value, listed)) = listed else { return Some(UsualRows::All) };
    let has_held = row.iter().any(|(_, usual)| usual.listed.is_none());
    let is_narrower = row.len() == 1 && matches!(listed, Listed::ByDropped(_));
    (has_held || is_narrower).then(|| UsualRows::With {
        column: column.clone(),
        value: as_sql(value),
        listed: listed.clone(),
    })
}
