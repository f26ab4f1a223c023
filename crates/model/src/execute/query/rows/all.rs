//! Members that nothing bounds: whether every row takes part, or what selects a part of them.

use super::{Condition, Joined, Owner, Source};
use crate::builtin::oid;
use crate::catalog::{Constraint, ForeignKeyConstraint, Oid, Relation};
use crate::effect::{Extent, Rows, RowsReason};
use crate::expression::yields_one_row;
use pgvet_syntax::ast::{Expr, ExprKind, OperatorForm, Query, QueryBody, SubqueryKind};
use smol_str::SmolStr;

impl<'a> Joined<'a> {
    /// How many rows of a member take part that nothing bounds.
    pub(super) fn unbounded(&self, at: usize) -> Rows {
        let own = match &self.members[at].source {
            Source::Table { .. } => Rows::all(RowsReason::NoCondition),
            Source::Query { rows, .. } | Source::Other(rows) => rows.clone(),
        };
        let mut left = own;
        let mut conditions: Vec<&Condition<'a>> =
            self.conditions.iter().filter(|condition| !is_of_missing_side(at, condition)).collect();
        conditions.retain(|condition| match self.left_by(at, &condition.expression) {
            Some(rows) => {
                left = prefer(std::mem::replace(&mut left, Rows::all(RowsReason::NoCondition)), rows);
                false
            }
            None => true,
        });
        let others = (0..self.members.len()).filter(|other| *other != at && !self.is_missing_for(at, *other));
        let mut others: Vec<usize> = others.collect();
        let mut reached = vec![at];
        while let Some(position) = others.iter().position(|next| self.joins_every_row(&reached, *next, &mut conditions))
        {
            reached.push(others.swap_remove(position));
            left = prefer(left, Rows::all(RowsReason::EveryRowJoined));
        }
        if conditions.iter().any(|condition| self.concerns(&reached, &condition.expression)) {
            let part = self.part(at, &conditions);
            return if left.extent == Extent::UnknownPart { left } else { part };
        }
        left
    }

    /// Whether all conditions compare members with each other, so that the result is as large as the tables are.
    pub(super) fn has_only_joins(&self) -> bool {
        self.conditions.iter().all(|condition| {
            let members = self.members_of(&condition.expression);
            condition.limits.is_some()
                || members.is_some_and(|members| members.len() > 1) && is_equality(&condition.expression)
        })
    }

    /// Whether a condition may exclude rows of these members: it names one, or something that cannot be resolved.
    fn concerns(&self, reached: &[usize], condition: &Expr) -> bool {
        let (mut found, mut names_any) = (false, false);
        condition.walk(&mut |part| match &part.kind {
            ExprKind::Column(path) => {
                names_any = true;
                found |= match self.owner(path) {
                    Owner::Member(at) => reached.contains(&at),
                    Owner::Nobody => false,
                    Owner::Elsewhere => true,
                };
            }
            ExprKind::Subquery { .. } => found = true,
            _ => {}
        });
        found || !names_any
    }

    /// Whether a row of `at` takes part even if there is no row of `other` for it.
    fn is_missing_for(&self, at: usize, other: usize) -> bool {
        self.members[other].optional && !self.members[at].optional
    }

    /// Returns the part of the rows that conditions select.
    fn part(&self, at: usize, conditions: &[&Condition<'a>]) -> Rows {
        let picked = conditions.iter().find_map(|condition| self.picked_by(&condition.expression));
        let few = || {
            let mut bounded = (0..self.members.len()).filter(|other| self.bounds[*other].is_some());
            let other = bounded.find(|other| conditions.iter().any(|one| self.equates(&one.expression, at, *other)))?;
            Some(RowsReason::JoinedToFew { table: self.members[other].name.clone() })
        };
        let join = || {
            let mut others = (0..self.members.len()).filter(|other| *other != at && !self.is_missing_for(at, *other));
            others.next().map(|other| RowsReason::Join { table: self.members[other].name.clone() })
        };
        let on_column = || {
            let own = |condition: &&Condition<'_>| self.first_column(&condition.expression, Some(at));
            conditions.iter().find_map(own).map(|column| RowsReason::Condition { column })
        };
        let reason = picked.or_else(few).or_else(join).or_else(on_column).unwrap_or(RowsReason::OtherCondition);
        Rows::unknown_part(reason)
    }

    /// The first column of a member, or of any, that an expression names.
    fn first_column(&self, expression: &Expr, member: Option<usize>) -> Option<SmolStr> {
        let mut found = None;
        expression.walk(&mut |part| {
            if let ExprKind::Column(path) = &part.kind
                && let Owner::Member(owner) = self.owner(path)
                && found.is_none()
                && member.is_none_or(|member| member == owner)
            {
                found = path.last().cloned();
            }
        });
        found
    }

    /// Whether a condition compares columns with values that are known before it runs: such rows are mostly few.
    pub(super) fn picked_by(&self, condition: &Expr) -> Option<RowsReason> {
        let picked = |tested: &Expr| self.first_column(tested, None).map(|column| RowsReason::Picked { column });
        match &condition.kind {
            ExprKind::Or(list) => {
                let reasons: Option<Vec<RowsReason>> = list.iter().map(|branch| self.picked_by(branch)).collect();
                reasons?.into_iter().next()
            }
            ExprKind::And(list) => list.iter().find_map(|part| self.picked_by(part)),
            ExprKind::Subquery { kind: SubqueryKind::Any | SubqueryKind::Exists, query, .. } => {
                let rows = self.executor.rows_of_query(query, self.env);
                match rows.extent {
                    Extent::AtMost(_) if condition_tests(condition) => {
                        Some(RowsReason::JoinedToFew { table: "the subquery".into() })
                    }
                    _ if rows.may_be_few() => Some(rows.reason),
                    _ => None,
                }
            }
            ExprKind::Operator { operator, operands, form, .. } => match (form, operands.as_slice()) {
                (OperatorForm::Plain, [left, right]) if operator == "=" => {
                    let (tested, value) = if self.seems_constant(right) { (left, right) } else { (right, left) };
                    (self.seems_constant(value) && !self.is_boolean(tested)).then(|| picked(tested)).flatten()
                }
                (OperatorForm::In, [tested, list @ ..]) if operator == "=" => {
                    list.iter().all(|value| self.is_constant(value)).then(|| picked(tested)).flatten()
                }
                (OperatorForm::AnyArray, [tested, array]) if operator == "=" => match self.executor.length_of(array) {
                    Some(_) => picked(tested),
                    None if matches!(array.kind, ExprKind::Array(_)) => picked(tested),
                    None => self.is_constant(array).then_some(RowsReason::GivenAtRunTime),
                },
                (OperatorForm::Plain, [left, right]) if matches!(operator.as_str(), "<" | "<=" | ">" | ">=") => {
                    (self.is_of_run_time(left) || self.is_of_run_time(right)).then_some(RowsReason::GivenAtRunTime)
                }
                (OperatorForm::Between, [tested, low, high]) => {
                    let is_number = |end: &Expr| self.executor.whole_number(end).is_some();
                    if self.is_of_run_time(low) && self.is_of_run_time(high) {
                        Some(RowsReason::GivenAtRunTime)
                    } else {
                        (is_number(low) && is_number(high)).then(|| picked(tested)).flatten()
                    }
                }
                (OperatorForm::Like, [tested, pattern]) if !operator.starts_with('!') => {
                    self.is_constant(pattern).then(|| picked(tested)).flatten()
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a value is the same for all rows and depends on a variable or parameter.
    fn is_of_run_time(&self, value: &Expr) -> bool {
        let mut has_variable = false;
        value.walk(&mut |part| {
            has_variable |= match &part.kind {
                ExprKind::Parameter(_) => true,
                ExprKind::Column(path) => self.owner(path) == Owner::Nobody,
                _ => false,
            };
        });
        has_variable && self.is_constant(value)
    }

    fn is_boolean(&self, tested: &Expr) -> bool {
        let ExprKind::Column(path) = &tested.kind else { return false };
        let Owner::Member(at) = self.owner(path) else { return false };
        let column = self.table(at).zip(path.last());
        let column = column.and_then(|(table, name)| self.executor.catalog.relation(table).column(name));
        column.is_some_and(|column| column.sql_type.oid.0 == oid::BOOL)
    }

    /// Whether a condition is an equality between these two members.
    fn equates(&self, condition: &Expr, one: usize, other: usize) -> bool {
        let members = self.members_of(condition);
        is_equality(condition)
            && members.is_some_and(|members| members.len() == 2 && members.contains(&one) && members.contains(&other))
    }

    /// Whether there is a row of `next` for each row of the members that were reached. The conditions that say so are then
    /// done with.
    fn joins_every_row(&self, reached: &[usize], next: usize, conditions: &mut Vec<&Condition<'a>>) -> bool {
        let own = reached[0];
        match &self.members[next].source {
            Source::Query { query: Some(query), .. } => {
                self.table(own).is_some_and(|table| self.yields_all_rows(query, table))
                    && self.joins_itself(own, next, query, conditions)
            }
            Source::Table { oid, .. } => reached.iter().any(|from| self.joins_by_key(*from, next, *oid, conditions)),
            _ => false,
        }
    }

    /// A foreign key says that there is exactly one row.
    fn joins_by_key(&self, from: usize, next: usize, table: Oid, conditions: &mut Vec<&Condition<'a>>) -> bool {
        let Some(relation) = self.table(from).map(|oid| self.executor.catalog.relation(oid)) else { return false };
        let keys = relation.constraints.iter().filter_map(|one| always_finds(one, relation));
        for key in keys.filter(|key| key.referenced == table) {
            let pairs = || key.columns.iter().zip(&key.referenced_columns);
            let compares = |condition: &Condition<'_>, (own, other): (&SmolStr, &SmolStr)| {
                self.sides_of(&condition.expression).is_some_and(|(left, right)| {
                    let is = |side: Side<'_>, member, column| side.0 == member && side.1 == column;
                    is(left, from, own) && is(right, next, other) || is(right, from, own) && is(left, next, other)
                })
            };
            if pairs().all(|pair| conditions.iter().any(|condition| compares(condition, pair))) {
                conditions.retain(|condition| !pairs().any(|pair| compares(condition, pair)));
                return true;
            }
        }
        false
    }

    /// A condition finds the row itself in a query of the whole table.
    fn joins_itself(&self, own: usize, next: usize, query: &Query, conditions: &mut Vec<&Condition<'a>>) -> bool {
        let QueryBody::Select(select) = &query.body else { return false };
        let Some(relation) = self.table(own).map(|oid| self.executor.catalog.relation(oid)) else { return false };
        let is_shown = |column: &SmolStr| {
            let is_it = |value: &Expr| matches!(&value.kind, ExprKind::Column(path) if path.last() == Some(column));
            let named = |alias: &Option<SmolStr>| alias.as_ref().is_none_or(|alias| alias == column);
            select.targets.iter().any(|target| is_it(&target.value) && named(&target.alias))
        };
        let finds = |condition: &Condition<'_>| {
            self.sides_of(&condition.expression).is_some_and(|((one, left), (other, right))| {
                let members = one == own && other == next || one == next && other == own;
                members && left == right && is_filled(relation, left) && is_shown(left)
            })
        };
        let is_found = conditions.iter().any(|condition| finds(condition));
        conditions.retain(|condition| !finds(condition));
        is_found
    }

    /// Whether a query yields a row for each row of the table.
    fn yields_all_rows(&self, query: &Query, table: Oid) -> bool {
        let QueryBody::Select(select) = &query.body else { return false };
        let [pgvet_syntax::ast::FromItem::Relation(only)] = select.from.as_slice() else { return false };
        let is_grouped = select.distinct.is_some() || !select.group_by.is_empty() || select.having.is_some();
        let rows = || self.executor.rows_of_query(query, self.env);
        !is_grouped
            && query.offset.is_none()
            && !yields_one_row(select)
            && !self.env.is_cte(&only.name)
            && self.executor.find(&only.name) == Some(table)
            && rows().extent == Extent::All
    }

    /// The columns of `one.column = other.column`.
    fn sides_of<'c>(&self, condition: &'c Expr) -> Option<(Side<'c>, Side<'c>)> {
        let ExprKind::Operator { operator, operands, form: OperatorForm::Plain, .. } = &condition.kind else {
            return None;
        };
        let [left, right] = operands.as_slice() else { return None };
        (operator == "=").then_some((self.side(left)?, self.side(right)?))
    }

    fn side<'c>(&self, expression: &'c Expr) -> Option<Side<'c>> {
        let ExprKind::Column(path) = &expression.kind else { return None };
        match self.owner(path) {
            Owner::Member(at) => Some((at, path.last()?)),
            _ => None,
        }
    }
}

type Side<'c> = (usize, &'c SmolStr);

/// The stronger restriction; of two that restrict alike the one that says more.
fn prefer(left: Rows, next: Rows) -> Rows {
    if next.extent < left.extent || next.extent == left.extent && left.reason == RowsReason::NoCondition {
        next
    } else {
        left
    }
}

/// Whether the condition only says which rows are found on the side of an outer join that may be missing.
fn is_of_missing_side(at: usize, condition: &Condition<'_>) -> bool {
    condition.limits.as_ref().is_some_and(|limits| !limits.contains(&at))
}

fn is_equality(condition: &Expr) -> bool {
    matches!(&condition.kind, ExprKind::Operator { operator, form: OperatorForm::Plain, .. } if operator == "=")
}

/// `x IN (SELECT ...)`, as opposed to EXISTS.
fn condition_tests(condition: &Expr) -> bool {
    matches!(&condition.kind, ExprKind::Subquery { test: Some(_), .. })
}

fn is_filled(relation: &Relation, name: &SmolStr) -> bool {
    relation.column(name).is_some_and(|column| column.not_null)
}

/// A foreign key for which every row has a row of the other table.
fn always_finds<'c>(constraint: &'c Constraint, relation: &Relation) -> Option<&'c ForeignKeyConstraint> {
    let key = constraint.foreign_key().filter(|_| constraint.valid && constraint.enforced)?;
    key.columns.iter().all(|name| is_filled(relation, name)).then_some(key)
}
