//! How many rows a query yields.

use super::{Env, is_always_true};
use crate::ast::{Expr, ExprKind, FromItem, Query, QueryBody, Select};
use crate::builtin;
use crate::execute::Executor;
use crate::execute::record::Reach;
use crate::expression::yields_one_row;

impl Executor<'_> {
    pub(super) fn rows_of(&self, query: &Query, env: &Env<'_>) -> Reach {
        if self.reads_whole_table(query, env) {
            Reach::All
        } else if self.yields_few(query, env) {
            self.outside_of_code(Reach::Few)
        } else {
            Reach::Some
        }
    }

    /// Code may do the same over and over.
    pub(super) fn outside_of_code(&self, reach: Reach) -> Reach {
        if self.text_at == Some(0) { reach } else { Reach::Some }
    }

    /// Does a query yield as many rows as a table that may have many?
    fn reads_whole_table(&self, query: &Query, env: &Env<'_>) -> bool {
        if query.limit.is_some() {
            return false;
        }
        match &query.body {
            QueryBody::Values(_) => false,
            QueryBody::SetOperation { left, right, .. } => {
                self.reads_whole_table(left, env) || self.reads_whole_table(right, env)
            }
            QueryBody::Select(select) => {
                select.filter.as_ref().is_none_or(is_always_true)
                    && !yields_one_row(select)
                    && select.from.iter().any(|item| self.is_large(item, env))
            }
        }
    }

    fn is_large(&self, item: &FromItem, env: &Env<'_>) -> bool {
        match item {
            FromItem::Relation(relation) if env.is_cte(&relation.name) || self.is_system_relation(&relation.name) => {
                false
            }
            FromItem::Relation(relation) => {
                self.find(&relation.name).is_none_or(|oid| self.visibility(oid).may_have_rows())
            }
            FromItem::Subquery { query, .. } => self.reads_whole_table(query, env),
            FromItem::Function { .. } => false,
            FromItem::Join { left, right, .. } => self.is_large(left, env) || self.is_large(right, env),
        }
    }

    /// Does a query yield rows that are written out, or at most as many as the system catalogs have?
    fn yields_few(&self, query: &Query, env: &Env<'_>) -> bool {
        match &query.body {
            QueryBody::Values(_) => true,
            QueryBody::SetOperation { left, right, .. } => self.yields_few(left, env) && self.yields_few(right, env),
            QueryBody::Select(select) => self.selects_few(select, env),
        }
    }

    fn selects_few(&self, select: &Select, env: &Env<'_>) -> bool {
        let makes_rows = select.targets.iter().any(|target| may_make_rows(&target.value));
        !makes_rows && (yields_one_row(select) || select.from.iter().all(|item| self.is_few(item, env)))
    }

    fn is_few(&self, item: &FromItem, env: &Env<'_>) -> bool {
        match item {
            FromItem::Relation(relation) => {
                !env.is_cte(&relation.name)
                    && self.is_system_relation(&relation.name)
                    && !builtin::is_of_large_objects(&relation.name.name.text)
            }
            FromItem::Subquery { query, .. } => self.yields_few(query, env),
            FromItem::Function { .. } => false,
            FromItem::Join { left, right, .. } => self.is_few(left, env) && self.is_few(right, env),
        }
    }
}

/// May it call a function that returns several rows?
fn may_make_rows(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        if let ExprKind::Call(call) = &part.kind {
            let known = builtin::functions(&call.name);
            found |= known.is_empty() || known.iter().any(|function| function.returns_set);
        }
    });
    found
}
