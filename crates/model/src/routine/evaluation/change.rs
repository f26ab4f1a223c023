//! INSERT, UPDATE, DELETE and MERGE.

use super::{Evaluated, Evaluation, ONCE, Times};
use crate::routine::Bound;
use pgvet_syntax::ast::{Delete, Expr, Insert, InsertSource, Merge, MergeAction, Target, Update};

impl<'a> Evaluation<'_, 'a> {
    /// Each of these yields as many rows as it changes.
    pub(super) fn insert(&mut self, insert: &'a Insert, runs: Bound) -> Bound {
        self.with(insert.with.as_ref(), runs);
        let rows = match &insert.source {
            InsertSource::Query(query) => self.query(query, runs, Bound::Unbounded),
            InsertSource::DefaultValues => ONCE,
        };
        (self.found)(Evaluated::Insert(&insert.table.name), runs * rows);
        let per_row = Times { rows: runs * rows, runs };
        if let Some(conflict) = &insert.on_conflict {
            let updates = conflict.update.iter().flatten().map(|assignment| &assignment.value);
            self.all(updates.chain(&conflict.update_filter), per_row);
        }
        self.all(values(&insert.returning), per_row);
        rows
    }

    pub(super) fn update(&mut self, update: &'a Update, runs: Bound) -> Bound {
        self.with(update.with.as_ref(), runs);
        let read = self.from(Some(&update.table), &update.from, update.filter.as_ref(), runs);
        (self.found)(Evaluated::Update(&update.table.name), runs * changed(read, update.filter.as_ref()));
        let assigned = update.assignments.iter().map(|assignment| &assignment.value);
        let expressions = assigned.chain(&update.filter).chain(values(&update.returning));
        self.all(expressions, Times { rows: runs * read, runs });
        read
    }

    pub(super) fn delete(&mut self, delete: &'a Delete, runs: Bound) -> Bound {
        self.with(delete.with.as_ref(), runs);
        let read = self.from(Some(&delete.table), &delete.using, delete.filter.as_ref(), runs);
        (self.found)(Evaluated::Delete(&delete.table.name), runs * changed(read, delete.filter.as_ref()));
        self.all(delete.filter.iter().chain(values(&delete.returning)), Times { rows: runs * read, runs });
        read
    }

    /// As many rows as the source has: its rows find one each in the target, or PostgreSQL refuses to change it twice.
    pub(super) fn merge(&mut self, merge: &'a Merge, runs: Bound) -> Bound {
        self.with(merge.with.as_ref(), runs);
        let source = std::slice::from_ref(&merge.source);
        let rows = self.from(None, source, None, runs);
        let per_row = Times { rows: runs * rows, runs };
        self.all([&merge.on], per_row);
        for branch in &merge.branches {
            self.all(&branch.condition, per_row);
            let table = &merge.table.name;
            match &branch.action {
                MergeAction::Insert { values, .. } => {
                    (self.found)(Evaluated::Insert(table), per_row.rows);
                    self.all(values, per_row);
                }
                MergeAction::Update(assignments) => {
                    (self.found)(Evaluated::Update(table), per_row.rows);
                    self.all(assignments.iter().map(|assignment| &assignment.value), per_row);
                }
                MergeAction::Delete => (self.found)(Evaluated::Delete(table), per_row.rows),
                MergeAction::DoNothing => {}
            }
        }
        self.all(values(&merge.returning), per_row);
        rows
    }
}

/// A condition mostly finds few of the rows that are read.
fn changed(read: Bound, filter: Option<&Expr>) -> Bound {
    if filter.is_some() { read.min(ONCE) } else { read }
}

fn values(targets: &[Target]) -> impl Iterator<Item = &Expr> {
    targets.iter().map(|target| &target.value)
}
