//! Views that pass changes on to the table that they show.
//!
//! Source: PostgreSQL 18, `src/backend/rewrite/rewriteHandler.c`, `view_query_is_auto_updatable` and
//! `view_cols_are_auto_updatable`.

use crate::catalog::{Oid, RelationKind, ViewDefinition};
use crate::effect::DataChangeKind;
use crate::execute::{Executor, Run, fail};
use crate::expression::yields_one_row;
use pgvet_syntax::ast::{Expr, ExprKind, FromItem, Query, QueryBody, Select, Target};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

impl Executor<'_> {
    /// Why PostgreSQL does not pass changes of such a view on.
    pub(in crate::execute) fn not_updatable(&self, query: &Query) -> Option<&'static str> {
        let select = match &query.body {
            QueryBody::Select(select) => select,
            QueryBody::SetOperation { .. } => return Some("contains UNION, INTERSECT, or EXCEPT"),
            QueryBody::Values(_) => return Some("does not select from a single table or view"),
        };
        if select.distinct.is_some() {
            return Some("contains DISTINCT");
        }
        if !select.group_by.is_empty() || select.having.is_some() || yields_one_row(select) {
            return Some("contains GROUP BY, HAVING or aggregates");
        }
        if query.with.is_some() {
            return Some("contains WITH");
        }
        if query.limit.is_some() || query.offset.is_some() {
            return Some("contains LIMIT or OFFSET");
        }
        let single = match &select.from[..] {
            [FromItem::Relation(relation)] => self.find(&relation.name).is_none_or(|oid| {
                let kind = self.catalog.relation(oid).kind;
                kind.is_table() || kind == RelationKind::View
            }),
            _ => false,
        };
        (!single).then_some("does not select from a single table or view")
    }

    /// CREATE OR REPLACE VIEW can make a view read itself; whatever uses it then is refused.
    ///
    /// Source: PostgreSQL 18, `src/backend/rewrite/rewriteHandler.c`, `fireRIRrules` and `RewriteQuery`.
    pub(in crate::execute) fn check_reads_not_itself(&self, view: Oid, range: TextRange) -> Run {
        match self.view_that_reads_itself(view, &mut Vec::new(), &mut Vec::new()) {
            Some(found) => {
                let name = &self.catalog.relation(found).name;
                fail("42P17", format!("infinite recursion detected in rules for relation \"{name}\""), range)
            }
            None => Ok(()),
        }
    }

    /// Returns a view that reads itself. `path` is how the view was reached; those that are `done` form no cycle.
    fn view_that_reads_itself(&self, view: Oid, path: &mut Vec<Oid>, done: &mut Vec<Oid>) -> Option<Oid> {
        let relation = self.catalog.get_relation(view).filter(|relation| relation.kind == RelationKind::View)?;
        if path.contains(&view) {
            return Some(view);
        }
        if done.contains(&view) {
            return None;
        }
        path.push(view);
        let mut read = relation.view().into_iter().flat_map(|definition| &definition.references);
        let found = read.find_map(|(read, _)| self.view_that_reads_itself(*read, path, done));
        path.pop();
        done.push(view);
        found
    }

    /// Refuses changes of a view, or of columns of it, that are no more than computed. What fires instead of them does
    /// not ask.
    pub(super) fn check_view_takes(
        &self,
        view: Oid,
        definition: &ViewDefinition,
        kind: DataChangeKind,
        columns: &[SmolStr],
        range: TextRange,
    ) -> Run {
        let relation = self.catalog.relation(view);
        let what = match kind {
            DataChangeKind::Insert => "insert into",
            DataChangeKind::Update => "update",
            DataChangeKind::Delete => "delete from",
        };
        if let Some(why) = self.not_updatable(&definition.query) {
            return fail("55000", format!("cannot {what} view \"{}\": it {why}", relation.name), range);
        }
        let shown = self.shown_columns(view);
        if kind == DataChangeKind::Delete || shown.is_empty() {
            return Ok(());
        }
        if shown.iter().all(|(_, behind)| behind.is_none()) {
            return fail("55000", format!("cannot {what} view \"{}\": all is computed", relation.name), range);
        }
        let computed = shown.iter().find(|(name, behind)| behind.is_none() && columns.contains(name));
        match computed {
            Some((name, _)) => {
                let reason = format!("cannot {what} column \"{name}\" of view \"{}\"", relation.name);
                fail("0A000", reason, range)
            }
            None => Ok(()),
        }
    }

    /// The columns of a view, each with that of the underlying table; none if they are not known.
    pub(super) fn shown_columns(&self, view: Oid) -> Vec<(SmolStr, Option<SmolStr>)> {
        let relation = self.catalog.relation(view);
        let Some(QueryBody::Select(select)) = relation.view().map(|definition| &definition.query.body) else {
            return Vec::new();
        };
        let mut behind = self.columns_shown_by(view, select);
        if let [Target { value: Expr { kind: ExprKind::Star(_), .. }, .. }] = &select.targets[..] {
            // `*` is what the columns were when the view was made.
            behind.truncate(relation.columns.len());
        }
        if !relation.known || behind.len() != relation.columns.len() {
            return Vec::new();
        }
        let mut shown: Vec<(SmolStr, Option<SmolStr>)> = Vec::new();
        for (column, behind) in relation.columns.iter().zip(behind) {
            // A column that is shown twice is passed on by the first.
            let first = behind.filter(|behind| !shown.iter().any(|(_, other)| other.as_ref() == Some(behind)));
            shown.push((column.name.clone(), first));
        }
        shown
    }

    fn columns_shown_by(&self, view: Oid, select: &Select) -> Vec<Option<SmolStr>> {
        let base = match &select.from[..] {
            // It may have another name by now.
            [FromItem::Relation(_)] => {
                let definition = self.catalog.relation(view).view();
                let read = definition.and_then(|definition| definition.references.first()).map(|(read, _)| *read);
                read.filter(|read| self.catalog.get_relation(*read).is_some())
            }
            _ => None,
        };
        let mut behind = Vec::new();
        for target in &select.targets {
            match (&target.value.kind, base) {
                (ExprKind::Column(path), _) => behind.push(path.last().cloned()),
                (ExprKind::Star(_), Some(base)) => {
                    let columns = self.catalog.relation(base).columns.iter();
                    behind.extend(columns.map(|column| Some(column.name.clone())));
                }
                _ => behind.push(None),
            }
        }
        behind
    }

    /// The columns of the table behind a view that a change of columns of the view concerns.
    pub(super) fn columns_behind(&self, view: Oid, columns: &[SmolStr], kind: DataChangeKind) -> Vec<SmolStr> {
        let shown = self.shown_columns(view);
        if shown.is_empty() && kind == DataChangeKind::Update {
            // Any key column may be meant.
            let base = self.catalog.relation(view).view().and_then(|definition| definition.references.first());
            let base = base.and_then(|(base, _)| self.catalog.get_relation(*base));
            return base.into_iter().flat_map(|base| &base.columns).map(|column| column.name.clone()).collect();
        }
        let concerned = shown.into_iter().filter(|(name, _)| columns.contains(name));
        concerned.filter_map(|(_, behind)| behind).collect()
    }
}
