//! Queries. PostgreSQL rewrites a query, so that one that differs may still mean the same.

use super::{Alike, Verdict};
use pgvet_syntax::ast::{Expr, FromItem, Query, QueryBody, Select};

impl Alike {
    /// `Same` or `Unsure`: PostgreSQL expands `*`, and resolves names and joins.
    pub(super) fn queries(&self, before: &Query, after: &Query) -> Verdict {
        if self.is_same(before, after) { Verdict::Same } else { Verdict::Unsure }
    }

    fn is_same(&self, before: &Query, after: &Query) -> bool {
        let has_clauses =
            |query: &Query| query.with.is_some() || !query.order_by.is_empty() || !query.locking.is_empty();
        let is_plain = |query: &Query| !has_clauses(query) && query.omitted.is_none();
        let bodies = match (&before.body, &after.body) {
            (QueryBody::Select(before), QueryBody::Select(after)) => self.is_same_select(before, after),
            _ => false,
        };
        let optional = |before: Option<&Expr>, after: Option<&Expr>| self.is_same_part(before, after);
        bodies
            && is_plain(before)
            && is_plain(after)
            && optional(before.limit.as_ref(), after.limit.as_ref())
            && optional(before.offset.as_ref(), after.offset.as_ref())
    }

    fn is_same_select(&self, before: &Select, after: &Select) -> bool {
        let lists = |before: &[Expr], after: &[Expr]| self.lists(before, after) == Verdict::Same;
        let values = |select: &Select| select.targets.iter().map(|target| target.value.clone()).collect::<Vec<Expr>>();
        let is_plain = |select: &Select| select.windows.is_empty() && select.distinct.is_none();
        is_plain(before)
            && is_plain(after)
            && lists(&values(before), &values(after))
            && before.from.len() == after.from.len()
            && before.from.iter().zip(&after.from).all(|(before, after)| self.is_same_item(before, after))
            && self.is_same_part(before.filter.as_ref(), after.filter.as_ref())
            && lists(&before.group_by, &after.group_by)
            && self.is_same_part(before.having.as_ref(), after.having.as_ref())
    }

    fn is_same_part(&self, before: Option<&Expr>, after: Option<&Expr>) -> bool {
        match (before, after) {
            (Some(before), Some(after)) => self.canonical(before, after) == Verdict::Same,
            (before, after) => before.is_none() && after.is_none(),
        }
    }

    fn is_same_item(&self, before: &FromItem, after: &FromItem) -> bool {
        match (before, after) {
            (FromItem::Relation(before), FromItem::Relation(after)) => {
                let schemas = [&before.name.schema, &after.name.schema];
                let [ours, theirs] = schemas.map(|schema| schema.as_ref().map(|schema| &schema.text));
                let is_same_schema = ours.is_none() || theirs.is_none() || ours == theirs;
                before.only == after.only && before.name.name.text == after.name.name.text && is_same_schema
            }
            (
                FromItem::Join { kind, left, right, on, using },
                FromItem::Join { kind: other, left: their_left, right: their_right, on: their_on, using: their_using },
            ) => {
                kind == other
                    && using == their_using
                    && self.is_same_item(left, their_left)
                    && self.is_same_item(right, their_right)
                    && self.is_same_part(on.as_ref(), their_on.as_ref())
            }
            (FromItem::Subquery { query: before, .. }, FromItem::Subquery { query: after, .. }) => {
                self.is_same(before, after)
            }
            _ => false,
        }
    }
}
