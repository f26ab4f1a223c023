//! Rows of tables that a copy lacks.

use super::{Joined, Owner};
use crate::catalog::{Oid, Omitted};
use crate::effect::RowsReason;
use crate::execute::Executor;
use crate::execute::query::{CteNames, Depth, Env};
use pgvet_syntax::ast::{ExprKind, Part, Query, QueryBody, Select};
use smol_str::SmolStr;

impl Executor<'_> {
    /// The tables of which CREATE TABLE AS copies rows, and does not copy all.
    pub(in crate::execute) fn omitted_by_copy(&self, query: &Query) -> Vec<(Oid, Omitted)> {
        let copied = self.omitted_by(query, None, &Env::new(Depth::Run));
        copied.into_iter().filter_map(|(oid, omitted)| Some((oid, omitted?))).collect()
    }

    /// The tables whose rows a query yields one by one, together with their keys, and why it does not yield all of them. A
    /// query that reads `into`, the table into which the rows go, omits those that are there already.
    pub(in crate::execute::query) fn omitted_by(
        &self,
        query: &Query,
        into: Option<Oid>,
        outer: &Env<'_>,
    ) -> Vec<(Oid, Option<Omitted>)> {
        let QueryBody::Select(select) = &query.body else { return Vec::new() };
        let is_of_groups = !select.group_by.is_empty() || select.distinct.is_some();
        if is_of_groups || into.is_some_and(|into| self.reads(query, into)) {
            return Vec::new();
        }
        let names = CteNames::of(query.with.as_ref());
        let env = Env { ctes: names.all(), with: query.with.as_ref(), from: &select.from, ..outer.inner() };
        let joined = Joined::new(self, &env, None, &select.from, &select.filter);
        let plain = query.limit.is_none() && joined.is_plain(select);
        let copied = (0..joined.members.len()).filter_map(|at| {
            let table = joined.table(at).filter(|_| joined.yields_key(at, select))?;
            let rows = joined.rows_of(at);
            let omitted = match rows.reason {
                _ if rows.bound().is_some() => return None,
                RowsReason::Join { table } | RowsReason::JoinedToFew { table } => {
                    Some(Omitted::Unjoined { to: joined.table_called(table) })
                }
                _ if query.limit.is_none() && rows.is_whole() => None,
                reason => Some(Omitted::Excluded { plain: plain && reason != RowsReason::GivenAtRunTime }),
            };
            Some((table, omitted))
        });
        copied.collect()
    }

    /// Whether a query reads a table, in FROM or in a condition.
    pub(in crate::execute::query) fn reads(&self, query: &Query, table: Oid) -> bool {
        let mut found = false;
        query.visit(&mut |part| {
            if let Part::Read(read) = part {
                found = found || self.find(&read.name) == Some(table);
            }
        });
        found
    }
}

impl Joined<'_> {
    /// The name of the table that a query calls so.
    fn table_called(&self, name: SmolStr) -> SmolStr {
        let table = self.named.get(&name).and_then(|at| self.table(*at));
        table.map_or(name, |oid| self.executor.catalog.relation(oid).name.clone())
    }

    /// Whether a condition selects rows by what is in them alone.
    fn is_plain(&self, select: &Select) -> bool {
        let mut plain = self.members.len() == 1;
        for filter in &select.filter {
            filter.walk(&mut |part| match &part.kind {
                ExprKind::Subquery { .. } | ExprKind::Parameter(_) => plain = false,
                ExprKind::Column(path) => plain = plain && matches!(self.owner(path), Owner::Member(_)),
                _ => {}
            });
        }
        plain
    }

    /// Whether a query yields all columns of a unique key of a member.
    fn yields_key(&self, at: usize, select: &Select) -> bool {
        let Some(table) = self.table(at).map(|oid| self.executor.catalog.relation(oid)) else { return false };
        let is_own = |path: &[SmolStr]| path.last().is_none_or(|name| *name == self.members[at].name);
        if select.targets.iter().any(|target| matches!(&target.value.kind, ExprKind::Star(path) if is_own(path))) {
            return true;
        }
        let yields = |column: &SmolStr| {
            select.targets.iter().any(|target| match &target.value.kind {
                ExprKind::Column(path) => path.last() == Some(column) && self.owner(path) == Owner::Member(at),
                _ => false,
            })
        };
        let indexes = table.indexes.iter().filter_map(|oid| self.executor.catalog.get_relation(*oid)?.index());
        let mut keys = indexes.filter(|index| index.unique).filter_map(|index| index.plain_columns());
        keys.any(|columns| columns.iter().all(yields))
    }
}
