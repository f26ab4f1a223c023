//! The items that a FROM clause reads, and their numbers of rows.

use super::{Evaluation, ONCE, Times, number};
use crate::builtin;
use crate::catalog::Oid;
use crate::routine::Bound;
use pgvet_syntax::ast::{
    Alias, Expr, ExprKind, FromItem, FunctionCall, JoinKind, OperatorForm, Part, Query, RelationRef,
};
use smol_str::SmolStr;
use std::ops::Range;

/// One thing that a FROM clause reads.
#[derive(Debug)]
pub(super) struct Item<'a> {
    /// The alias, or the name of the relation or function.
    name: Option<&'a SmolStr>,
    /// The names that the alias gives to columns.
    columns: &'a [SmolStr],
    /// `None`: nobody knows its columns.
    relation: Option<Oid>,
    /// A unique index finds it, for each row of those that were read before it.
    by_key: bool,
    /// For each row of those before it.
    rows: Bound,
}

impl<'a> Item<'a> {
    fn new(name: Option<&'a SmolStr>, alias: Option<&'a Alias>, relation: Option<Oid>) -> Self {
        let name = alias.map(|alias| &alias.name).or(name);
        let columns = alias.map_or(&[][..], |alias| &alias.columns);
        Self { name, columns, relation, by_key: false, rows: Bound::Unbounded }
    }
}

/// `column = value` of a condition: the item with that column, and those that the value is made of.
struct Equality<'a> {
    item: usize,
    column: &'a SmolStr,
    needs: Vec<usize>,
}

impl<'a> Evaluation<'_, 'a> {
    /// Goes through a FROM clause, and says how many rows come out of it. Its items stay in scope.
    pub(super) fn from(
        &mut self,
        target: Option<&'a RelationRef>,
        items: &'a [FromItem],
        filter: Option<&'a Expr>,
        runs: Bound,
    ) -> Bound {
        let first = self.items.len();
        let mut equalities = Vec::new();
        if let Some(target) = target {
            self.list_relation(target);
        }
        let mut conditions = Vec::new();
        for item in items {
            self.list(item, &mut conditions);
        }
        conditions.extend(filter.map(|filter| (filter, first..self.items.len())));
        for (condition, of) in conditions {
            self.equalities(condition, first, &of, &mut equalities);
        }
        self.find_keys(first, &equalities);
        let mut at = first;
        if let Some(target) = target {
            self.read_relation(target, &mut at);
        }
        for item in items {
            self.read(item, first, &mut at, runs);
        }
        self.rows_between(first, at)
    }

    /// Adds the items of a FROM clause, and the conditions of its joins with the items that each limits.
    fn list(&mut self, item: &'a FromItem, conditions: &mut Vec<(&'a Expr, Range<usize>)>) {
        match item {
            FromItem::Relation(relation) => self.list_relation(relation),
            FromItem::Subquery { alias, .. } => self.items.push(Item::new(None, alias.as_ref(), None)),
            FromItem::Function { calls, alias, .. } => {
                let name = match calls.as_slice() {
                    [Expr { kind: ExprKind::Call(call), .. }] => Some(&call.name),
                    _ => None,
                };
                self.items.push(Item::new(name, alias.as_ref(), None));
            }
            FromItem::Join { kind, left, right, on, .. } => {
                let start = self.items.len();
                self.list(left, conditions);
                let middle = self.items.len();
                self.list(right, conditions);
                let limited = match kind {
                    JoinKind::Inner => start..self.items.len(),
                    JoinKind::Left => middle..self.items.len(),
                    JoinKind::Right => start..middle,
                    JoinKind::Full | JoinKind::Natural => return,
                };
                conditions.extend(on.as_ref().map(|on| (on, limited)));
            }
        }
    }

    fn list_relation(&mut self, relation: &'a RelationRef) {
        let name = &relation.name;
        let oid = match self.cte(relation) {
            Some(_) => None,
            None => self.catalog.find_relation(name, self.search_path),
        };
        self.items.push(Item::new(Some(&name.name.text), relation.alias.as_ref(), oid));
    }

    fn cte(&self, relation: &RelationRef) -> Option<Bound> {
        let name = &relation.name;
        let found = self.ctes.iter().rev().find(|(cte, _)| name.schema.is_none() && **cte == name.name.text);
        found.map(|(_, rows)| *rows)
    }

    /// The equalities that hold for every row that the condition lets pass.
    fn equalities(&self, condition: &'a Expr, first: usize, of: &Range<usize>, found: &mut Vec<Equality<'a>>) {
        match &condition.kind {
            ExprKind::And(conditions) => conditions.iter().for_each(|one| self.equalities(one, first, of, found)),
            ExprKind::Operator { operator, form: OperatorForm::Plain, operands, .. } if operator == "=" => {
                let [left, right] = operands.as_slice() else { return };
                for (column, value) in [(left, right), (right, left)] {
                    let ExprKind::Column(path) = &column.kind else { continue };
                    let owner = self.owner(path, first).filter(|owner| of.contains(owner));
                    if let (Some(item), Some(column), Some(needs)) = (owner, path.last(), self.used(value, first)) {
                        found.push(Equality { item, column, needs });
                    }
                }
            }
            _ => {}
        }
    }

    /// The item of this FROM clause that has a column.
    fn owner(&self, path: &[SmolStr], first: usize) -> Option<usize> {
        let mut owners = (first..self.items.len()).filter(|item| self.has(&self.items[*item], path));
        owners.next().filter(|_| owners.next().is_none())
    }

    /// Whether a name may mean a column of the item, or all of it.
    fn has(&self, item: &Item<'_>, path: &[SmolStr]) -> bool {
        let [qualifier @ .., column] = path else { return false };
        if let Some(qualifier) = qualifier.last() {
            return item.name == Some(qualifier);
        }
        let in_relation = item.relation.is_some_and(|oid| self.catalog.relation(oid).column(column).is_some());
        in_relation || item.columns.contains(column) || item.name == Some(column)
    }

    /// The items of this FROM clause that a value is made of; `None`: nobody knows.
    fn used(&self, value: &Expr, first: usize) -> Option<Vec<usize>> {
        let mut used = Some(Vec::new());
        value.walk(&mut |part| match &part.kind {
            ExprKind::Column(path) => {
                let items = (first..self.items.len()).filter(|item| self.has(&self.items[*item], path));
                used.iter_mut().for_each(|used| used.extend(items.clone()));
            }
            ExprKind::Subquery { query, .. } if self.is_correlated(query) => used = None,
            ExprKind::Star(_) => used = None,
            _ => {}
        });
        used
    }

    /// Finds the items of which a unique index gives one row for each row of those that were read before.
    fn find_keys(&mut self, first: usize, equalities: &[Equality<'a>]) {
        let mut is_read = vec![false; self.items.len()];
        is_read[..first].fill(true);
        while let Some(next) = is_read.iter().position(|read| !read) {
            let found =
                (first..self.items.len()).find(|item| !is_read[*item] && self.is_by_key(*item, equalities, &is_read));
            if let Some(item) = found {
                self.items[item].by_key = true;
            }
            is_read[found.unwrap_or(next)] = true;
        }
    }

    fn is_by_key(&self, item: usize, equalities: &[Equality<'a>], is_read: &[bool]) -> bool {
        let Some(oid) = self.items[item].relation else { return false };
        let is_given = |column: &SmolStr| {
            let own = |one: &&Equality<'_>| one.item == item && one.column == column;
            equalities.iter().filter(own).any(|one| one.needs.iter().all(|needed| is_read[*needed]))
        };
        let indexes = self.catalog.relation(oid).indexes.iter().filter_map(|oid| self.catalog.relation(*oid).index());
        indexes
            .filter(|index| index.unique && index.valid && index.predicate.is_none())
            .any(|index| index.plain_columns().is_some_and(|columns| columns.iter().all(&is_given)))
    }

    /// Evaluates the expressions of an item.
    fn read(&mut self, item: &'a FromItem, first: usize, at: &mut usize, runs: Bound) {
        match item {
            FromItem::Relation(relation) => self.read_relation(relation, at),
            FromItem::Subquery { query, lateral: true, .. } => {
                let rows = self.query(query, runs * self.rows_between(first, *at), Bound::Unbounded);
                self.has_read(rows, at);
            }
            FromItem::Subquery { query, .. } => {
                // It does not see the items beside it.
                let hidden = self.items.split_off(first);
                let rows = self.query(query, runs, Bound::Unbounded);
                self.items.extend(hidden);
                self.has_read(rows, at);
            }
            FromItem::Function { calls, .. } => {
                let before = first..*at;
                let is_lateral = calls.iter().any(|call| self.uses(call, before.clone()));
                let times = if is_lateral { runs * self.rows_between(first, *at) } else { runs };
                self.all(calls, Times { rows: times, runs });
                let rows = match calls.as_slice() {
                    [Expr { kind: ExprKind::Call(call), .. }] => self.rows_of_call(call),
                    _ => None,
                };
                let rows = rows.unwrap_or(Bound::Unbounded);
                self.has_read(rows, at);
            }
            FromItem::Join { left, right, on, .. } => {
                self.read(left, first, at, runs);
                self.read(right, first, at, runs);
                self.all(on, Times { rows: runs * self.rows_between(first, *at), runs });
            }
        }
    }

    fn read_relation(&mut self, relation: &'a RelationRef, at: &mut usize) {
        let rows = match (self.cte(relation), self.items[*at].relation) {
            (Some(rows), _) => rows,
            (None, Some(oid)) if self.catalog.has_one_row(self.catalog.relation(oid)) => ONCE,
            _ => Bound::Unbounded,
        };
        self.has_read(rows, at);
    }

    fn has_read(&mut self, rows: Bound, at: &mut usize) {
        let item = &mut self.items[*at];
        item.rows = if item.by_key { ONCE } else { rows };
        *at += 1;
    }

    fn rows_between(&self, from: usize, to: usize) -> Bound {
        self.items[from..to].iter().fold(ONCE, |rows, item| rows * item.rows)
    }

    fn uses(&self, expression: &Expr, items: Range<usize>) -> bool {
        let mut uses = false;
        expression.walk(&mut |part| match &part.kind {
            ExprKind::Column(path) => uses |= self.items[items.clone()].iter().any(|item| self.has(item, path)),
            ExprKind::Star(path) => {
                uses |= self.items[items.clone()].iter().any(|item| item.name.is_some() && item.name == path.last());
            }
            _ => {}
        });
        uses
    }

    /// Whether a subquery uses columns of the queries around it.
    pub(super) fn is_correlated(&self, query: &Query) -> bool {
        let mut own: Vec<Item<'_>> = Vec::new();
        let mut used: Vec<&[SmolStr]> = Vec::new();
        query.visit(&mut |part| match part {
            Part::Read(relation) => {
                let oid = self.catalog.find_relation(&relation.name, self.search_path);
                own.push(Item::new(Some(&relation.name.name.text), relation.alias.as_ref(), oid));
            }
            Part::Expr(Expr { kind: ExprKind::Column(path), .. }) => used.push(path),
            _ => {}
        });
        used.into_iter().any(|path| {
            let has = |item: &Item<'_>| self.has(item, path);
            self.items.iter().any(has) && !own.iter().any(has)
        })
    }

    /// How many rows an expression yields because of the functions in it that return sets.
    pub(super) fn rows_of_sets(&self, expression: &Expr) -> Bound {
        let mut rows = ONCE;
        expression.walk(&mut |part| {
            if let ExprKind::Call(call) = &part.kind {
                rows = rows * self.rows_of_call(call).unwrap_or(ONCE);
            }
        });
        rows
    }

    /// `None`: no migration shows the function.
    fn rows_of_call(&self, call: &FunctionCall) -> Option<Bound> {
        let called = self.catalog.functions_called(call, self.search_path);
        let mut own = called.into_iter().filter_map(|oid| self.catalog.get_function(oid)).peekable();
        if own.peek().is_some() {
            return Some(if own.any(|function| function.returns_set) { Bound::Unbounded } else { ONCE });
        }
        let known = builtin::functions_called(call);
        if !known.iter().any(|function| function.returns_set) {
            return (!known.is_empty()).then_some(ONCE);
        }
        let values: Vec<&Expr> = call.arguments.iter().map(|argument| &argument.value).collect();
        let numbers: Option<Vec<u64>> = values.iter().map(|value| number(value)).collect();
        Some(match (call.name.as_str(), numbers.as_deref(), values.as_slice()) {
            ("generate_series", Some([from, to]), _) => Bound::AtMost((to + 1).saturating_sub(*from)),
            ("generate_series", Some([from, to, step]), _) if *step > 0 => {
                Bound::AtMost((to + step).saturating_sub(*from) / step)
            }
            ("unnest", _, [Expr { kind: ExprKind::Array(elements), .. }]) => Bound::AtMost(elements.len() as u64),
            _ => Bound::Unbounded,
        })
    }
}
