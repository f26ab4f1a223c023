//! Changes of rows that a statement of an earlier deployment has made in the same words.

use super::digest::digest;
use crate::catalog::{EarlierChange, Oid};
use crate::effect::{Extent, Rows, RowsReason};
use crate::execute::Executor;
use crate::place::Place;
use pgvet_syntax::ast::{Expr, ExprKind, FromItem, Insert, InsertSource, JoinKind, QueryBody, Update};
use pgvet_syntax::source::TextRange;
use serde::Serialize;

impl Executor<'_> {
    /// Notes a statement that changes rows. Returns the place of the first one that is the same, if an earlier deployment
    /// ran it.
    pub(super) fn earlier_same(&mut self, table: Oid, statement: &impl Serialize, range: TextRange) -> Option<Place> {
        if !self.in_production {
            return None;
        }
        let place = Place { range: self.in_file(range), ..self.place };
        let change = EarlierChange { deployment: self.deployment, place };
        let first = self.catalog.note_change(table, digest(statement)?, change);
        (first.deployment != self.deployment).then_some(first.place)
    }

    /// Notes the place of the earlier statement at the change that a statement makes itself.
    pub(super) fn note_earlier(&mut self, table: Oid, range: TextRange, earlier: Option<Place>) {
        let mut changes = self.effects.data_changes.iter_mut().rev();
        let own = changes.find(|change| {
            change.relation.oid == table && change.range == range && !change.by_trigger && change.repeats.is_none()
        });
        if let Some(own) = own {
            own.repeats = earlier;
        }
    }

    /// Whether an INSERT skips the rows that its first run has inserted: it asks whether the table has them.
    pub(super) fn skips_inserted(&self, table: Oid, insert: &Insert) -> bool {
        let InsertSource::Query(query) = &insert.source else { return false };
        let QueryBody::Select(select) = &query.body else { return false };
        let mut asks = false;
        select.filter.iter().for_each(|filter| {
            filter.walk(&mut |part| {
                if let ExprKind::Not(inner) = &part.kind
                    && let ExprKind::Subquery { query, .. } = &inner.kind
                {
                    asks |= self.reads(query, table);
                }
            });
        });
        let is_own = |item: &FromItem| matches!(item, FromItem::Relation(own) if self.find(&own.name) == Some(table));
        let is_joined =
            |item: &FromItem| matches!(item, FromItem::Join { kind: JoinKind::Left, right, .. } if is_own(right));
        let skips_conflicts = insert.on_conflict.as_ref().is_some_and(|conflict| conflict.update.is_none());
        asks || select.from.iter().any(is_joined) || skips_conflicts
    }
}

/// The rows of a statement of which an earlier run has left none that its condition selects.
pub(super) fn left_by_first_run(rows: Rows) -> Rows {
    let is_part = rows.extent == Extent::UnknownPart && !matches!(rows.reason, RowsReason::Duplicates { .. });
    if is_part { Rows::unknown_part(RowsReason::RunBefore) } else { rows }
}

/// Whether the condition of an UPDATE is about a column that it sets, so that it may not hold afterwards.
pub(super) fn tests_what_it_sets(update: &Update) -> bool {
    let mut found = false;
    update.filter.iter().for_each(|filter| {
        filter.walk(&mut |part: &Expr| {
            if let ExprKind::Column(path) = &part.kind {
                let is_set = |column| update.assignments.iter().any(|one| one.column.text == column);
                found |= path.last().is_some_and(|column| is_set(column.clone()));
            }
        });
    });
    found
}
