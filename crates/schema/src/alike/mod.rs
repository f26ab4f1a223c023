//! Whether two texts are the same expression.
//!
//! PostgreSQL writes an expression in another form than a migration: it adds casts and schemas, and resolves IN, BETWEEN
//! and LIKE. Both are parsed and brought into one form. What may still be the same, such as two spellings of an
//! interval, is not called a difference.

mod canonical;
mod literal;
mod query;

use crate::object::Source;
use canonical::canonical;
use pgvet_model::builtin;
use pgvet_syntax::ast::{
    Ast, Expr, ExprKind, FunctionParameter, PartitionBound, Query, QueryBody, SubqueryKind, TypeName,
};
use pgvet_syntax::deparse;
use pgvet_syntax::statement;
use std::sync::Arc;

/// How two texts compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Same,
    Different,
    /// They may mean the same.
    Unsure,
}

impl Verdict {
    fn and(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Different => Self::Different,
            Self::Same => other(),
            Self::Unsure if other() == Self::Different => Self::Different,
            Self::Unsure => Self::Unsure,
        }
    }

    fn of(is_same: bool) -> Self {
        if is_same { Self::Same } else { Self::Different }
    }
}

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Expression,
    Query,
    PartitionKey,
    PartitionBound,
    /// The parameters of a function.
    Parameters,
}

/// Two texts with their origin.
pub(crate) struct Texts<'a> {
    pub(crate) form: Form,
    pub(crate) sources: [Source; 2],
    pub(crate) written: [&'a str; 2],
}

impl Texts<'_> {
    pub(crate) fn compare(&self) -> Verdict {
        match self.compare_trees() {
            // One origin writes the same in one way.
            Verdict::Unsure if self.sources[0].is_of_server() == self.sources[1].is_of_server() => Verdict::Different,
            verdict => verdict,
        }
    }

    fn compare_trees(&self) -> Verdict {
        let [before, after] = self.written;
        if before.trim().trim_end_matches(';') == after.trim().trim_end_matches(';') {
            return Verdict::Same;
        }
        let alike = Alike { sources: self.sources };
        match self.form {
            Form::Expression => match (parsed(before), parsed(after)) {
                (Some(before), Some(after)) => alike.canonical(&before, &after),
                _ => Verdict::Unsure,
            },
            Form::Query => match (parsed_query(before), parsed_query(after)) {
                (Some(before), Some(after)) => alike.queries(&before, &after),
                _ => Verdict::Unsure,
            },
            Form::PartitionKey => alike.partition_keys(before, after),
            Form::Parameters => match (parameters(before), parameters(after)) {
                (Some(before), Some(after)) => alike.parameters(&before, &after),
                _ => Verdict::Unsure,
            },
            Form::PartitionBound => match (bound(before), bound(after)) {
                (Some(before), Some(after)) => alike.bounds(&before, &after),
                _ => Verdict::Unsure,
            },
        }
    }
}

/// The only statement of a text.
fn statement_of(text: &str) -> Option<Arc<Ast>> {
    let mut statements = statement::parse(text.trim().trim_end_matches(';')).into_iter();
    let first = statements.next()?.parsed.ok()?;
    statements.next().is_none().then_some(first)
}

fn parsed_query(text: &str) -> Option<Query> {
    match &*statement_of(text)? {
        Ast::Select(query) => Some((**query).clone()),
        _ => None,
    }
}

/// The only output column of `SELECT text`.
pub(crate) fn parsed(text: &str) -> Option<Expr> {
    match parsed_query(&format!("SELECT {text}"))?.body {
        QueryBody::Select(mut select) if select.targets.len() == 1 => select.targets.pop().map(|target| target.value),
        _ => None,
    }
}

fn bound(text: &str) -> Option<PartitionBound> {
    match &*statement_of(&format!("CREATE TABLE a PARTITION OF b {text}"))? {
        Ast::CreateTable(create) => create.partition_of.as_ref().map(|(_, bound)| bound.clone()),
        _ => None,
    }
}

fn parameters(text: &str) -> Option<Vec<FunctionParameter>> {
    match &*statement_of(&format!("CREATE FUNCTION f({text}) RETURNS record LANGUAGE sql AS ''"))? {
        Ast::CreateFunction(create) => Some(create.parameters.clone()),
        _ => None,
    }
}

/// Compares trees of two origins.
pub(super) struct Alike {
    sources: [Source; 2],
}

impl Alike {
    fn canonical(&self, before: &Expr, after: &Expr) -> Verdict {
        self.expressions(&canonical(before), &canonical(after))
    }

    fn lists(&self, before: &[Expr], after: &[Expr]) -> Verdict {
        if before.len() != after.len() {
            return Verdict::Different;
        }
        let pairs = before.iter().zip(after);
        pairs.fold(Verdict::Same, |verdict, (before, after)| verdict.and(|| self.canonical(before, after)))
    }

    fn parameters(&self, before: &[FunctionParameter], after: &[FunctionParameter]) -> Verdict {
        let head = |one: &FunctionParameter| (one.name.as_ref().map(|name| name.text.clone()), one.mode);
        let is_same = |(one, other): (&FunctionParameter, &FunctionParameter)| {
            head(one) == head(other) && same_type(&one.type_name, &other.type_name)
        };
        let heads = before.len() == after.len() && before.iter().zip(after).all(is_same);
        let defaults =
            |list: &[FunctionParameter]| -> Vec<Expr> { list.iter().filter_map(|one| one.default.clone()).collect() };
        Verdict::of(heads).and(|| self.lists(&defaults(before), &defaults(after)))
    }

    fn partition_keys(&self, before: &str, after: &str) -> Verdict {
        let split = |text: &str| {
            let (strategy, keys) = text.split_once(' ')?;
            Some((strategy.to_owned(), parsed(&format!("ROW{keys}"))?))
        };
        match (split(before), split(after)) {
            (Some((ours, before)), Some((theirs, after))) => {
                Verdict::of(ours == theirs).and(|| self.canonical(&before, &after))
            }
            // Operator classes and collations stand behind keys.
            _ => Verdict::Unsure,
        }
    }

    fn bounds(&self, before: &PartitionBound, after: &PartitionBound) -> Verdict {
        match (before, after) {
            (PartitionBound::List(before), PartitionBound::List(after)) => self.lists(before, after),
            (PartitionBound::Range { from, to }, PartitionBound::Range { from: later, to: end }) => {
                self.lists(from, later).and(|| self.lists(to, end))
            }
            (before, after) => Verdict::of(before == after),
        }
    }

    /// Compares two trees in canonical form.
    fn expressions(&self, before: &Expr, after: &Expr) -> Verdict {
        match (&before.kind, &after.kind) {
            (ExprKind::Cast { operand, target }, ExprKind::Cast { operand: other, target: their_target }) => {
                if let Some(verdict) = literal::compare(before, after) {
                    return verdict;
                }
                if same_type(target, their_target) {
                    return self.expressions(operand, other);
                }
                // Either side may have a cast that the other leaves to PostgreSQL.
                self.without_cast(0, before, after).or_else(|| self.without_cast(1, after, before)).unwrap_or(
                    if is_constant(operand) && is_constant(other) { Verdict::Unsure } else { Verdict::Different },
                )
            }
            (ExprKind::Cast { .. }, _) => literal::compare(before, after)
                .or_else(|| self.without_cast(0, before, after))
                .unwrap_or(Verdict::Different),
            (_, ExprKind::Cast { .. }) => literal::compare(before, after)
                .or_else(|| self.without_cast(1, after, before))
                .unwrap_or(Verdict::Different),
            (ExprKind::Literal(_), ExprKind::Literal(_)) => {
                literal::compare(before, after).unwrap_or(Verdict::Different)
            }
            (ExprKind::Subquery { .. }, ExprKind::Subquery { .. }) => self.subqueries(before, after),
            (ExprKind::Other(..), _) | (_, ExprKind::Other(..)) => Verdict::Unsure,
            _ => self.same_node(before, after),
        }
    }

    /// The comparison without the outer cast of `cast`, if PostgreSQL may have added or removed it.
    fn without_cast(&self, side: usize, cast: &Expr, other: &Expr) -> Option<Verdict> {
        let ExprKind::Cast { operand, target } = &cast.kind else { return None };
        let inner = || if side == 0 { self.expressions(operand, other) } else { self.expressions(other, operand) };
        match [side, 1 - side].map(|side| self.sources[side].is_of_server()) {
            // PostgreSQL writes the casts that it adds by itself.
            [true, _] if is_implicit(target) => Some(inner()),
            // It adds one to a domain too, which is not known by its name.
            [true, false] if !is_builtin(target) && inner() != Verdict::Different => Some(Verdict::Unsure),
            // It keeps no cast that changes nothing, which depends on the type of the operand.
            [false, true] if inner() != Verdict::Different => Some(Verdict::Unsure),
            _ => None,
        }
    }

    fn subqueries(&self, before: &Expr, after: &Expr) -> Verdict {
        let (
            ExprKind::Subquery { kind, test, query },
            ExprKind::Subquery { kind: theirs, test: their_test, query: their_query },
        ) = (&before.kind, &after.kind)
        else {
            return Verdict::Different;
        };
        let tests = match (test, their_test) {
            (Some(before), Some(after)) => self.expressions(before, after),
            (before, after) => Verdict::of(before.is_none() && after.is_none()),
        };
        let kinds = Verdict::of(kind == theirs && *kind != SubqueryKind::AnyOther);
        kinds.and(|| tests).and(|| self.queries(query, their_query))
    }

    /// Two nodes of which neither is a cast, a literal or a subquery.
    fn same_node(&self, before: &Expr, after: &Expr) -> Verdict {
        if let (ExprKind::Call(ours), ExprKind::Call(theirs)) = (&before.kind, &after.kind) {
            let named = ours.arguments.iter().chain(&theirs.arguments).any(|argument| argument.name.is_some());
            let schemas = [&ours.schema, &theirs.schema];
            let is_same_schema = schemas.iter().any(|schema| schema.is_none()) || ours.schema == theirs.schema;
            if ours.name != theirs.name || !is_same_schema {
                return Verdict::Different;
            }
            if named || ours.window.is_some() || theirs.window.is_some() {
                return Verdict::Unsure;
            }
            if (ours.star, ours.distinct) != (theirs.star, theirs.distinct) {
                return Verdict::Different;
            }
        } else if !heads(before, after) {
            return Verdict::Different;
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        before.for_each_child(|child| ours.push(child));
        after.for_each_child(|child| theirs.push(child));
        if ours.len() != theirs.len() {
            return Verdict::Different;
        }
        let pairs = ours.into_iter().zip(theirs);
        pairs.fold(Verdict::Same, |verdict, (before, after)| verdict.and(|| self.expressions(before, after)))
    }
}

/// Whether two nodes without their operands are the same.
fn heads(before: &Expr, after: &Expr) -> bool {
    let bare = |expr: &Expr| {
        let mut bare = expr.clone();
        bare.for_each_child_mut(&mut |child: &mut Expr| child.kind = ExprKind::Default);
        bare
    };
    bare(before).is_same(&bare(after))
}

fn is_constant(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(_) => true,
        ExprKind::Cast { operand, .. } => is_constant(operand),
        ExprKind::Array(items) => items.iter().all(is_constant),
        _ => false,
    }
}

fn same_type(one: &TypeName, other: &TypeName) -> bool {
    let text = |name: &TypeName| deparse::type_name(&TypeName { schema: None, ..name.clone() }).ok();
    text(one) == text(other)
}

/// Whether PostgreSQL converts to this type by itself, wherever an expression needs it.
fn is_implicit(target: &TypeName) -> bool {
    let row = builtin::type_by_name(&target.name).filter(|_| is_builtin(target));
    row.is_some_and(|row| target.is_array || builtin::is_target_of_implicit_cast(row.oid))
}

fn is_builtin(target: &TypeName) -> bool {
    target.schema.as_deref().is_none_or(|schema| schema == "pg_catalog")
}

#[cfg(test)]
mod tests;
