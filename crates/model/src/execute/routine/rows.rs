//! Queries whose rows are known before they run: lists of constants, and questions to the system catalogs.

use super::value::Value;
use crate::execute::Executor;
use pgvet_syntax::ast::{Alias, Expr, ExprKind, FromItem, Query, QueryBody, Select, SetOperator, Target};
use smol_str::{SmolStr, ToSmolStr};

/// Columns by name.
pub(super) type Row = Vec<(SmolStr, Option<Value>)>;

/// Longer lists are not followed.
pub(super) const MAX_ROWS: usize = 1000;

impl Executor<'_> {
    /// The only value of a query with one row and one column; NULL where there is no row.
    pub(super) fn scalar(&self, query: &Query) -> Option<Value> {
        let row = self.first_row(query)?;
        row.into_iter().next().map_or(Some(Value::Null), |(_, value)| value)
    }

    /// The first row of a query; empty where there is none.
    pub(super) fn first_row(&self, query: &Query) -> Option<Row> {
        if let QueryBody::Select(select) = &query.body
            && !select.from.is_empty()
            && let Some(found) = self.catalog_rows(query)
        {
            let one = |target: &Target| (SmolStr::default(), self.catalog_value(target, found));
            let has_row = found || select.targets.iter().any(|target| aggregate(&target.value).is_some());
            return Some(if has_row { select.targets.iter().map(one).collect() } else { Row::new() });
        }
        if let Some(row) = self.counts(query) {
            return Some(row);
        }
        Some(self.constant_rows(query)?.into_iter().next().unwrap_or_default())
    }

    /// An output column of a query of the system catalogs that finds something, or nothing.
    fn catalog_value(&self, target: &Target, found: bool) -> Option<Value> {
        match (aggregate(&target.value), found) {
            (Some("count"), true) => Some(Value::Positive),
            (Some("count"), false) => Some(Value::Text("0".to_owned())),
            (Some(_), true) => None,
            (Some(_), false) => Some(Value::Null),
            (None, _) => match &target.value.kind {
                // Columns that may be null in a row that exists.
                ExprKind::Column(path) => {
                    let name = path.last()?;
                    let key = ["oid", "relname", "conname", "typname", "table_name", "column_name", "constraint_name"];
                    key.contains(&name.as_str()).then_some(Value::Something)
                }
                _ => self.value(&target.value),
            },
        }
    }

    /// The rows of a query of constants, at most [`MAX_ROWS`].
    pub(super) fn constant_rows(&self, query: &Query) -> Option<Vec<Row>> {
        if query.with.is_some() || query.limit.is_some() || query.offset.is_some() {
            return None;
        }
        let rows = match &query.body {
            QueryBody::Values(rows) => rows.iter().map(|row| self.values_row(row)).collect(),
            QueryBody::SetOperation { operator: SetOperator::Union, left, right, .. } => {
                let mut rows = self.constant_rows(left)?;
                rows.extend(self.constant_rows(right)?);
                rows
            }
            QueryBody::SetOperation { .. } => return None,
            QueryBody::Select(select) => self.select_rows(select)?,
        };
        (rows.len() <= MAX_ROWS).then_some(rows)
    }

    fn values_row(&self, row: &[Expr]) -> Row {
        row.iter().enumerate().map(|(at, one)| (format!("column{}", at + 1).to_smolstr(), self.value(one))).collect()
    }

    fn select_rows(&self, select: &Select) -> Option<Vec<Row>> {
        if select.distinct.is_some() || !select.group_by.is_empty() || select.having.is_some() {
            return None;
        }
        match (select.from.as_slice(), select.filter.as_ref()) {
            ([], filter) => {
                if filter.is_some_and(|filter| self.decide(filter) == Some(false)) {
                    return Some(Vec::new());
                }
                if filter.is_some_and(|filter| self.decide(filter).is_none()) {
                    return None;
                }
                if let [target] = select.targets.as_slice()
                    && let Some(list) = self.set_returned(&target.value)
                {
                    let name = output_name(target);
                    return Some(list?.into_iter().map(|value| vec![(name.clone(), value)]).collect());
                }
                Some(vec![
                    select.targets.iter().map(|target| (output_name(target), self.value(&target.value))).collect(),
                ])
            }
            ([item], None) => {
                let rows = self.item_rows(item)?;
                Some(rows.into_iter().map(|row| pick(&row, &select.targets)).collect())
            }
            _ => None,
        }
    }

    fn item_rows(&self, item: &FromItem) -> Option<Vec<Row>> {
        let (mut rows, alias) = match item {
            FromItem::Subquery { query, alias, .. } => (self.constant_rows(query)?, alias),
            FromItem::Function { calls, alias, .. } => {
                let [call] = calls.as_slice() else { return None };
                let name = match (&call.kind, alias) {
                    (_, Some(alias)) => alias.name.clone(),
                    (ExprKind::Call(call), None) => call.name.clone(),
                    _ => return None,
                };
                let list = self.set_returned(call)??;
                (list.into_iter().map(|value| vec![(name.clone(), value)]).collect(), alias)
            }
            _ => return None,
        };
        rename(&mut rows, alias.as_ref());
        Some(rows)
    }

    /// The rows of `unnest(ARRAY[...])` and `generate_series(1, 3)`. The outer `None`: it is another function.
    #[expect(
        clippy::option_option,
        reason = "no function that returns a set, and one whose rows are not known, differ"
    )]
    fn set_returned(&self, expr: &Expr) -> Option<Option<Vec<Option<Value>>>> {
        let ExprKind::Call(call) = &expr.kind else { return None };
        let argument = |at: usize| call.arguments.get(at).and_then(|argument| self.value(&argument.value));
        match call.name.as_str() {
            "unnest" => Some(match argument(0) {
                Some(Value::List(list)) if call.arguments.len() == 1 => Some(list),
                _ => None,
            }),
            "generate_series" => {
                let (from, to) =
                    (argument(0).and_then(|one| one.as_integer()), argument(1).and_then(|one| one.as_integer()));
                let step =
                    if call.arguments.len() > 2 { argument(2).and_then(|one| one.as_integer()) } else { Some(1) };
                let numbers = from.zip(to).zip(step).and_then(|((from, to), step)| series(from, to, step));
                Some(numbers.map(|list| list.into_iter().map(|one| Some(Value::Text(one.to_string()))).collect()))
            }
            "regexp_split_to_table"
            | "string_to_table"
            | "jsonb_array_elements"
            | "jsonb_array_elements_text"
            | "json_array_elements"
            | "json_array_elements_text"
            | "jsonb_each"
            | "json_each" => Some(None),
            _ => None,
        }
    }
}

/// Whether a query is a list of more constants than are followed.
pub(super) fn is_long_list(query: &Query) -> bool {
    matches!(&query.body, QueryBody::Values(rows) if rows.len() > MAX_ROWS)
}

/// The numbers from one to another, unless there are too many.
pub(super) fn series(from: i64, to: i64, step: i64) -> Option<Vec<i64>> {
    let mut numbers = Vec::new();
    let mut next = from;
    if step == 0 {
        return None;
    }
    while if step > 0 { next <= to } else { next >= to } {
        if numbers.len() == MAX_ROWS {
            return None;
        }
        numbers.push(next);
        next = next.checked_add(step)?;
    }
    Some(numbers)
}

/// The name of an aggregate that an expression is.
pub(super) fn aggregate(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Call(call) => {
            let known = ["count", "max", "min", "sum", "bool_or", "bool_and", "every", "string_agg", "array_agg"];
            known.contains(&call.name.as_str()).then_some(call.name.as_str())
        }
        ExprKind::Cast { operand, .. } => aggregate(operand),
        _ => None,
    }
}

pub(super) fn output_name(target: &Target) -> SmolStr {
    match (&target.alias, &target.value.kind) {
        (Some(alias), _) => alias.clone(),
        (None, ExprKind::Call(call)) => call.name.clone(),
        (None, ExprKind::Column(path)) => path.last().cloned().unwrap_or_default(),
        _ => SmolStr::new_static("?column?"),
    }
}

/// The output columns of a row: all of it, or columns of it by name.
fn pick(row: &Row, targets: &[Target]) -> Row {
    let mut picked = Row::new();
    for target in targets {
        match &target.value.kind {
            ExprKind::Star(_) => picked.extend(row.iter().cloned()),
            ExprKind::Column(path) => {
                let value = row.iter().find(|(name, _)| Some(name) == path.last()).and_then(|(_, value)| value.clone());
                picked.push((output_name(target), value));
            }
            _ => picked.push((output_name(target), None)),
        }
    }
    picked
}

fn rename(rows: &mut [Row], alias: Option<&Alias>) {
    for row in rows {
        for (column, name) in row.iter_mut().zip(alias.iter().flat_map(|alias| &alias.columns)) {
            column.0 = name.clone();
        }
    }
}
