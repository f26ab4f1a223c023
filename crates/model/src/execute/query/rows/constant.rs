//! Which member an expression is about, and which expressions have one value for the whole statement.

use super::{Joined, Source};
use crate::builtin::{self, Volatility};
use crate::execute::Executor;
use crate::execute::query::Env;
use pgvet_syntax::ast::{Expr, ExprKind, FromItem, FunctionCall, Part, Query, QueryBody, RelationRef, SubqueryKind};
use smol_str::SmolStr;

/// The meaning of a column path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Member(usize),
    /// A variable, or a row that the statement is given: one value.
    Nobody,
    /// A query around this one, or it cannot be told.
    Elsewhere,
}

impl Joined<'_> {
    pub(super) fn owner(&self, path: &[SmolStr]) -> Owner {
        let Some((column, qualifier)) = path.split_last() else { return Owner::Elsewhere };
        if let Some(qualifier) = qualifier.last() {
            return match self.named.get(qualifier) {
                Some(at) => Owner::Member(*at),
                None if self.env.is_named_outside(qualifier) => Owner::Elsewhere,
                None => Owner::Nobody,
            };
        }
        let has: Vec<Option<bool>> = (0..self.members.len()).map(|at| self.has_column(at, column)).collect();
        let mut owners = (0..has.len()).filter(|at| has[*at] == Some(true));
        match (owners.next(), owners.next()) {
            (Some(only), None) if !has.contains(&None) || has.len() == 1 => Owner::Member(only),
            (Some(_), _) => Owner::Elsewhere,
            (None, _) if has.contains(&None) && has.len() == 1 => Owner::Member(0),
            (None, _) if has.contains(&None) || self.executor.is_column_outside(column, self.env) => Owner::Elsewhere,
            (None, _) => Owner::Nobody,
        }
    }

    /// Whether a member has a column of this name; `None` where its columns are not known.
    pub(super) fn has_column(&self, at: usize, name: &SmolStr) -> Option<bool> {
        let member = &self.members[at];
        if member.columns.contains(name) {
            return Some(true);
        }
        match &member.source {
            Source::Table { oid, .. } => {
                let relation = self.executor.catalog.relation(*oid);
                let found = relation.column(name).is_some() || name == "ctid";
                (found || relation.known).then_some(found)
            }
            Source::Query { query, .. } if member.columns.is_empty() => query.and_then(|query| yields(query, name)),
            Source::Query { .. } | Source::Other(_) => None,
        }
    }

    /// The members whose rows decide the value of an expression; `None` where something else does, such as a volatile
    /// function, a query around this one or a subquery that is run for each row.
    pub(super) fn members_of(&self, expression: &Expr) -> Option<Vec<usize>> {
        let (mut members, mut is_known) = (Vec::new(), true);
        expression.walk(&mut |part| match &part.kind {
            ExprKind::Column(path) => match self.owner(path) {
                Owner::Member(at) if !members.contains(&at) => members.push(at),
                Owner::Member(_) | Owner::Nobody => {}
                Owner::Elsewhere => is_known = false,
            },
            ExprKind::Call(call) => is_known &= !self.executor.may_be_volatile(call),
            ExprKind::Subquery { kind: SubqueryKind::Scalar | SubqueryKind::Array, query, .. } => {
                is_known &= self.is_independent(query);
            }
            ExprKind::Subquery { .. } | ExprKind::Star(_) | ExprKind::Other(..) => is_known = false,
            _ => {}
        });
        is_known.then_some(members)
    }

    /// Whether an expression has the same value for all rows.
    pub(super) fn is_constant(&self, expression: &Expr) -> bool {
        self.members_of(expression).is_some_and(|members| members.is_empty())
    }

    /// Whether a subquery names no column of this statement or of one around it.
    pub(super) fn is_independent(&self, query: &Query) -> bool {
        self.names_only_own(query, |column| self.is_nowhere(column))
    }

    /// Whether a value looks like the same for all rows: what a subquery yields from a table that no migration shows is
    /// mostly a column of that table, even where a table of this statement has one of the name, too.
    pub(super) fn seems_constant(&self, expression: &Expr) -> bool {
        match &expression.kind {
            ExprKind::Subquery { kind: SubqueryKind::Scalar, query, .. } => {
                self.names_only_own(query, |column| self.is_nowhere(column) || yields(query, column) == Some(true))
            }
            ExprKind::Cast { operand, .. } => self.seems_constant(operand),
            _ => self.is_constant(expression),
        }
    }

    /// Whether no member is known to have the column.
    fn is_nowhere(&self, column: &SmolStr) -> bool {
        (0..self.members.len()).all(|at| self.has_column(at, column) != Some(true))
    }

    /// Whether all columns that a subquery names are its own. `may_be_unseen` says so of a name that only a table that no
    /// migration shows can have.
    fn names_only_own(&self, query: &Query, may_be_unseen: impl Fn(&SmolStr) -> bool) -> bool {
        let mut reads: Vec<&RelationRef> = Vec::new();
        let mut paths: Vec<&[SmolStr]> = Vec::new();
        let mut names: Vec<&SmolStr> = Vec::new();
        query.visit(&mut |part| match part {
            Part::Read(relation) => reads.push(relation),
            Part::Expr(Expr { kind: ExprKind::Column(path), .. }) => paths.push(path),
            Part::Query(Query { body: QueryBody::Select(select), .. }) => {
                select.from.iter().for_each(|item| add_aliases(item, &mut names));
            }
            _ => {}
        });
        let tables: Vec<_> = reads.iter().map(|read| self.executor.find(&read.name)).collect();
        let tables: Vec<_> = tables.into_iter().map(|oid| oid.map(|oid| self.executor.catalog.relation(oid))).collect();
        let is_unseen = tables.iter().any(|table| table.is_none_or(|table| !table.known));
        let is_own = |column: &SmolStr| {
            column == "ctid" && !reads.is_empty()
                || tables.iter().flatten().any(|table| table.column(column).is_some())
                // The name is of the innermost query that has it.
                || is_unseen && may_be_unseen(column)
        };
        paths.into_iter().all(|path| match path {
            [column] => is_own(column) || self.owner(path) == Owner::Nobody,
            [.., qualifier, _] => {
                reads.iter().any(|read| read.called() == qualifier)
                    || names.contains(&qualifier)
                    || self.owner(path) == Owner::Nobody
            }
            [] => false,
        })
    }
}

fn add_aliases<'q>(item: &'q FromItem, names: &mut Vec<&'q SmolStr>) {
    match item {
        FromItem::Subquery { alias: Some(alias), .. } | FromItem::Function { alias: Some(alias), .. } => {
            names.push(&alias.name);
        }
        FromItem::Join { left, right, .. } => {
            add_aliases(left, names);
            add_aliases(right, names);
        }
        _ => {}
    }
}

/// Whether a query has an output column of this name; `None` where a star yields columns.
fn yields(query: &Query, name: &SmolStr) -> Option<bool> {
    match &query.body {
        QueryBody::Select(select) => {
            let mut has_star = false;
            let mut is_it = |target: &pgvet_syntax::ast::Target| match (&target.alias, &target.value.kind) {
                (Some(alias), _) => alias == name,
                (None, ExprKind::Column(path)) => path.last() == Some(name),
                (None, ExprKind::Call(call)) => call.name == *name,
                (None, ExprKind::Star(_)) => {
                    has_star = true;
                    false
                }
                _ => false,
            };
            let found = select.targets.iter().any(&mut is_it);
            (found || !has_star).then_some(found)
        }
        QueryBody::Values(_) => Some(name.starts_with("column")),
        QueryBody::SetOperation { left, .. } => yields(left, name),
    }
}

impl Env<'_> {
    /// Whether a query around this one reads something under this name.
    fn is_named_outside(&self, name: &SmolStr) -> bool {
        self.around().any(|env| {
            env.target.is_some_and(|target| target.called() == name)
                || env.from.iter().any(|item| is_in(item, &|called| called == name))
        })
    }
}

impl Executor<'_> {
    /// Whether an unqualified name may be a column of a query around this one.
    fn is_column_outside(&self, column: &SmolStr, env: &Env<'_>) -> bool {
        let may_have = |relation: &RelationRef| {
            let found = self.find(&relation.name).map(|oid| self.catalog.relation(oid));
            found.is_none_or(|relation| !relation.known || relation.column(column).is_some())
        };
        env.around().any(|env| env.target.is_some_and(may_have) || env.from.iter().any(|item| has_any(item, &may_have)))
    }

    /// Whether a function may yield another value each time.
    pub(super) fn may_be_volatile(&self, call: &FunctionCall) -> bool {
        let own = self.called_functions(call);
        let is_volatile = |oid| {
            let function = self.catalog.get_function(oid);
            function.is_none_or(|function| function.volatility == Volatility::Volatile || function.returns_set)
        };
        let known = builtin::functions_called(call);
        if own.is_empty() {
            return known.is_empty()
                || known.iter().any(|one| one.volatility == Volatility::Volatile || one.returns_set);
        }
        own.into_iter().any(is_volatile)
    }
}

fn is_in(item: &FromItem, is_it: &dyn Fn(&SmolStr) -> bool) -> bool {
    match item {
        FromItem::Relation(relation) => is_it(relation.called()),
        FromItem::Subquery { alias, .. } | FromItem::Function { alias, .. } => {
            alias.as_ref().is_some_and(|alias| is_it(&alias.name))
        }
        FromItem::Join { left, right, .. } => is_in(left, is_it) || is_in(right, is_it),
    }
}

/// Whether a table may have the column, or something has columns that are not looked at.
fn has_any(item: &FromItem, may_have: &dyn Fn(&RelationRef) -> bool) -> bool {
    match item {
        FromItem::Relation(relation) => may_have(relation),
        FromItem::Subquery { .. } | FromItem::Function { .. } => true,
        FromItem::Join { left, right, .. } => has_any(left, may_have) || has_any(right, may_have),
    }
}
