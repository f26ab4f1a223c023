//! Going through everything in a statement that reads or changes rows, subqueries included.

use super::{
    Ast, Delete, Expr, ExprKind, FromItem, Insert, InsertSource, Merge, MergeAction, Query, QueryBody, QueryStatement,
    RelationRef, Select, Target, Update, With,
};

/// A part of a statement.
#[derive(Debug, Clone, Copy)]
pub enum Part<'a> {
    Expr(&'a Expr),
    Query(&'a Query),
    Insert(&'a Insert),
    Update(&'a Update),
    Delete(&'a Delete),
    Merge(&'a Merge),
    /// A relation that a FROM clause reads; it may be a name of WITH.
    Read(&'a RelationRef),
}

impl Ast {
    /// Calls `visit` on every query, data change and expression of the statement, outer before inner. Utility
    /// statements have none, except those that carry a query.
    pub fn visit<'a>(&'a self, visit: &mut dyn FnMut(Part<'a>)) {
        match self {
            Self::Select(query) | Self::DeclareCursor(query) => query.visit(visit),
            Self::Insert(insert) => insert.visit(visit),
            Self::Update(update) => update.visit(visit),
            Self::Delete(delete) => delete.visit(visit),
            Self::Merge(merge) => merge.visit(visit),
            Self::CreateTableAs(create) => create.query.iter().for_each(|query| query.visit(visit)),
            Self::Copy(copy) => copy.query.iter().for_each(|query| query.visit(visit)),
            Self::Explain(explain) => explain.statement.visit(visit),
            Self::Prepare(prepare) => prepare.statement.visit(visit),
            Self::Call(call) => call.call.arguments.iter().for_each(|argument| argument.value.visit(visit)),
            _ => {}
        }
    }
}

impl Expr {
    /// Calls `visit` on this expression and everything below it, subqueries included.
    pub fn visit<'a>(&'a self, visit: &mut dyn FnMut(Part<'a>)) {
        self.walk(&mut |part| {
            visit(Part::Expr(part));
            if let ExprKind::Subquery { query, .. } = &part.kind {
                query.visit(visit);
            }
        });
    }
}

impl Query {
    pub fn visit<'a>(&'a self, visit: &mut dyn FnMut(Part<'a>)) {
        visit(Part::Query(self));
        with(self.with.as_ref(), visit);
        match &self.body {
            QueryBody::Select(select) => select.visit(visit),
            QueryBody::Values(rows) => all(rows.iter().flatten(), visit),
            QueryBody::SetOperation { left, right, .. } => {
                left.visit(visit);
                right.visit(visit);
            }
        }
        all(self.order_by.iter().chain(&self.limit).chain(&self.offset), visit);
    }
}

impl Select {
    fn visit<'a>(&'a self, visit: &mut dyn FnMut(Part<'a>)) {
        self.from.iter().for_each(|item| item.visit(visit));
        all(self.distinct.iter().flatten(), visit);
        targets(&self.targets, visit);
        all(self.filter.iter().chain(&self.group_by).chain(&self.having).chain(&self.windows), visit);
    }
}

impl FromItem {
    fn visit<'a>(&'a self, visit: &mut dyn FnMut(Part<'a>)) {
        match self {
            Self::Relation(relation) => visit(Part::Read(relation)),
            Self::Subquery { query, .. } => query.visit(visit),
            Self::Function { calls, .. } => all(calls, visit),
            Self::Join { left, right, on, .. } => {
                left.visit(visit);
                right.visit(visit);
                all(on, visit);
            }
        }
    }
}

impl QueryStatement {
    pub fn visit<'a>(&'a self, visit: &mut dyn FnMut(Part<'a>)) {
        match self {
            Self::Select(query) => query.visit(visit),
            Self::Insert(insert) => insert.visit(visit),
            Self::Update(update) => update.visit(visit),
            Self::Delete(delete) => delete.visit(visit),
            Self::Merge(merge) => merge.visit(visit),
        }
    }
}

impl Insert {
    pub fn visit<'a>(&'a self, visit: &mut dyn FnMut(Part<'a>)) {
        visit(Part::Insert(self));
        with(self.with.as_ref(), visit);
        if let InsertSource::Query(query) = &self.source {
            query.visit(visit);
        }
        if let Some(conflict) = &self.on_conflict {
            all(conflict.update.iter().flatten().map(|assignment| &assignment.value), visit);
            all(&conflict.update_filter, visit);
        }
        targets(&self.returning, visit);
    }
}

impl Update {
    fn visit<'a>(&'a self, visit: &mut dyn FnMut(Part<'a>)) {
        visit(Part::Update(self));
        with(self.with.as_ref(), visit);
        self.from.iter().for_each(|item| item.visit(visit));
        all(self.assignments.iter().map(|assignment| &assignment.value), visit);
        all(&self.filter, visit);
        targets(&self.returning, visit);
    }
}

impl Delete {
    fn visit<'a>(&'a self, visit: &mut dyn FnMut(Part<'a>)) {
        visit(Part::Delete(self));
        with(self.with.as_ref(), visit);
        self.using.iter().for_each(|item| item.visit(visit));
        all(&self.filter, visit);
        targets(&self.returning, visit);
    }
}

impl Merge {
    fn visit<'a>(&'a self, visit: &mut dyn FnMut(Part<'a>)) {
        visit(Part::Merge(self));
        with(self.with.as_ref(), visit);
        self.source.visit(visit);
        self.on.visit(visit);
        for branch in &self.branches {
            all(&branch.condition, visit);
            match &branch.action {
                MergeAction::Insert { values, .. } => all(values, visit),
                MergeAction::Update(assignments) => {
                    all(assignments.iter().map(|assignment| &assignment.value), visit);
                }
                MergeAction::Delete | MergeAction::DoNothing => {}
            }
        }
        targets(&self.returning, visit);
    }
}

fn with<'a>(with: Option<&'a With>, visit: &mut dyn FnMut(Part<'a>)) {
    with.iter().flat_map(|with| &with.ctes).for_each(|cte| cte.statement.visit(visit));
}

fn targets<'a>(targets: &'a [Target], visit: &mut dyn FnMut(Part<'a>)) {
    all(targets.iter().map(|target| &target.value), visit);
}

fn all<'a>(expressions: impl IntoIterator<Item = &'a Expr>, visit: &mut dyn FnMut(Part<'a>)) {
    expressions.into_iter().for_each(|expression| expression.visit(visit));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::from_pg::parse_sql;

    #[test]
    fn everything_is_reached() {
        let sql = "WITH a AS (DELETE FROM t USING u WHERE f1() RETURNING f2()),
                b AS (UPDATE t SET x = f3() FROM v WHERE y = (SELECT f4() FROM w)),
                c AS (INSERT INTO t SELECT f5() ON CONFLICT (id) DO UPDATE SET x = f6() WHERE f7()),
                d AS (MERGE INTO t USING z ON f8() WHEN MATCHED AND f9() THEN UPDATE SET x = f10()
                    WHEN NOT MATCHED THEN INSERT VALUES (f11()) RETURNING f12())
            SELECT f13() FROM (SELECT f14()) AS s JOIN p ON f15(), f16() AS g WHERE f17()
            GROUP BY f18() HAVING f19() ORDER BY f20() LIMIT f21()";
        let (mut calls, mut reads, mut changes) = (0, Vec::new(), 0);
        parse_sql(sql).unwrap()[0].visit(&mut |part| match part {
            Part::Expr(Expr { kind: ExprKind::Call(_), .. }) => calls += 1,
            Part::Read(relation) => reads.push(relation.name.to_string()),
            Part::Insert(_) | Part::Update(_) | Part::Delete(_) | Part::Merge(_) => changes += 1,
            _ => {}
        });
        assert_eq!((calls, changes), (21, 4));
        assert_eq!(reads, ["u", "v", "w", "z", "p"]);
    }
}
