//! Subqueries: what they read and call.

use super::infer::{Inference, Typed};
use super::{Analyzer, Scope, ScopeRelation};
use crate::builtin;
use crate::catalog::{Oid, SqlType};
use pgvet_syntax::ast::{Expr, ExprKind, FromItem, Query, QueryBody, QueryStatement, RelationRef, Select, Target};

impl Analyzer<'_> {
    /// Infers what a whole query calls and reads. Its type is that of its first column.
    pub fn infer_query(&self, query: &Query) -> Typed {
        let mut inference = Inference::new(*self);
        inference.typed.sql_type = inference.subquery(query, &Scope::default());
        inference.typed
    }
}

impl Inference<'_> {
    /// Visits a subquery and returns the type of its first column.
    pub(super) fn subquery(&mut self, query: &Query, scope: &Scope) -> SqlType {
        self.typed.has_subquery = true;
        self.level += 1;
        let output = self.query(query, scope);
        self.level -= 1;
        output
    }

    fn query(&mut self, query: &Query, scope: &Scope) -> SqlType {
        self.query_with(query, scope, false)
    }

    /// `compared`: UNION, INTERSECT or EXCEPT compares its rows.
    fn query_with(&mut self, query: &Query, scope: &Scope, compared: bool) -> SqlType {
        let mut outer = scope.clone();
        for cte in query.with.iter().flat_map(|with| &with.ctes) {
            match &cte.statement {
                _ if self.type_only => {}
                QueryStatement::Select(inner) => {
                    self.query(inner, &outer);
                }
                _ => self.unknown(format!("data change in {}", cte.name.text)),
            }
            outer.ctes.insert(cte.name.text.clone());
        }
        match &query.body {
            QueryBody::Select(select) => self.select(select, query, &outer, compared),
            QueryBody::Values(rows) => {
                let mut first = SqlType::UNKNOWN;
                for (position, value) in rows.iter().flatten().enumerate() {
                    let sql_type = self.visit(value, &outer);
                    if position == 0 {
                        first = sql_type;
                    }
                }
                first
            }
            QueryBody::SetOperation { left, right, all, .. } => {
                let compared = compared || !all;
                let types = [self.query_with(left, &outer, compared), self.query_with(right, &outer, compared)];
                self.common_type(&types)
            }
        }
    }

    fn select(&mut self, select: &Select, query: &Query, scope: &Scope, compared: bool) -> SqlType {
        let mut relations = Vec::new();
        for item in &select.from {
            self.item_relations(item, scope, &mut relations);
        }
        let inner = scope.inner(relations);
        if self.type_only {
            return select.targets.first().map_or(SqlType::UNKNOWN, |first| self.output(first, &inner));
        }
        for item in &select.from {
            self.item_expressions(item, &inner);
        }
        let types: Vec<SqlType> = select.targets.iter().map(|target| self.output(target, &inner)).collect();
        if compared || select.distinct.as_ref().is_some_and(Vec::is_empty) {
            types.iter().for_each(|sql_type| self.refuse_without_equality(*sql_type));
        }
        let clauses =
            select.distinct.iter().flatten().chain(&select.filter).chain(&select.group_by).chain(&select.having);
        let rest = query.order_by.iter().chain(&query.limit).chain(&query.offset);
        for expression in clauses.chain(&select.windows).chain(rest) {
            self.visit(expression, &inner);
        }
        types.first().copied().unwrap_or(SqlType::UNKNOWN)
    }

    /// The type of an output column; of `*`, that of its first.
    fn output(&mut self, target: &Target, scope: &Scope) -> SqlType {
        let sql_type = self.visit(&target.value, scope);
        let is_star = matches!(target.value.kind, ExprKind::Star(_));
        let first = scope.relations.first().filter(|_| is_star).and_then(|relation| relation.columns.first());
        first.map_or(sql_type, |column| column.sql_type)
    }

    fn item_relations(&mut self, item: &FromItem, scope: &Scope, relations: &mut Vec<ScopeRelation>) {
        match item {
            FromItem::Relation(reference) => relations.push(self.relation(reference, scope)),
            FromItem::Subquery { alias, .. } | FromItem::Function { alias, .. } => {
                let name = alias.as_ref().map(|alias| alias.name.clone());
                relations.push(ScopeRelation { name, ..ScopeRelation::default() });
            }
            FromItem::Join { left, right, .. } => {
                self.item_relations(left, scope, relations);
                self.item_relations(right, scope, relations);
            }
        }
    }

    /// Subqueries, function calls and join conditions of FROM; lateral ones see the other items.
    fn item_expressions(&mut self, item: &FromItem, scope: &Scope) {
        match item {
            FromItem::Relation(_) => {}
            FromItem::Subquery { query, .. } => {
                self.query(query, scope);
            }
            FromItem::Function { calls, .. } => self.visit_all(calls, scope),
            FromItem::Join { left, right, on, .. } => {
                self.item_expressions(left, scope);
                self.item_expressions(right, scope);
                self.visit_all(on, scope);
            }
        }
    }

    fn visit_all<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expr>, scope: &Scope) {
        for expression in expressions {
            self.visit(expression, scope);
        }
    }

    fn relation(&mut self, reference: &RelationRef, scope: &Scope) -> ScopeRelation {
        let name = &reference.name.name.text;
        let schema = reference.name.schema.as_ref().map(|schema| schema.text.as_str());
        let alias = Some(reference.alias.as_ref().map_or_else(|| name.clone(), |alias| alias.name.clone()));
        let is_cte = schema.is_none() && scope.ctes.contains(name);
        let is_system = builtin::system_relation(schema.unwrap_or("pg_catalog"), name).is_some();
        if is_cte || is_system {
            return ScopeRelation { name: alias, ..ScopeRelation::default() };
        }
        if let Some(relation) = self.analyzer.schema.relation_named(schema, name) {
            if !self.typed.relations.contains(&relation) {
                self.typed.relations.push(relation);
            }
            // An alias may call the columns by other names.
            let renamed = reference.alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
            let columns = if renamed { Vec::new() } else { self.analyzer.relation_columns(relation) };
            ScopeRelation { name: alias, relation, columns }
        } else {
            // Reading a relation is not volatile, so this only has to be said.
            self.typed.unknown.push(format!("relation {}", reference.name));
            ScopeRelation { name: alias, relation: Oid::INVALID, columns: Vec::new() }
        }
    }
}
