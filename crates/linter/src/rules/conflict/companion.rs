//! Rows that a trigger adds to those that are inserted: of a supertype, or of a part that has its own table.

use super::inserted::{Inserted, Refusal, Values};
use super::new_parent::without_casts;
use super::unique::unique_indexes;
use crate::rule::RoutineContext;
use pgvet_model::catalog::{Catalog, Relation, Trigger};
use pgvet_model::routine::Step;
use pgvet_syntax::ast::{Expr, ExprKind, InsertSource, QueryBody};
use smol_str::SmolStr;

/// Whether a trigger inserts this one row for each new row of its own table, with the same key. A duplicate is then as
/// rare as one in that table, and the author wants the error.
pub(crate) fn is_companion(context: &RoutineContext<'_>, step: &Step<'_>, inserted: &Inserted<'_>) -> bool {
    let triggers = context.triggers();
    let has_key = || {
        let mut keys = single_columns(context.catalog, inserted.table);
        keys.any(|column| match inserted.values_of(&column) {
            Values::Rows(rows) => {
                rows.iter().all(|value| field_of_new(value).is_some_and(|field| is_key(context, field)))
            }
            Values::Default | Values::Unknown => false,
        })
    };
    !triggers.is_empty()
        && triggers.iter().all(|using| is_for_new_rows(&using.trigger))
        && step.context.loops == 0
        && is_one_row(inserted)
        && has_key()
}

/// Whether all parts of a key are fields of NEW, or the same for all rows.
pub(crate) fn is_of_new(inserted: &Inserted<'_>, refusal: &Refusal<'_>) -> bool {
    refusal.index.all_columns().all(|column| match inserted.values_of(column) {
        Values::Rows(rows) => rows.iter().all(|value| field_of_new(value).is_some() || is_literal(value)),
        Values::Default => true,
        Values::Unknown => false,
    })
}

fn is_for_new_rows(trigger: &Trigger) -> bool {
    let events = trigger.events;
    trigger.for_each_row && events.insert && !events.update && !events.delete
}

/// Whether it is one row of values that come from no table.
fn is_one_row(inserted: &Inserted<'_>) -> bool {
    let InsertSource::Query(query) = &inserted.insert.source else { return false };
    match &query.body {
        QueryBody::Values(rows) => rows.len() == 1,
        QueryBody::Select(select) => select.from.is_empty(),
        QueryBody::SetOperation { .. } => false,
    }
}

/// Whether it is a key by itself in every table whose triggers run the function.
fn is_key(context: &RoutineContext<'_>, field: &SmolStr) -> bool {
    context.triggers().iter().all(|using| single_columns(context.catalog, &using.table).any(|column| column == *field))
}

/// The columns that are a unique key by themselves.
fn single_columns<'a>(catalog: &'a Catalog, table: &'a Relation) -> impl Iterator<Item = SmolStr> + use<'a> {
    let whole = unique_indexes(catalog, table).into_iter().filter(|unique| unique.index.predicate.is_none());
    whole.filter_map(|unique| match unique.columns()?.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    })
}

fn field_of_new(value: &Expr) -> Option<&SmolStr> {
    match &without_casts(value).kind {
        ExprKind::Column(path) => match path.as_slice() {
            [record, field] if record == "new" => Some(field),
            _ => None,
        },
        _ => None,
    }
}

fn is_literal(value: &Expr) -> bool {
    matches!(without_casts(value).kind, ExprKind::Literal(_) | ExprKind::Default)
}
