//! The values that an INSERT puts into the keys of unique indexes.

use super::unique::{UniqueIndex, unique_indexes};
use pgvet_model::builtin::{self, Volatility};
use pgvet_model::catalog::{Catalog, Relation};
use pgvet_syntax::ast::{Expr, ExprKind, FunctionCall, Insert, InsertSource, Literal, QueryBody};
use smol_str::SmolStr;

/// Where the value of a column comes from, from the least to the most likely duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ValueSource {
    /// A sequence, `gen_random_uuid()` or another generator: a new value each time.
    Generated,
    Null,
    /// A function that is not known; it may give a new value each time.
    MayBeGenerated,
    /// Written in the statement.
    Constant,
    /// From a variable, a parameter or a table.
    Given,
}

/// An INSERT and its table.
#[derive(Clone, Copy)]
pub(crate) struct Inserted<'a> {
    pub(crate) insert: &'a Insert,
    pub(crate) table: &'a Relation,
    /// Where the value of a variable comes from, if it was generated.
    pub(crate) variable: &'a dyn Fn(&[SmolStr]) -> Option<ValueSource>,
    /// Returns those that the same migration has run before, into tables of a name.
    pub(crate) earlier: &'a dyn Fn(&str) -> Vec<&'a Insert>,
}

/// A unique index that may refuse the row, with where its key comes from.
#[derive(Debug)]
pub(crate) struct Refusal<'a> {
    pub(crate) index: UniqueIndex<'a>,
    pub(crate) source: ValueSource,
}

impl<'a> Inserted<'a> {
    /// The unique indexes that can refuse a row of this statement.
    pub(crate) fn refusals(&self, catalog: &'a Catalog) -> Vec<Refusal<'a>> {
        let refusal = |index: UniqueIndex<'a>| {
            let source = self.key_source(catalog, &index);
            let refuses_null = index.index.nulls_not_distinct;
            let can_be_there = match source {
                ValueSource::Generated => false,
                ValueSource::Null => refuses_null,
                ValueSource::MayBeGenerated | ValueSource::Constant | ValueSource::Given => true,
            };
            can_be_there.then_some(Refusal { index, source })
        };
        unique_indexes(catalog, self.table).into_iter().filter_map(refusal).collect()
    }

    /// A key is new if any part of it is, and it is constant if all of it is.
    fn key_source(&self, catalog: &'a Catalog, index: &UniqueIndex<'_>) -> ValueSource {
        let mut found = ValueSource::Constant;
        let mut may_be_generated = false;
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
                ValueSource::MayBeGenerated => may_be_generated = true,
                ValueSource::Constant | ValueSource::Given => found = found.max(source),
            }
        }
        if may_be_generated { ValueSource::MayBeGenerated } else { found }
    }

    /// Whether the table generates a key, like tables into which the application inserts.
    pub(crate) fn generates_key(&self, catalog: &Catalog) -> bool {
        let mut keys =
            unique_indexes(catalog, self.table).into_iter().flat_map(|unique| unique.columns().unwrap_or_default());
        keys.any(|column| self.default_source(&column) == ValueSource::Generated)
    }

    /// Of several rows, the most likely duplicate.
    pub(crate) fn column_source(&self, column: &SmolStr) -> ValueSource {
        match self.values_of(column) {
            Values::Default => self.default_source(column),
            Values::Unknown => ValueSource::Given,
            Values::Rows(rows) => {
                rows.into_iter().map(|value| self.source(value, column)).max().unwrap_or(ValueSource::Generated)
            }
        }
    }

    /// The expressions that the statement gives to a column, one for each row.
    pub(crate) fn values_of(&self, column: &SmolStr) -> Values<'a> {
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

    /// The source of a column that the statement does not set. An unknown function in a default of a key generates
    /// keys.
    pub(crate) fn default_source(&self, column: &SmolStr) -> ValueSource {
        let Some(column) = self.table.column(column) else { return ValueSource::Given };
        if column.identity.is_some() {
            return ValueSource::Generated;
        }
        match (&column.default, &column.generated) {
            (_, Some(_)) => ValueSource::Given,
            (None, None) => ValueSource::Null,
            (Some(default), None) => match self.source(default, &column.name) {
                ValueSource::Given | ValueSource::MayBeGenerated => ValueSource::Generated,
                source => source,
            },
        }
    }

    fn source(&self, value: &Expr, column: &SmolStr) -> ValueSource {
        match &value.kind {
            ExprKind::Default => self.default_source(column),
            ExprKind::Literal(Literal::Null) => ValueSource::Null,
            ExprKind::Literal(_) => ValueSource::Constant,
            ExprKind::SqlValue(word, _) if word.starts_with("current_") && !word.ends_with("timestamp") => {
                ValueSource::Given
            }
            ExprKind::SqlValue(..) => ValueSource::Generated,
            ExprKind::Column(path) => (self.variable)(path).unwrap_or(ValueSource::Given),
            ExprKind::Star(_) | ExprKind::Parameter(_) | ExprKind::Subquery { .. } => ValueSource::Given,
            _ => {
                let mut sources = Vec::new();
                if let ExprKind::Call(call) = &value.kind {
                    sources.extend(generator(call));
                }
                value.for_each_child(|child| sources.push(self.source(child, column)));
                for new in [ValueSource::Generated, ValueSource::MayBeGenerated] {
                    if sources.contains(&new) {
                        return new;
                    }
                }
                sources.into_iter().max().map_or(ValueSource::Constant, |source| source.max(ValueSource::Constant))
            }
        }
    }
}

/// What an INSERT says about a column.
#[derive(Debug)]
pub(crate) enum Values<'a> {
    Default,
    Rows(Vec<&'a Expr>),
    Unknown,
}

/// Where the value of a call comes from, unless from its arguments.
///
/// Source: PostgreSQL 18, `pg_proc.provolatile`; the value of `now()` is that of the transaction.
pub(crate) fn generator(call: &FunctionCall) -> Option<ValueSource> {
    let known = builtin::functions_called(call);
    if !known.is_empty() {
        let is_time = matches!(call.name.as_str(), "now" | "transaction_timestamp" | "statement_timestamp");
        let is_new = is_time || known.iter().all(|function| function.volatility == Volatility::Volatile);
        return is_new.then_some(ValueSource::Generated);
    }
    match builtin::extension_function_volatility(&call.name) {
        Some(Volatility::Volatile) => Some(ValueSource::Generated),
        Some(_) => None,
        None => Some(ValueSource::MayBeGenerated),
    }
}
