//! What statements demand of the rows that a table already holds.
//!
//! What cannot fail is omitted: what other constraints imply, what a constraint demanded that the same transaction has
//! dropped, and what holds for the value that all rows have in a new column.

mod access;
mod counterexample;
mod fit;
mod usual;

use super::Executor;
use crate::builtin::Volatility;
use crate::catalog::{
    Catalog, Column, Constraint, ConstraintKind, DroppedRule, EmptiedBy, Held, Index, Oid, Relation, RelationKind,
    TypeKind,
};
use crate::effect::{
    Access, Demand, DomainValues, Exclusion, KeyPart, Met, Reference, RelationName, RowDemand, ScanCause, UniqueKey,
    Visibility, Written,
};
use crate::expression::{Scope, Typed};
use pgvet_syntax::ast::{Expr, ExprKind, OperatorForm};
use pgvet_syntax::deparse::{self, NotKept};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;
use std::sync::Arc;

impl Executor<'_> {
    /// Notes what a check of all rows demands.
    pub(crate) fn demand_of_check(&mut self, table: Oid, cause: &ScanCause, range: TextRange) {
        if self.visibility(table) != Visibility::Existing {
            return;
        }
        let demand = match cause {
            ScanCause::NotNull { column } => self.not_null_demand(table, column),
            ScanCause::Check { constraint: Some(name) } | ScanCause::ForeignKey { constraint: Some(name) } => {
                self.constraint_demand(table, name)
            }
            ScanCause::Validate { constraint } => {
                (self.constraint_demand(table, constraint)).map(|(demand, met)| (demand, met.or(Some(Met::Retriable))))
            }
            _ => None,
        };
        if let Some((demand, met)) = demand {
            let is_of_new = matches!(demand, Demand::NoRows { referenced: Some(_), .. });
            let is_pure = self.is_pure(table, &demand);
            self.note_demand(table, demand, met, range, is_pure);
            if is_of_new && !self.is_guarded() {
                self.catalog.relation_mut(table).birth.empty_in = self.deployment;
            }
        }
    }

    /// Notes what the bound of a partition demands.
    pub(crate) fn demand_of_bound(&mut self, table: Oid, demand: &Demand, range: TextRange) {
        if self.visibility(table) == Visibility::Existing {
            let met = self.met(self.catalog.relation(table), &[]);
            self.note_demand(table, demand.clone(), met, range, true);
        }
    }

    /// Notes what a new constraint of a domain demands of its values in a table; without `check`, NOT NULL.
    pub(crate) fn demand_of_domain(&mut self, table: Oid, domain: Oid, check: Option<&Expr>, range: TextRange) {
        let definition = self.catalog.get_type(domain).cloned();
        let Some(definition) = definition.filter(|_| self.visibility(table) == Visibility::Existing) else { return };
        let TypeKind::Domain(own) = &definition.kind else { return };
        let relation = self.catalog.relation(table);
        let of_domain = relation.columns.iter().filter(|column| self.is_domain_over(column.sql_type.oid, domain));
        let columns: Vec<SmolStr> = of_domain.map(|column| column.name.clone()).collect();
        let met = self.met(relation, &columns.iter().collect::<Vec<_>>());
        let scope = Scope::of_columns("used", [("value".into(), own.base)]);
        let is_pure = check.is_none_or(|check| self.with_analyzer(|analyzer| is_pure(&analyzer.infer(check, &scope))));
        let check = check.map(|check| self.written(check));
        let demand = Demand::Domain(DomainValues { domain: definition.name.clone(), columns, check });
        self.note_demand(table, demand, met, range, is_pure);
    }

    /// Notes what the build of a unique index demands.
    pub(crate) fn demand_of_index(&mut self, table: Oid, index: Oid, concurrently: bool, range: TextRange) {
        if self.visibility(table) != Visibility::Existing {
            return;
        }
        let relation = self.catalog.relation(table);
        let built = self.catalog.relation(index);
        let Some(definition) = built.index() else { return };
        if !definition.operators.is_empty() {
            return self.demand_of_exclusion(table, index, range);
        }
        if !definition.unique {
            return;
        }
        let mut others = relation.indexes.iter().filter(|other| **other != index);
        let is_implied = others.any(|other| {
            self.catalog
                .get_relation(*other)
                .and_then(|other| other.index())
                .is_some_and(|other| implies(other, definition))
        });
        let columns: Vec<&SmolStr> = definition.elements.iter().filter_map(|part| part.key.as_column()).collect();
        let is_kept = self.dropped_here(relation).any(|rule| match rule {
            DroppedRule::Index(old) => implies(old, definition),
            _ => false,
        });
        let all_null = |column: &&SmolStr| matches!(self.held_here(relation, column), Some(Held::Null));
        if is_implied || is_kept || !definition.nulls_not_distinct && columns.iter().any(all_null) {
            return;
        }
        let is_same = |column: &SmolStr| self.held_here(relation, column).is_some();
        let demand = match columns.as_slice() {
            [column] if definition.elements.len() == 1 && definition.predicate.is_none() && is_same(column) => {
                Demand::OneRow { column: (*column).clone() }
            }
            _ => Demand::Unique(UniqueKey {
                index: built.name.clone(),
                parts: definition.elements.iter().map(|part| self.key_part(&part.key)).collect(),
                predicate: definition.predicate.as_ref().map(|predicate| self.written(predicate)),
                nulls_distinct: !definition.nulls_not_distinct,
            }),
        };
        let of_predicate = definition.predicate.as_ref().map(|predicate| self.columns_of(table, predicate));
        let columns: Vec<&SmolStr> = columns.into_iter().chain(of_predicate.iter().flatten()).collect();
        let met = match demand {
            Demand::OneRow { .. } => None,
            _ => self.met(relation, &columns).or_else(|| concurrently.then_some(Met::Retriable)),
        };
        let is_pure = self.is_pure(table, &demand);
        self.note_demand(table, demand, met, range, is_pure);
    }

    fn demand_of_exclusion(&mut self, table: Oid, index: Oid, range: TextRange) {
        let built = self.catalog.relation(index);
        let Some(definition) = built.index() else { return };
        let keys = definition.elements.iter().map(|part| &part.key);
        let is_pure = keys.clone().chain(definition.predicate.as_deref()).all(|part| self.is_pure_in(table, part));
        let parts = std::iter::zip(keys, &definition.operators);
        let demand = Demand::Exclusion(Exclusion {
            constraint: built.name.clone(),
            parts: parts.map(|(key, operator)| (self.key_part(key), operator.clone())).collect(),
            predicate: definition.predicate.as_ref().map(|predicate| self.written(predicate)),
            over_period: definition.unique,
        });
        let columns: Vec<&SmolStr> = definition.elements.iter().filter_map(|part| part.key.as_column()).collect();
        let met = self.met(self.catalog.relation(table), &columns);
        self.note_demand(table, demand, met, range, is_pure);
    }

    fn note_demand(&mut self, table: Oid, demand: Demand, met: Option<Met>, range: TextRange, is_pure: bool) {
        let met = match self.emptied(self.catalog.relation(table)) {
            Some(emptied) if emptied.by == EmptiedBy::Truncate => return,
            Some(emptied) if emptied.by == EmptiedBy::Nobody => Some(Met::FoundEmpty),
            Some(_) => Some(Met::Emptied),
            None => met,
        };
        let only = has_inheriting_tables(self.catalog.relation(table));
        let relation = self.relation_name(table);
        self.effects.demands.push(RowDemand {
            relation,
            demand,
            met,
            range,
            only,
            is_pure,
            counterexample: None,
            usual: None,
            access: Access::Table,
        });
    }

    fn key_part(&self, key: &Expr) -> KeyPart {
        key.as_column().map_or_else(|| KeyPart::Expression(self.written(key)), |name| KeyPart::Column(name.clone()))
    }

    fn written(&self, expression: &Expr) -> Written {
        if self.has_placeholders {
            return Err(NotKept("a placeholder whose value is not known"));
        }
        deparse::expression(expression)
    }

    /// Whether the conditions call only functions that change nothing.
    fn is_pure(&self, table: Oid, demand: &Demand) -> bool {
        let is_pure = |expression: &Expr| self.is_pure_in(table, expression);
        let relation = self.catalog.relation(table);
        match demand {
            Demand::Check { constraint, .. } => match relation.constraint(constraint).map(|found| &found.kind) {
                Some(ConstraintKind::Check { expression, .. }) => is_pure(expression),
                _ => false,
            },
            Demand::Unique(key) => {
                let built = self.catalog.relation_named(&relation.schema, &key.index);
                let built = built.and_then(|oid| self.catalog.get_relation(oid)?.index());
                built.is_some_and(|index| {
                    let keys = index.elements.iter().map(|part| &part.key);
                    keys.chain(index.predicate.as_deref()).all(is_pure)
                })
            }
            _ => true,
        }
    }

    fn is_pure_in(&self, table: Oid, expression: &Expr) -> bool {
        is_pure(&self.analyze(expression, Some(table)))
    }

    /// Puts one demand on a partitioned table in the place of those on its partitions. What becomes a partition only now is
    /// left as it is.
    pub(crate) fn gather_demands(&mut self, before: &Catalog) {
        let mut gathered: Vec<RowDemand> = Vec::new();
        let mut known = FxHashSet::default();
        for mut demand in std::mem::take(&mut self.effects.demands) {
            let mut whole = demand.relation.oid;
            let is_of_one = matches!(demand.demand, Demand::DefaultPartition(_));
            while let Some(relation) =
                before.get_relation(whole).filter(|relation| relation.is_partition() && !is_of_one)
                && let Some(parent) = relation.parents.first().filter(|parent| before.get_relation(**parent).is_some())
            {
                whole = *parent;
            }
            if whole != demand.relation.oid && self.catalog.get_relation(whole).is_some() {
                demand.relation = self.relation_name(whole);
            }
            let subject = demand.demand.subject().cloned();
            if known.insert((whole, demand.range, std::mem::discriminant(&demand.demand), subject)) {
                gathered.push(demand);
            }
        }
        for demand in &mut gathered {
            demand.counterexample = self.counterexample(demand, before);
            demand.usual = self.usual_rows(demand, before);
            demand.access = self.access(demand, before);
        }
        self.effects.demands = gathered;
    }

    fn not_null_demand(&self, table: Oid, column: &SmolStr) -> Option<(Demand, Option<Met>)> {
        let relation = self.catalog.relation(table);
        match self.held_here(relation, column) {
            Some(Held::Null) => Some((Demand::NoRows { column: column.clone(), referenced: None }, None)),
            Some(Held::Value(_)) => None,
            None => Some((Demand::NotNull { column: column.clone() }, self.met(relation, &[column]))),
        }
    }

    fn constraint_demand(&self, table: Oid, name: &str) -> Option<(Demand, Option<Met>)> {
        let relation = self.catalog.relation(table);
        let constraint = Arc::clone(relation.constraint(name)?);
        let columns: Vec<&SmolStr> = constraint.columns().iter().collect();
        let demand = match &constraint.kind {
            ConstraintKind::NotNull { column } => return self.not_null_demand(table, column),
            ConstraintKind::Check { expression, .. } => {
                if self.follows_from_others(relation, &constraint, expression) {
                    return None;
                }
                let condition = self.written(expression);
                Demand::Check { constraint: constraint.name.clone(), condition }
            }
            ConstraintKind::ForeignKey(key) => {
                let is_same = |old: &Constraint| {
                    old.foreign_key().is_some_and(|old| {
                        (&old.columns, old.referenced, &old.referenced_columns)
                            == (&key.columns, key.referenced, &key.referenced_columns)
                    })
                };
                let is_null = |column: &SmolStr| matches!(self.held_here(relation, column), Some(Held::Null));
                if key.columns.iter().any(is_null) || self.dropped_constraints(relation).any(is_same) {
                    return None;
                }
                let referenced = self.catalog.get_relation(key.referenced)?;
                if self.excludes_rows(relation, key) {
                    let column = key.columns.first()?.clone();
                    return Some((Demand::NoRows { column, referenced: Some(referenced.name.clone()) }, None));
                }
                Demand::References(Reference {
                    constraint: constraint.name.clone(),
                    columns: key.columns.clone(),
                    referenced: RelationName::existing(referenced),
                    referenced_columns: key.referenced_columns.clone(),
                    match_full: key.match_full,
                    only: has_inheriting_tables(referenced),
                })
            }
            _ => return None,
        };
        let is_replaced = relation.dropped.iter().any(|dropped| {
            let is_unseen = matches!(&dropped.rule, DroppedRule::Unseen(dropped) if dropped == name);
            is_unseen && dropped.deployment == self.deployment
        });
        let changes_referenced = constraint.foreign_key().is_some_and(|key| {
            self.catalog.get_relation(key.referenced).is_some_and(|referenced| self.is_changed_here(referenced))
        });
        let met = self.met(relation, &columns).or_else(|| changes_referenced.then_some(Met::Changed));
        Some((demand, met.or_else(|| is_replaced.then_some(Met::Replaced))))
    }

    /// Whether other constraints, or one that the deployment has dropped, leave no row that breaks a CHECK.
    fn follows_from_others(&self, relation: &Relation, constraint: &Constraint, required: &Expr) -> bool {
        let shares_column = |columns: &[SmolStr]| columns.iter().any(|column| constraint.columns().contains(column));
        let valid = relation.constraints.iter().filter(|other| other.holds() && other.name != constraint.name);
        let existing: Vec<&Expr> = valid
            .map(|other| &**other)
            .chain(self.dropped_constraints(relation))
            .filter_map(|other| match &other.kind {
                ConstraintKind::Check { expression, columns } if shares_column(columns) => Some(&**expression),
                _ => None,
            })
            .collect();
        let columns: Vec<&Column> = constraint.columns().iter().filter_map(|name| relation.column(name)).collect();
        let held: Vec<Expr> = columns.iter().filter_map(|column| self.held_condition(relation, column)).collect();
        let existing: Vec<&Expr> = existing.into_iter().chain(&held).collect();
        let not_null: Vec<&str> =
            columns.iter().filter(|column| column.not_null).map(|column| column.name.as_str()).collect();
        let scope = self.scope_of(relation.oid);
        self.with_analyzer(|analyzer| analyzer.checks_imply(&scope, &existing, &not_null, required))
    }

    /// What is true of the value that all rows have in a new column.
    fn held_condition(&self, relation: &Relation, column: &Column) -> Option<Expr> {
        let made = |kind| Expr { kind, range: TextRange::default() };
        let read = || made(ExprKind::Column(vec![column.name.clone()]));
        Some(match self.held_here(relation, &column.name)? {
            Held::Null => made(ExprKind::IsNull { operand: Box::new(read()), negated: false }),
            Held::Value(value) => made(ExprKind::Operator {
                schema: None,
                operator: "=".into(),
                form: OperatorForm::Plain,
                operands: vec![read(), (**value).clone()],
            }),
        })
    }

    /// What the transaction has dropped. Its locks let nobody write, so that existing rows still meet it.
    fn dropped_here<'r>(&self, relation: &'r Relation) -> impl Iterator<Item = &'r DroppedRule> + use<'r> {
        let transaction = self.transaction;
        let dropped = relation.dropped.iter().filter(move |dropped| dropped.transaction == transaction);
        dropped.map(|dropped| &dropped.rule)
    }

    fn dropped_constraints<'r>(&self, relation: &'r Relation) -> impl Iterator<Item = &'r Constraint> + use<'r> {
        self.dropped_here(relation).filter_map(|rule| match rule {
            DroppedRule::Constraint(constraint) if constraint.valid && constraint.enforced => Some(&**constraint),
            _ => None,
        })
    }

    /// The CHECKs and other constraints that the deployment has dropped, and that all rows met until then.
    fn dropped_by_deployment<'r>(&self, relation: &'r Relation) -> impl Iterator<Item = &'r Constraint> + use<'r> {
        let deployment = self.deployment;
        let dropped = relation.dropped.iter().filter(move |dropped| dropped.deployment == deployment);
        dropped.filter_map(|dropped| match &dropped.rule {
            DroppedRule::Constraint(constraint) if constraint.valid && constraint.enforced => Some(&**constraint),
            _ => None,
        })
    }

    /// The value that all rows have in a column that the deployment added or filled.
    fn held_here<'r>(&self, relation: &'r Relation, column: &str) -> Option<&'r Held> {
        let held = relation.column(column)?.held.as_ref()?;
        (held.since == self.deployment).then_some(&held.value)
    }

    fn is_changed_here(&self, relation: &Relation) -> bool {
        relation.birth.changed_in.is_some() && relation.birth.changed_in == self.deployment
    }

    fn met(&self, relation: &Relation, columns: &[&SmolStr]) -> Option<Met> {
        let is_new = |name: &&SmolStr| {
            relation.column(name).is_some_and(|column| column.added_in.is_some() && column.added_in == self.deployment)
        };
        if self.is_changed_here(relation) {
            Some(Met::Changed)
        } else if columns.iter().any(is_new) {
            Some(Met::NewColumns)
        } else {
            None
        }
    }
}

/// Whether an expression calls only functions that change nothing, as far as their definitions say.
fn is_pure(typed: &Typed) -> bool {
    typed.unknown.is_empty() && typed.volatility != Volatility::Volatile
}

/// Whether rows that differ for one unique index differ for another.
fn implies(old: &Index, new: &Index) -> bool {
    let (Some(old_columns), Some(new_columns)) = (old.plain_columns(), new.plain_columns()) else { return false };
    let is_wider = match (&old.predicate, &new.predicate) {
        (None, _) => true,
        (Some(old), Some(new)) => old.is_same(new),
        (Some(_), None) => false,
    };
    let is_as_strict = old.unique && old.valid && (old.nulls_not_distinct || !new.nulls_not_distinct);
    let is_part = !old_columns.is_empty() && old_columns.iter().all(|column| new_columns.contains(column));
    is_wider && is_as_strict && is_part
}

/// Whether tables inherit from it that are no partitions.
fn has_inheriting_tables(relation: &Relation) -> bool {
    relation.kind == RelationKind::Table && !relation.children.is_empty()
}
