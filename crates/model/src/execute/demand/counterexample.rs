//! A row that the schema before a statement allows, and that makes the statement fail.
//!
//! What cannot be told, such as what a trigger does with a new row, leads to no row.

use crate::builtin::oid;
use crate::catalog::{Catalog, Constraint, ConstraintKind, Oid, Relation, SqlType, TypeKind};
use crate::effect::{Conversion, Counterexample, Demand, DomainValues, PartitionRows, RowDemand, Using};
use crate::execute::Executor;
use crate::execute::expressions::{columns_of, mentions};
use crate::expression::{Value, evaluate, precision_and_scale};
use pgvet_syntax::ast::{Expr, ExprKind, Literal, PartitionBound};
use pgvet_syntax::deparse;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;
use std::hash::Hash;

/// How many columns of a condition are tried.
const MOST_COLUMNS: usize = 3;
/// How many parts of conditions are evaluated in search of a row: conditions with many constants have many candidates.
const MOST_EVALUATIONS: usize = 1 << 20;
/// How long a text may be to be shown.
const LONGEST_TEXT: usize = 40;

const NOT_NULL_VIOLATION: &str = "23502";
const FOREIGN_KEY_VIOLATION: &str = "23503";
const UNIQUE_VIOLATION: &str = "23505";
const CHECK_VIOLATION: &str = "23514";
const EXCLUSION_VIOLATION: &str = "23P01";

/// A table as it is before the statement.
struct OldTable<'a> {
    catalog: &'a Catalog,
    relation: &'a Relation,
    /// CHECKs that the transaction has dropped. Its locks let nobody write, so that existing rows still meet them.
    dropped: Vec<&'a Expr>,
}

pub(super) type Row = Vec<(SmolStr, Value)>;

impl Executor<'_> {
    /// Returns a row that does not meet the demand, or two that do not together.
    pub(super) fn counterexample(&self, demand: &RowDemand, before: &Catalog) -> Option<Counterexample> {
        let relation = before.get_relation(demand.relation.oid)?;
        let dropped = self.dropped_constraints(relation).filter_map(check_of).collect();
        let old = OldTable { catalog: before, relation, dropped };
        if self.has_placeholders || !old.takes_rows_as_they_are() {
            return None;
        }
        let table = demand.relation.oid;
        match &demand.demand {
            Demand::NoRows { .. } | Demand::OneRow { .. } => None,
            Demand::NotNull { column } => {
                let row = vec![(column.clone(), Value::Null)];
                old.allows(&row, 1).then(|| shown(1, &row, NOT_NULL_VIOLATION))
            }
            Demand::Check { constraint, .. } => {
                let added = self.catalog.get_relation(table)?.constraint(constraint)?;
                let ConstraintKind::Check { expression, .. } = &added.kind else { return None };
                let refuses = |row: &Row| value_in(expression, row) == Some(Value::Boolean(false));
                let row = old.search(&columns_of(expression), Some(expression), &refuses, 1)?;
                Some(shown(1, &row, CHECK_VIOLATION))
            }
            Demand::Unique(key) => self.twice(&old, table, &key.index, UNIQUE_VIOLATION),
            // The two rows have the same values, which overlap themselves.
            Demand::Exclusion(exclusion) if exclusion.parts.iter().all(|(_, operator)| is_reflexive(operator)) => {
                self.twice(&old, table, &exclusion.constraint, EXCLUSION_VIOLATION)
            }
            Demand::Exclusion(_) => None,
            Demand::References(key) => {
                // Keys that sequences generate are positive.
                let is_rare = |value: &Value| match value {
                    Value::Integer(number) => *number < 0,
                    value => *value != Value::Null,
                };
                let refuses = |row: &Row| row.iter().all(|(_, value)| is_rare(value));
                let row = old.search(&key.columns, None, &refuses, 1)?;
                Some(shown(1, &row, FOREIGN_KEY_VIOLATION))
            }
            Demand::Type(conversion) => self.misfit(&old, conversion),
            Demand::Bound(rows) => self.misplaced(&old, rows, false),
            Demand::DefaultPartition(rows) => self.misplaced(&old, rows, true),
            Demand::Domain(values) => self.outside_of_domain(&old, values),
        }
    }

    /// Two rows with the same key.
    fn twice(&self, old: &OldTable<'_>, table: Oid, index: &str, sqlstate: &'static str) -> Option<Counterexample> {
        let index = self.catalog.relation_named(&self.catalog.relation(table).schema, index)?;
        let definition = self.catalog.get_relation(index)?.index()?;
        let mut columns: Vec<SmolStr> = definition.elements.iter().flat_map(|part| columns_of(&part.key)).collect();
        let keys = columns.len();
        columns.extend(definition.predicate.iter().flat_map(|predicate| columns_of(predicate)));
        let mut seen = Vec::new();
        columns.retain(|column| {
            !seen.contains(column) && {
                seen.push(column.clone());
                true
            }
        });
        if keys == 0 {
            return None;
        }
        let conflicts = |row: &Row| {
            let has_key = |key: &Expr| value_in(key, row).is_some_and(|value| value != Value::Null);
            let is_covered = |predicate: &Expr| value_in(predicate, row) == Some(Value::Boolean(true));
            definition.elements.iter().all(|part| has_key(&part.key))
                && definition.predicate.as_deref().is_none_or(is_covered)
        };
        let row = old.search(&columns, definition.predicate.as_deref(), &conflicts, 2)?;
        Some(shown(2, &row, sqlstate))
    }

    /// A value that does not fit a new type.
    fn misfit(&self, old: &OldTable<'_>, conversion: &Conversion) -> Option<Counterexample> {
        if conversion.using == Using::Computed {
            return None;
        }
        let (value, sqlstate) = self.misfit_value(conversion)?;
        let row = vec![(conversion.column.clone(), value)];
        old.allows(&row, 1).then(|| shown(1, &row, sqlstate))
    }

    fn misfit_value(&self, conversion: &Conversion) -> Option<(Value, &'static str)> {
        const TOO_LONG: &str = "22001";
        const OUT_OF_RANGE: &str = "22003";
        const INVALID_TEXT: &str = "22P02";
        const INVALID_DATE: &str = "22007";
        let Conversion { from, to: new, .. } = conversion;
        let is_text = matches!(from.oid.0, oid::TEXT | oid::VARCHAR);
        let is_number = matches!(from.oid.0, oid::INT2 | oid::INT4 | oid::INT8 | oid::NUMERIC);
        match new.oid.0 {
            oid::INT2 if is_number => Some((Value::Integer(i128::from(i16::MAX) + 1), OUT_OF_RANGE)),
            oid::INT4 if is_number => Some((Value::Integer(i128::from(i32::MAX) + 1), OUT_OF_RANGE)),
            oid::INT8 if is_number => Some((Value::Integer(i128::from(i64::MAX) + 1), OUT_OF_RANGE)),
            oid::NUMERIC if is_number && new.typmod >= 0 => {
                let (precision, scale) = precision_and_scale(new.typmod);
                let digits = u32::try_from(precision - scale).ok().filter(|digits| *digits < 30)?;
                Some((Value::Integer(10_i128.pow(digits)), OUT_OF_RANGE))
            }
            oid::VARCHAR | oid::BPCHAR if is_text && new.typmod >= 0 && conversion.using == Using::Absent => {
                // The modifier counts the header of four bytes.
                let length = usize::try_from(new.typmod - 4).ok()?;
                Some((Value::Text("x".repeat(length + 1).into()), TOO_LONG))
            }
            oid::INT2 | oid::INT4 | oid::INT8 | oid::NUMERIC | oid::UUID | oid::BOOL | oid::JSON | oid::JSONB
                if is_text =>
            {
                Some((Value::Text("x".into()), INVALID_TEXT))
            }
            oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ if is_text => Some((Value::Text("x".into()), INVALID_DATE)),
            _ if is_text => {
                let TypeKind::Enum { labels } = &self.catalog.get_type(new.oid)?.kind else { return None };
                let free = ["x", "other", "y"].into_iter().find(|free| labels.get(*free).is_none())?;
                Some((Value::Text(free.into()), INVALID_TEXT))
            }
            _ => None,
        }
    }

    /// A row outside of a bound, or one of the DEFAULT partition inside of a new one.
    fn misplaced(&self, old: &OldTable<'_>, rows: &PartitionRows, is_default: bool) -> Option<Counterexample> {
        let keys = &self.catalog.get_relation(rows.parent)?.partition_by.as_ref()?.keys;
        let [key] = keys.as_slice() else { return None };
        let value = match &rows.bound {
            PartitionBound::Range { from, .. } if is_default => constant(from.first()?)?,
            // With a NULL in the list, PostgreSQL overlooks the other values.
            PartitionBound::List(values) if is_default && values.iter().all(|value| constant(value).is_some()) => {
                constant(values.first()?)?
            }
            PartitionBound::Range { to, .. } => constant(to.first()?)?,
            _ => return None,
        };
        let row = vec![(key.as_column()?.clone(), value)];
        old.allows(&row, 1).then(|| shown(1, &row, CHECK_VIOLATION))
    }

    fn outside_of_domain(&self, old: &OldTable<'_>, values: &DomainValues) -> Option<Counterexample> {
        let column = old.relation.column(values.columns.first()?)?;
        let TypeKind::Domain(before) = &old.catalog.get_type(column.sql_type.oid)?.kind else { return None };
        let TypeKind::Domain(after) = &self.catalog.get_type(column.sql_type.oid)?.kind else { return None };
        if values.check.is_none() {
            let row = vec![(column.name.clone(), Value::Null)];
            let is_allowed = !before.not_null && !column.not_null && old.checks_pass(&row);
            return is_allowed.then(|| shown(1, &row, NOT_NULL_VIOLATION));
        }
        let result = |check: &Expr, value: &Value| {
            evaluate(check, &|name| name.eq_ignore_ascii_case("value").then(|| value.clone()))
        };
        let passes =
            |check: &Expr, value: &Value| matches!(result(check, value), Some(Value::Null | Value::Boolean(true)));
        let is_meant = |value: &Value| {
            let is_new =
                after.checks.iter().any(|check| result(&check.expression, value) == Some(Value::Boolean(false)));
            is_new && before.checks.iter().all(|check| passes(&check.expression, value))
        };
        let checks: Vec<&Expr> = after.checks.iter().map(|check| &*check.expression).collect();
        let most = old.most_rows(checks.iter().copied().chain(before.checks.iter().map(|check| &*check.expression)));
        let candidates = old.values_of(before.base, &checks)?;
        let mut rows =
            candidates.into_iter().take(most).filter(is_meant).map(|value| vec![(column.name.clone(), value)]);
        let row =
            rows.find(|row| old.has_value(before.base, &row[0].1) && old.checks_pass(row) && old.keys_pass(row, 1))?;
        Some(shown(1, &row, CHECK_VIOLATION))
    }
}

/// Whether the operator is true for a value and itself, unless that is an empty range.
fn is_reflexive(operator: &str) -> bool {
    matches!(operator, "=" | "&&")
}

impl OldTable<'_> {
    /// Nothing but constraints decides about a new row.
    fn takes_rows_as_they_are(&self) -> bool {
        let has_trigger = self.relation.triggers.iter().any(|trigger| trigger.for_each_row);
        self.relation.known && !has_trigger && self.relation.rules.is_empty()
    }

    /// The first row of candidates for these columns that is meant and that the table takes, `times` times.
    fn search(
        &self,
        columns: &[SmolStr],
        condition: Option<&Expr>,
        is_meant: &dyn Fn(&Row) -> bool,
        times: usize,
    ) -> Option<Row> {
        if columns.is_empty() || columns.len() > MOST_COLUMNS {
            return None;
        }
        let candidates: Vec<Vec<Value>> =
            columns.iter().map(|column| self.candidates(column, condition)).collect::<Option<_>>()?;
        let most = self.most_rows(condition.into_iter());
        let count = candidates.iter().map(Vec::len).fold(1, usize::saturating_mul);
        // The candidates of the last column change fastest.
        let row = |at: usize| -> Row {
            let mut left = at;
            let value = |(column, candidates): (&SmolStr, &Vec<Value>)| {
                let value = candidates[left % candidates.len()].clone();
                left /= candidates.len();
                (column.clone(), value)
            };
            let mut row: Row = columns.iter().zip(&candidates).rev().map(value).collect();
            row.reverse();
            row
        };
        (0..count.min(most)).map(row).find(|row| is_meant(row) && self.allows(row, times))
    }

    fn checks(&self) -> impl Iterator<Item = &Expr> {
        let checks = self.relation.constraints.iter().filter_map(|constraint| check_of(constraint));
        checks.chain(self.dropped.iter().copied())
    }

    /// How many rows are tried with these conditions and the checks of the table.
    fn most_rows<'e>(&'e self, conditions: impl Iterator<Item = &'e Expr>) -> usize {
        MOST_EVALUATIONS / conditions.chain(self.checks()).map(parts).sum::<usize>().max(1)
    }

    /// Values of the type of a column that conditions tell apart.
    fn candidates(&self, column: &str, condition: Option<&Expr>) -> Option<Vec<Value>> {
        let column = self.relation.column(column)?;
        let conditions: Vec<&Expr> = condition.into_iter().chain(self.checks()).collect();
        let mut values = self.values_of(column.sql_type, &conditions)?;
        values.push(Value::Null);
        Some(values)
    }

    fn values_of(&self, sql_type: SqlType, conditions: &[&Expr]) -> Option<Vec<Value>> {
        let mut constants = Constants::default();
        conditions.iter().for_each(|condition| constants.collect(condition));
        Some(match sql_type.oid.0 {
            oid::INT2 | oid::INT4 | oid::INT8 | oid::NUMERIC => {
                let near = constants.integers.iter().flat_map(|number| [*number, number - 1, number + 1]);
                distinct([1, 0, -1].into_iter().chain(near)).map(Value::Integer).collect()
            }
            oid::TEXT | oid::VARCHAR => {
                let longer = constants.integers.iter().filter_map(|number| usize::try_from(number + 1).ok());
                let longer = longer.filter(|length| *length <= LONGEST_TEXT).map(|length| "x".repeat(length));
                let given = constants.texts.iter().map(SmolStr::to_string);
                let texts = ["x".to_owned(), String::new()].into_iter().chain(longer).chain(given);
                distinct(texts).map(|text| Value::Text(text.into())).collect()
            }
            oid::BOOL => vec![Value::Boolean(true), Value::Boolean(false)],
            oid::UUID => vec![Value::Text("00000000-0000-0000-0000-000000000000".into())],
            oid::INT4RANGE | oid::INT8RANGE | oid::NUMRANGE => vec![Value::Text("[1,10)".into())],
            oid::DATERANGE | oid::TSRANGE | oid::TSTZRANGE => vec![Value::Text("[2025-01-01,2025-02-01)".into())],
            _ => match &self.catalog.get_type(sql_type.oid)?.kind {
                TypeKind::Enum { labels } => labels.iter().map(|label| Value::Text(label.label.clone())).collect(),
                _ => return None,
            },
        })
    }

    /// Whether the table takes a row with these values, `times` times; the other columns can have any values.
    fn allows(&self, row: &Row, times: usize) -> bool {
        row.iter().all(|(name, value)| self.takes(name, value)) && self.checks_pass(row) && self.keys_pass(row, times)
    }

    fn takes(&self, name: &str, value: &Value) -> bool {
        let Some(column) = self.relation.column(name) else { return false };
        if column.generated.is_some() || column.identity.is_some() {
            return false;
        }
        match value {
            Value::Null => !column.not_null && !self.is_domain(column.sql_type),
            _ => self.has_value(column.sql_type, value),
        }
    }

    fn is_domain(&self, sql_type: SqlType) -> bool {
        self.catalog.get_type(sql_type.oid).is_some_and(|own| matches!(own.kind, TypeKind::Domain(_)))
    }

    fn has_value(&self, sql_type: SqlType, value: &Value) -> bool {
        let within = |least: i64, greatest: i64| match value {
            Value::Integer(number) => (i128::from(least)..=i128::from(greatest)).contains(number),
            _ => false,
        };
        let unlimited = sql_type.typmod < 0;
        match (sql_type.oid.0, value) {
            (oid::INT2, _) => within(i16::MIN.into(), i16::MAX.into()),
            (oid::INT4, _) => within(i32::MIN.into(), i32::MAX.into()),
            (oid::INT8, _) => within(i64::MIN, i64::MAX),
            (oid::NUMERIC, Value::Integer(number)) => {
                let (precision, scale) = precision_and_scale(sql_type.typmod);
                let digits = u32::try_from(precision - scale).ok().filter(|digits| *digits < 30);
                unlimited || digits.is_some_and(|digits| number.abs() < 10_i128.pow(digits))
            }
            (oid::TEXT | oid::UUID, Value::Text(_)) | (oid::BOOL, Value::Boolean(_)) => true,
            (oid::VARCHAR, Value::Text(text)) => {
                let length = i32::try_from(text.chars().count()).unwrap_or(i32::MAX);
                unlimited || length <= sql_type.typmod - 4
            }
            (oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ, Value::Text(text)) => text.len() >= 10,
            (
                oid::INT4RANGE | oid::INT8RANGE | oid::NUMRANGE | oid::DATERANGE | oid::TSRANGE | oid::TSTZRANGE,
                Value::Text(text),
            ) => text.starts_with('['),
            (_, Value::Text(text)) => match self.catalog.get_type(sql_type.oid).map(|own| &own.kind) {
                Some(TypeKind::Enum { labels }) => labels.get(text.as_str()).is_some(),
                _ => false,
            },
            _ => false,
        }
    }

    fn checks_pass(&self, row: &Row) -> bool {
        let constraints = self.relation.constraints.iter().filter(|constraint| constraint.enforced);
        let checks = constraints.filter_map(|constraint| check_of(constraint)).chain(self.dropped.iter().copied());
        let mut touched = checks.filter(|check| row.iter().any(|(name, _)| mentions(check, name)));
        touched.all(|check| matches!(value_in(check, row), Some(Value::Null | Value::Boolean(true))))
    }

    /// Foreign keys, unique indexes and exclusion constraints, and the keys of partitions.
    fn keys_pass(&self, row: &Row, times: usize) -> bool {
        let has = |column: &SmolStr| row.iter().any(|(name, value)| name == column && *value != Value::Null);
        let refers = |constraint: &Constraint| constraint.foreign_key().is_some_and(|key| key.columns.iter().any(has));
        let in_way = |oid: &Oid| {
            let index = self.catalog.get_relation(*oid).and_then(|built| built.index());
            index.is_some_and(|index| {
                let mut columns = index.elements.iter().flat_map(|part| columns_of(&part.key));
                index.unique && columns.all(|column| has(&column)) || index.exclusion
            })
        };
        let of_partition = self.relation.partition_by.iter().flat_map(|by| by.keys.iter().flat_map(columns_of));
        let is_of_partition = of_partition.into_iter().any(|column| row.iter().any(|(name, _)| *name == column));
        let refers_to_others = self.relation.constraints.iter().any(|constraint| refers(constraint));
        let is_in_way = times > 1 && self.relation.indexes.iter().any(in_way);
        !(refers_to_others || is_in_way || is_of_partition)
    }
}

/// The condition of a CHECK.
fn check_of(constraint: &Constraint) -> Option<&Expr> {
    match &constraint.kind {
        ConstraintKind::Check { expression, .. } => Some(expression),
        _ => None,
    }
}

/// How many nodes an expression has.
fn parts(expression: &Expr) -> usize {
    let mut count = 1;
    expression.for_each_child(|child| count += parts(child));
    count
}

fn distinct<T: Clone + Eq + Hash>(values: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let mut seen = FxHashSet::default();
    values.filter(move |value| seen.insert(value.clone()))
}

/// The constants of conditions.
#[derive(Default)]
pub(super) struct Constants {
    pub(super) integers: Vec<i128>,
    pub(super) texts: Vec<SmolStr>,
}

impl Constants {
    pub(super) fn collect(&mut self, expression: &Expr) {
        match &expression.kind {
            ExprKind::Literal(Literal::Integer(number)) => self.integers.push(i128::from(*number)),
            ExprKind::Literal(Literal::String(text)) if text.len() <= LONGEST_TEXT => self.texts.push(text.clone()),
            _ => {}
        }
        expression.for_each_child(|child| self.collect(child));
    }
}

pub(super) fn value_in(expression: &Expr, row: &Row) -> Option<Value> {
    evaluate(expression, &|name| row.iter().find(|(column, _)| column == name).map(|(_, value)| value.clone()))
}

fn constant(value: &Expr) -> Option<Value> {
    match evaluate(value, &|_| None)? {
        Value::Null => None,
        value => Some(value),
    }
}

fn shown(rows: u8, row: &Row, sqlstate: &'static str) -> Counterexample {
    let values = row.iter().map(|(column, value)| (column.clone(), as_sql(value))).collect();
    Counterexample { rows, values, sqlstate }
}

pub(super) fn as_sql(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Text(text) if text.len() > LONGEST_TEXT => format!("repeat('x', {})", text.len()),
        Value::Text(text) => deparse::string(text),
    }
}
