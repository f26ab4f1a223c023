//! What names a type that gets another name: PostgreSQL keeps its number, and the catalog here the words.

use crate::catalog::{ConstraintKind, Oid, Relation, RelationDetail};
use crate::execute::Executor;
use pgvet_syntax::ast::{Expr, ExprKind, TypeName};
use smol_str::SmolStr;
use std::sync::Arc;

/// A schema and a name in it.
type Qualified = (SmolStr, SmolStr);

impl Executor<'_> {
    /// Gives the type its new name in the expressions of all relations.
    pub(super) fn rename_in_casts(&mut self, before: &Qualified, after: &Qualified) {
        let is_concerned = |relation: &Relation| {
            let mut found = false;
            visit(relation, &mut |expression| found |= casts_to(expression, before));
            found
        };
        let relations = self.catalog.relations().filter(|relation| is_concerned(relation));
        let relations: Vec<Oid> = relations.map(|relation| relation.oid).collect();
        for relation in relations {
            change(self.catalog.relation_mut(relation), &mut |expression| rename(expression, before, after));
        }
    }
}

/// Visits the expressions of a relation.
fn visit(relation: &Relation, see: &mut impl FnMut(&Expr)) {
    for column in &relation.columns {
        column.default.iter().for_each(|default| see(default));
        column.generated.iter().for_each(|generated| see(&generated.expression));
    }
    for constraint in &relation.constraints {
        if let ConstraintKind::Check { expression, .. } = &constraint.kind {
            see(expression);
        }
    }
    relation.triggers.iter().filter_map(|trigger| trigger.condition.as_ref()).for_each(|condition| see(condition));
    for policy in &relation.policies {
        policy.using.iter().chain(&policy.check).for_each(|condition| see(condition));
    }
    if let RelationDetail::Index(index) = &relation.detail {
        index.elements.iter().for_each(|element| see(&element.key));
        index.predicate.iter().for_each(|predicate| see(predicate));
    }
}

/// Changes the expressions that [`visit`] shows.
fn change(relation: &mut Relation, make: &mut impl FnMut(&mut Expr)) {
    for column in &mut relation.columns {
        column.default.iter_mut().for_each(|default| make(Arc::make_mut(default)));
        column.generated.iter_mut().for_each(|generated| make(Arc::make_mut(&mut generated.expression)));
    }
    relation.constraints.update_where(
        |_| true,
        |constraint| {
            if let ConstraintKind::Check { expression, .. } = &mut constraint.kind {
                make(Arc::make_mut(expression));
            }
        },
    );
    let with_condition = |trigger: &crate::catalog::Trigger| trigger.condition.is_some();
    relation.triggers.update_where(with_condition, |trigger| {
        trigger.condition.iter_mut().for_each(|condition| make(Arc::make_mut(condition)));
    });
    relation.policies.update_where(
        |_| true,
        |policy| {
            policy.using.iter_mut().chain(&mut policy.check).for_each(|condition| make(Arc::make_mut(condition)));
        },
    );
    if let RelationDetail::Index(index) = &mut relation.detail {
        let index = Arc::make_mut(index);
        Arc::make_mut(&mut index.elements).iter_mut().for_each(|element| make(&mut element.key));
        index.predicate.iter_mut().for_each(|predicate| make(Arc::make_mut(predicate)));
    }
}

fn is_named(target: &TypeName, (schema, name): &Qualified) -> bool {
    target.name == *name && target.schema.as_ref().is_none_or(|written| written == schema)
}

fn casts_to(expression: &Expr, named: &Qualified) -> bool {
    let mut found = matches!(&expression.kind, ExprKind::Cast { target, .. } if is_named(target, named));
    expression.for_each_child(|child| found |= casts_to(child, named));
    found
}

fn rename(expression: &mut Expr, before: &Qualified, after: &Qualified) {
    if let ExprKind::Cast { target, .. } = &mut expression.kind
        && is_named(target, before)
    {
        let (schema, name) = after;
        target.name = name.clone();
        if target.schema.is_some() || *schema != before.0 {
            target.schema = Some(schema.clone());
        }
    }
    expression.for_each_child_mut(&mut |child| rename(child, before, after));
}
