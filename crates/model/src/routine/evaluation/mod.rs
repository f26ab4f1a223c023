//! How often one run of a statement evaluates each function call in it, and changes rows of a table, at most.
//!
//! A function in FROM runs once, unless its arguments are columns of an item before it; one in WHERE runs for each
//! row that is read, and one in the list of a query for each row that comes out. A subquery that uses no column of the
//! query around it runs once for all of its rows. `crates/xtask/tests/integration/subtransactions.rs` counts all of that on servers.

mod change;
mod from;

#[cfg(test)]
mod tests;

use super::Bound;
use crate::catalog::{Catalog, SearchPath};
use crate::expression::{aggregates, yields_one_row};
use from::Item;
use pgvet_syntax::ast::{
    Ast, Expr, ExprKind, FunctionCall, Literal, ObjectName, Query, QueryBody, QueryStatement, Select, Target, With,
};
use smol_str::SmolStr;

/// Work that a statement repeats.
#[derive(Debug, Clone, Copy)]
pub(super) enum Evaluated<'a> {
    Call(&'a FunctionCall),
    Insert(&'a ObjectName),
    Update(&'a ObjectName),
    Delete(&'a ObjectName),
}

/// Calls `found` for everything that a statement evaluates, with how often it does at most. Of its result `one_row` is
/// taken, or all.
pub(super) fn evaluate<'a>(
    ast: &'a Ast,
    one_row: bool,
    catalog: &Catalog,
    search_path: &SearchPath,
    found: &mut dyn FnMut(Evaluated<'a>, Bound),
) {
    let taken = if one_row { ONCE } else { Bound::Unbounded };
    Evaluation { catalog, search_path, found, ctes: Vec::new(), items: Vec::new() }.statement(ast, taken);
}

/// How many rows a query has at most.
pub(super) fn rows_of(query: &Query, catalog: &Catalog, search_path: &SearchPath) -> Bound {
    let mut ignore = |_: Evaluated<'_>, _: Bound| {};
    Evaluation { catalog, search_path, found: &mut ignore, ctes: Vec::new(), items: Vec::new() }.query(
        query,
        ONCE,
        Bound::Unbounded,
    )
}

const ONCE: Bound = Bound::AtMost(1);

struct Evaluation<'e, 'a> {
    catalog: &'e Catalog,
    search_path: &'e SearchPath,
    found: &'e mut dyn FnMut(Evaluated<'a>, Bound),
    /// The names of WITH that are in scope, and how many rows each has.
    ctes: Vec<(&'a SmolStr, Bound)>,
    /// The items of the FROM clauses of this query and of those around it, the innermost last.
    items: Vec<Item<'a>>,
}

/// How often something is evaluated: for each row, and for each run of its query.
#[derive(Debug, Clone, Copy)]
struct Times {
    rows: Bound,
    runs: Bound,
}

impl<'a> Evaluation<'_, 'a> {
    /// The rows that a statement yields or changes.
    fn statement(&mut self, ast: &'a Ast, taken: Bound) -> Bound {
        match ast {
            Ast::Select(query) | Ast::DeclareCursor(query) => self.query(query, ONCE, taken),
            Ast::Insert(insert) => self.scoped(|scope| scope.insert(insert, ONCE)),
            Ast::Update(update) => self.scoped(|scope| scope.update(update, ONCE)),
            Ast::Delete(delete) => self.scoped(|scope| scope.delete(delete, ONCE)),
            Ast::Merge(merge) => self.scoped(|scope| scope.merge(merge, ONCE)),
            Ast::CreateTableAs(create) => {
                create.query.as_ref().map_or(Bound::ZERO, |query| self.query(query, ONCE, Bound::Unbounded))
            }
            Ast::Copy(copy) => copy.query.as_ref().map_or(Bound::ZERO, |query| self.query_statement(query, ONCE)),
            Ast::Explain(explain) => self.statement(&explain.statement, taken),
            Ast::Prepare(prepare) => self.statement(&prepare.statement, taken),
            Ast::Call(call) => {
                (self.found)(Evaluated::Call(&call.call), ONCE);
                let arguments = call.call.arguments.iter().map(|argument| &argument.value);
                self.all(arguments, Times { rows: ONCE, runs: ONCE });
                ONCE
            }
            _ => Bound::ZERO,
        }
    }

    fn query_statement(&mut self, statement: &'a QueryStatement, runs: Bound) -> Bound {
        match statement {
            QueryStatement::Select(query) => self.query(query, runs, Bound::Unbounded),
            QueryStatement::Insert(insert) => self.scoped(|scope| scope.insert(insert, runs)),
            QueryStatement::Update(update) => self.scoped(|scope| scope.update(update, runs)),
            QueryStatement::Delete(delete) => self.scoped(|scope| scope.delete(delete, runs)),
            QueryStatement::Merge(merge) => self.scoped(|scope| scope.merge(merge, runs)),
        }
    }

    /// Runs `statement`, and then drops the items that it brought into scope.
    fn scoped(&mut self, statement: impl FnOnce(&mut Self) -> Bound) -> Bound {
        let (ctes, items) = (self.ctes.len(), self.items.len());
        let rows = statement(self);
        self.ctes.truncate(ctes);
        self.items.truncate(items);
        rows
    }

    /// The rows of one run of a query, of which no more than `taken` are computed.
    fn query(&mut self, query: &'a Query, runs: Bound, taken: Bound) -> Bound {
        let once = Times { rows: runs, runs };
        let limit = query.limit.as_ref().and_then(number).map_or(taken, Bound::AtMost).min(taken);
        let rows = self.scoped(|scope| {
            scope.with(query.with.as_ref(), runs);
            match &query.body {
                QueryBody::Select(select) => scope.select(select, &query.order_by, limit, runs),
                QueryBody::Values(rows) => {
                    scope.all(rows.iter().flatten(), once);
                    Bound::AtMost(rows.len() as u64)
                }
                QueryBody::SetOperation { left, right, .. } => {
                    scope.query(left, runs, Bound::Unbounded) + scope.query(right, runs, Bound::Unbounded)
                }
            }
        });
        self.all(query.limit.iter().chain(&query.offset), once);
        rows.min(limit)
    }

    fn with(&mut self, with: Option<&'a With>, runs: Bound) {
        let Some(with) = with else { return };
        for cte in &with.ctes {
            if with.recursive {
                self.ctes.push((&cte.name.text, Bound::Unbounded));
            }
            let rows = self.query_statement(&cte.statement, runs);
            if !with.recursive {
                self.ctes.push((&cte.name.text, rows));
            }
        }
    }

    fn select(&mut self, select: &'a Select, order_by: &'a [Expr], limit: Bound, runs: Bound) -> Bound {
        let read = self.from(None, &select.from, select.filter.as_ref(), runs);
        let per_row = Times { rows: runs * read, runs };
        let before_output = select.filter.iter().chain(&select.group_by).chain(&select.having).chain(&select.windows);
        self.all(before_output.chain(select.distinct.iter().flatten()).chain(order_by), per_row);
        if yields_one_row(select) {
            self.aggregated(&select.targets, per_row);
            return ONCE;
        }
        let is_cut = select.group_by.is_empty() && select.distinct.is_none() && select.windows.is_empty();
        let returned = if is_cut { read.min(limit) } else { read };
        let sets = select.targets.iter().map(|target| self.rows_of_sets(&target.value));
        let returned = sets.fold(returned, |rows, set| rows * set);
        self.all(select.targets.iter().map(|target| &target.value), Times { rows: runs * returned, runs });
        returned
    }

    /// Evaluates expressions around an aggregate once, and its arguments for each row.
    fn aggregated(&mut self, targets: &'a [Target], per_row: Times) {
        let once = Times { rows: per_row.runs, ..per_row };
        for target in targets {
            let inner = aggregates(&target.value);
            target.value.walk(&mut |part| {
                let is_inside = inner.iter().any(|call| {
                    let range = call.arguments.iter().map(|argument| argument.value.range);
                    range.into_iter().any(|range| range.contains(part.range))
                });
                self.one(part, if is_inside { per_row } else { once });
            });
        }
    }

    fn all(&mut self, expressions: impl IntoIterator<Item = &'a Expr>, times: Times) {
        for expression in expressions {
            expression.walk(&mut |part| self.one(part, times));
        }
    }

    fn one(&mut self, part: &'a Expr, times: Times) {
        match &part.kind {
            ExprKind::Call(call) => (self.found)(Evaluated::Call(call), times.rows),
            ExprKind::Subquery { query, .. } => {
                let runs = if self.is_correlated(query) { times.rows } else { times.rows.min(times.runs) };
                self.query(query, runs, Bound::Unbounded);
            }
            _ => {}
        }
    }
}

/// A whole number that is written out.
pub(super) fn number(expression: &Expr) -> Option<u64> {
    match &expression.kind {
        ExprKind::Literal(Literal::Integer(number)) => u64::try_from(*number).ok(),
        ExprKind::Cast { operand, .. } => number(operand),
        _ => None,
    }
}
