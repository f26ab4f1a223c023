//! How many rows a query yields.

use super::{Joined, MAX_QUERIES};
use crate::builtin;
use crate::catalog::{Oid, RelationKind};
use crate::effect::{Extent, Rows, RowsReason, Visibility};
use crate::execute::Executor;
use crate::execute::query::{CteNames, Env};
use crate::expression::yields_one_row;
use pgvet_syntax::ast::{
    Expr, ExprKind, FunctionCall, ObjectName, Query, QueryBody, QueryStatement, Select, SetOperator,
};

impl Executor<'_> {
    pub(in crate::execute) fn rows_of_query(&self, query: &Query, outer: &Env<'_>) -> Rows {
        self.queries.set(self.queries.get() + 1);
        if self.queries.get() > MAX_QUERIES {
            return Rows::unknown_part(RowsReason::NotKnown);
        }
        let names = CteNames::of(query.with.as_ref());
        let env = Env { ctes: names.all(), with: query.with.as_ref(), ..outer.inner() };
        let rows = match &query.body {
            QueryBody::Values(rows) => Rows::at_most(rows.len() as u64, RowsReason::Listed),
            QueryBody::Select(select) => self.rows_of_select(select, &env),
            QueryBody::SetOperation { operator, left, right, .. } => {
                let (left, right) = (self.rows_of_query(left, &env), self.rows_of_query(right, &env));
                match (operator, left.bound(), right.bound()) {
                    (SetOperator::Union, Some(one), Some(other)) => {
                        Rows::at_most(one.saturating_add(other), left.reason)
                    }
                    (SetOperator::Union, ..) => left.or_more(right),
                    (SetOperator::Intersect, ..) => left.or_less(right),
                    (SetOperator::Except, ..) => left,
                }
            }
        };
        match query.limit.as_ref() {
            None => rows,
            Some(limit) => match self.whole_number(limit) {
                Some(limit) => rows.limited(u64::try_from(limit).ok()),
                None if rows.bound().is_some() => rows,
                None => Rows::unknown_part(RowsReason::GivenAtRunTime),
            },
        }
    }

    fn rows_of_select(&self, select: &Select, env: &Env<'_>) -> Rows {
        if select.targets.iter().any(|target| self.may_make_rows(&target.value)) {
            let rows = match (select.from.as_slice(), select.targets.as_slice()) {
                ([], [only]) => self.rows_of_function(&only.value),
                _ => Rows::unknown_part(RowsReason::NotKnown),
            };
            return rows;
        }
        if yields_one_row(select) {
            return Rows::at_most(1, RowsReason::Aggregate);
        }
        if select.from.is_empty() {
            return Rows::at_most(1, RowsReason::Listed);
        }
        let env = Env { from: &select.from, ..*env };
        Joined::new(self, &env, None, &select.from, &select.filter).rows()
    }

    /// The rows that a name of WITH stands for, with its query if it is one.
    pub(super) fn rows_of_cte<'a>(&self, name: &ObjectName, env: &Env<'a>) -> Option<(Rows, Option<&'a Query>)> {
        let (cte, env) = env.cte(name)?;
        let rows = match &cte.statement {
            QueryStatement::Select(query) => return Some((self.rows_of_query(query, &env), Some(query))),
            QueryStatement::Insert(insert) => match &insert.source {
                pgvet_syntax::ast::InsertSource::DefaultValues => Rows::at_most(1, RowsReason::Listed),
                pgvet_syntax::ast::InsertSource::Query(query) => self.rows_of_query(query, &env),
            },
            QueryStatement::Update(update) => {
                let target = self.find(&update.table.name).map(|oid| (oid, &update.table))?;
                Joined::new(self, &env, Some(target), &update.from, &update.filter).rows_of(0)
            }
            QueryStatement::Delete(delete) => {
                let target = self.find(&delete.table.name).map(|oid| (oid, &delete.table))?;
                Joined::new(self, &env, Some(target), &delete.using, &delete.filter).rows_of(0)
            }
            QueryStatement::Merge(_) => Rows::unknown_part(RowsReason::NotKnown),
        };
        Some((rows, None))
    }

    /// Returns what is known of the rows of a table before any condition.
    pub(in crate::execute) fn rows_of_table(&self, oid: Oid) -> Rows {
        let relation = self.catalog.relation(oid);
        let is_new = !matches!(self.visibility(oid), Visibility::Existing);
        let has_all =
            matches!(relation.kind, RelationKind::Table) && relation.children.is_empty() && !relation.is_partition();
        if is_new && has_all && relation.known {
            match (relation.birth.filled, relation.birth.at_most) {
                (false, _) => return Rows::at_most(0, RowsReason::FilledHere),
                (true, Some(rows)) => return Rows::at_most(rows, RowsReason::FilledHere),
                (true, None) => {}
            }
        }
        if relation.kind.is_table() && self.catalog.has_one_row(relation) {
            return Rows::at_most(1, RowsReason::OneRowTable);
        }
        Rows::all(RowsReason::NoCondition)
    }

    /// The rows of ROWS FROM: as many as the longest list.
    pub(super) fn rows_of_functions(&self, calls: &[Expr]) -> Rows {
        let rows = calls.iter().map(|call| self.rows_of_function(call));
        rows.reduce(Rows::or_more).unwrap_or_else(|| Rows::unknown_part(RowsReason::NotKnown))
    }

    fn rows_of_function(&self, call: &Expr) -> Rows {
        let unknown = || Rows::unknown_part(RowsReason::GivenAtRunTime);
        let ExprKind::Call(function) = &call.kind else { return unknown() };
        let number = |at: usize| function.arguments.get(at).and_then(|argument| self.whole_number(&argument.value));
        match (function.name.as_str(), function.arguments.as_slice()) {
            // Shorter arrays are filled up with NULL.
            ("unnest", [_, ..]) => {
                let length = |array: &Expr| match &array.kind {
                    ExprKind::Array(list) => Some(list.len() as u64),
                    _ => self.length_of(array),
                };
                let lengths: Option<Vec<u64>> =
                    function.arguments.iter().map(|argument| length(&argument.value)).collect();
                let longest = lengths.and_then(|lengths| lengths.into_iter().max());
                longest.map_or_else(unknown, |rows| Rows::at_most(rows, RowsReason::Listed))
            }
            ("generate_series", [_, _]) => match (number(0), number(1)) {
                (Some(from), Some(to)) => {
                    let rows = u64::try_from(to.saturating_sub(from).saturating_add(1)).unwrap_or(0);
                    Rows::at_most(rows, RowsReason::Listed)
                }
                _ => unknown(),
            },
            _ if self.may_make_rows(call) => unknown(),
            _ => Rows::at_most(1, RowsReason::Listed),
        }
    }

    /// Whether an expression calls a function that may yield several rows.
    fn may_make_rows(&self, expression: &Expr) -> bool {
        let mut found = false;
        expression.walk(&mut |part| found |= matches!(&part.kind, ExprKind::Call(call) if self.may_return_set(call)));
        found
    }

    /// Whether a function may yield several rows for one, or none.
    pub(super) fn may_return_set(&self, call: &FunctionCall) -> bool {
        let known = builtin::functions(&call.name);
        let own = self.called_functions(call);
        let own_yields_set = own.iter().any(|oid| self.catalog.get_function(*oid).is_none_or(|one| one.returns_set));
        let is_unknown = known.is_empty() && own.is_empty();
        call.window.is_none() && (is_unknown || own_yields_set || known.iter().any(|one| one.returns_set))
    }

    /// The value of an expression, if it is a whole number.
    pub(in crate::execute) fn whole_number(&self, expression: &Expr) -> Option<i64> {
        self.value(expression)?.as_integer()
    }

    /// The number of elements of an array, if they are known.
    pub(super) fn length_of(&self, array: &Expr) -> Option<u64> {
        self.value(array)?.length_of_list()
    }
}

/// The rows of a relation of PostgreSQL itself.
pub(super) fn rows_of_system_relation(name: &ObjectName) -> Rows {
    let is_large = builtin::is_of_large_objects(&name.name.text);
    Rows::unknown_part(if is_large { RowsReason::NotKnown } else { RowsReason::SystemCatalog })
}

impl Joined<'_> {
    /// How many rows the whole result has.
    pub(super) fn rows(&self) -> Rows {
        let mut product = 1_u64;
        let mut unbounded = Vec::new();
        for (at, bound) in self.bounds.iter().enumerate() {
            match bound {
                Some(bound) => product = product.saturating_mul(bound.factor),
                None => unbounded.push(self.rows_of(at)),
            }
        }
        if unbounded.is_empty() && self.members.iter().any(|member| member.optional) {
            // A row that an outer join does not find counts all the same.
            let all = self.bounds.iter().flatten().fold(1_u64, |all, bound| all.saturating_mul(bound.rows.max(1)));
            return Rows::at_most(all, RowsReason::Listed);
        }
        let has_table = (0..self.members.len()).any(|at| self.bounds[at].is_none() && self.table(at).is_some());
        let reason = |bounds: &[Option<super::Bound>]| bounds.iter().flatten().next().map(|bound| bound.reason.clone());
        match unbounded.into_iter().reduce(Rows::or_more) {
            None => Rows::at_most(product, reason(&self.bounds).unwrap_or(RowsReason::Listed)),
            Some(rows) if rows.extent == Extent::UnknownPart && has_table && self.has_only_joins() => {
                Rows::all(RowsReason::NoCondition)
            }
            Some(rows) => rows,
        }
    }
}
