//! What an INSERT puts into the keys of unique indexes.

use super::unique::{UniqueIndex, unique_indexes};
use crate::ast::{Expr, ExprKind, Insert, InsertSource, Literal, QueryBody};
use crate::builtin;
use crate::catalog::{Catalog, Relation, Volatility};
use smol_str::SmolStr;

/// Where the value of a column comes from, from the least to the most likely to be there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueSource {
    /// A sequence, `gen_random_uuid()` and the like: a new value each time.
    Generated,
    Null,
    /// Written in the statement.
    Constant,
    /// From a variable, a parameter or a table.
    Given,
}

/// An INSERT and its table.
#[derive(Clone, Copy)]
pub(super) struct Inserted<'a> {
    pub(super) insert: &'a Insert,
    pub(super) table: &'a Relation,
    /// Does a name stand for a value that was generated before?
    pub(super) is_fresh: &'a dyn Fn(&[SmolStr]) -> bool,
    /// Those that the same migration has run before.
    pub(super) earlier: &'a [&'a Insert],
}

/// A unique index that may refuse the row, with where its key comes from.
#[derive(Debug)]
pub(super) struct Refusal<'a> {
    pub(super) index: UniqueIndex<'a>,
    pub(super) source: ValueSource,
}

impl<'a> Inserted<'a> {
    /// The unique indexes that can refuse a row of this statement.
    pub(super) fn refusals(&self, catalog: &'a Catalog) -> Vec<Refusal<'a>> {
        let refusal = |index: UniqueIndex<'a>| {
            let source = self.key_source(catalog, &index);
            let refuses_null = index.index.nulls_not_distinct;
            let can_be_there = match source {
                ValueSource::Generated => false,
                ValueSource::Null => refuses_null,
                ValueSource::Constant | ValueSource::Given => true,
            };
            can_be_there.then_some(Refusal { index, source })
        };
        unique_indexes(catalog, self.table).into_iter().filter_map(refusal).collect()
    }

    /// A key is new if any part of it is, and it is constant if all of it is.
    fn key_source(&self, catalog: &'a Catalog, index: &UniqueIndex<'_>) -> ValueSource {
        let mut found = ValueSource::Constant;
        for element in index.index.elements.iter() {
            let source = if let Some(column) = element.key.as_column() {
                if self.refers_to_new_rows(catalog, column) {
                    return ValueSource::Generated;
                }
                self.column_source(column)
            } else {
                let mut columns = Vec::new();
                element.key.walk(&mut |part| columns.extend(part.as_column()));
                columns.into_iter().map(|column| self.column_source(column)).max().unwrap_or(ValueSource::Given)
            };
            match source {
                ValueSource::Generated => return ValueSource::Generated,
                ValueSource::Null => return ValueSource::Null,
                _ => found = found.max(source),
            }
        }
        found
    }

    /// Of several rows the one that is most likely there.
    pub(super) fn column_source(&self, column: &SmolStr) -> ValueSource {
        match self.values_of(column) {
            Values::Default => self.default_source(column),
            Values::Unknown => ValueSource::Given,
            Values::Rows(rows) => {
                rows.into_iter().map(|value| self.source(value, column)).max().unwrap_or(ValueSource::Generated)
            }
        }
    }

    /// The expressions that the statement gives to a column, one for each row.
    pub(super) fn values_of(&self, column: &SmolStr) -> Values<'a> {
        let InsertSource::Query(query) = &self.insert.source else { return Values::Default };
        let columns = &self.insert.columns;
        let position = if columns.is_empty() {
            self.table.columns.iter().position(|own| own.name == *column)
        } else {
            columns.iter().position(|name| name.text == *column)
        };
        let Some(position) = position else { return Values::Default };
        match &query.body {
            QueryBody::Values(rows) => {
                let values: Vec<&Expr> = rows.iter().filter_map(|row| row.get(position)).collect();
                if values.is_empty() { Values::Default } else { Values::Rows(values) }
            }
            QueryBody::Select(select) => {
                let has_star = select.targets.iter().any(|target| matches!(target.value.kind, ExprKind::Star(_)));
                match select.targets.get(position) {
                    Some(target) if !has_star => Values::Rows(vec![&target.value]),
                    None if !has_star => Values::Default,
                    _ => Values::Unknown,
                }
            }
            QueryBody::SetOperation { .. } => Values::Unknown,
        }
    }

    fn default_source(&self, column: &SmolStr) -> ValueSource {
        let Some(column) = self.table.column(column) else { return ValueSource::Given };
        if column.identity.is_some() {
            return ValueSource::Generated;
        }
        match (&column.default, &column.generated) {
            (_, Some(_)) => ValueSource::Given,
            (None, None) => ValueSource::Null,
            (Some(default), None) => match self.source(default, &column.name) {
                ValueSource::Given => ValueSource::Generated,
                source => source,
            },
        }
    }

    fn source(&self, value: &Expr, column: &SmolStr) -> ValueSource {
        match &value.kind {
            ExprKind::Default => self.default_source(column),
            ExprKind::Literal(Literal::Null) => ValueSource::Null,
            ExprKind::Literal(_) => ValueSource::Constant,
            ExprKind::SqlValue(word) if word.starts_with("current_") && !word.ends_with("timestamp") => {
                ValueSource::Given
            }
            ExprKind::SqlValue(_) => ValueSource::Generated,
            ExprKind::Column(path) if (self.is_fresh)(path) => ValueSource::Generated,
            ExprKind::Column(_) | ExprKind::Star(_) | ExprKind::Parameter(_) | ExprKind::Subquery { .. } => {
                ValueSource::Given
            }
            ExprKind::Call(call) if is_generator(&call.name, call.arguments.len()) => ValueSource::Generated,
            _ => {
                let mut sources = Vec::new();
                value.for_each_child(|child| sources.push(self.source(child, column)));
                if sources.contains(&ValueSource::Generated) {
                    return ValueSource::Generated;
                }
                sources.into_iter().max().map_or(ValueSource::Constant, |source| source.max(ValueSource::Constant))
            }
        }
    }
}

/// What an INSERT says about a column.
#[derive(Debug)]
pub(super) enum Values<'a> {
    Default,
    Rows(Vec<&'a Expr>),
    Unknown,
}

/// Does a function give a new value each time? One of the project that takes nothing is taken to do so.
pub(super) fn is_generator(name: &str, arguments: usize) -> bool {
    let known = builtin::functions(name);
    if known.is_empty() {
        return arguments == 0 || name.starts_with("uuid_generate") || name.contains("ulid") || name.contains("nanoid");
    }
    known.iter().all(|function| function.volatility == Volatility::Volatile)
        || matches!(name, "now" | "transaction_timestamp" | "statement_timestamp")
}
