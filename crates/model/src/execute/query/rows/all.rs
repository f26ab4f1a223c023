//! Members that nothing bounds: whether every row takes part, or what selects a part of them.

use super::{Comparison, Condition, Joined, Owner, Source};
use crate::builtin::oid;
use crate::catalog::{Constraint, ForeignKeyConstraint, Oid, Relation};
use crate::effect::{Extent, Rows, RowsReason};
use crate::expression::yields_one_row;
use pgvet_syntax::ast::{Expr, ExprKind, OperatorForm, Query, QueryBody, SubqueryKind};
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

impl<'a> Joined<'a> {
    /// How many rows of a member take part that nothing bounds.
    pub(super) fn unbounded(&self, at: usize) -> Rows {
        let own = match &self.members[at].source {
            Source::Table { .. } => Rows::all(RowsReason::NoCondition),
            Source::Query { rows, .. } | Source::Other(rows) => rows.clone(),
        };
        let mut left = own;
        let mut selects = Vec::with_capacity(self.conditions.len());
        for condition in &self.conditions {
            let is_of_other = is_of_missing_side(at, condition);
            let rows = if is_of_other { None } else { self.left_by(at, &condition.expression) };
            selects.push(!is_of_other && rows.is_none());
            if let Some(rows) = rows {
                left = prefer(left, rows);
            }
        }
        let reached = self.joined_to_every_row(at, &mut selects);
        if reached.len() > 1 {
            left = prefer(left, Rows::all(RowsReason::EveryRowJoined));
        }
        let conditions = self.conditions.iter().zip(&selects).filter(|(_, selects)| **selects);
        let conditions: Vec<&Condition<'a>> = conditions.map(|(condition, _)| condition).collect();
        if conditions.iter().any(|condition| self.concerns(&reached, &condition.expression)) {
            let part = self.part(at, &conditions);
            return if left.extent == Extent::UnknownPart { left } else { part };
        }
        left
    }

    /// The members that have a row for each row of `at`. The conditions that say so then select nothing.
    fn joined_to_every_row(&self, at: usize, selects: &mut [bool]) -> BTreeSet<usize> {
        let mut reached = BTreeSet::from([at]);
        let mut queue = VecDeque::from([at]);
        while let Some(from) = queue.pop_front() {
            for (&next, comparisons) in &self.compared[from] {
                let is_open = !reached.contains(&next) && !self.is_missing_for(at, next);
                if is_open && self.joins_every_row(at, from, next, comparisons, selects) {
                    reached.insert(next);
                    queue.push_back(next);
                }
            }
        }
        reached
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
    fn concerns(&self, reached: &BTreeSet<usize>, condition: &Expr) -> bool {
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
            let equated = conditions.iter().filter_map(|condition| self.equated_with(&condition.expression, at));
            let other = equated.filter(|other| self.bounds[*other].is_some()).min()?;
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

    /// The member that an equality compares with `at`.
    fn equated_with(&self, condition: &Expr, at: usize) -> Option<usize> {
        if !is_equality(condition) {
            return None;
        }
        match self.members_of(condition)?.as_slice() {
            [one, other] | [other, one] if *one == at => Some(*other),
            _ => None,
        }
    }

    /// Whether there is a row of `next` for each row of `from`, which has one for each row of `own`.
    fn joins_every_row(
        &self,
        own: usize,
        from: usize,
        next: usize,
        comparisons: &[Comparison],
        selects: &mut [bool],
    ) -> bool {
        match &self.members[next].source {
            Source::Query { query: Some(query), .. } => {
                from == own
                    && self.table(own).is_some_and(|table| self.yields_all_rows(query, table))
                    && self.joins_itself(own, query, comparisons, selects)
            }
            Source::Table { oid, .. } => self.joins_by_key(from, *oid, comparisons, selects),
            _ => false,
        }
    }

    /// A foreign key says that there is exactly one row.
    fn joins_by_key(&self, from: usize, table: Oid, comparisons: &[Comparison], selects: &mut [bool]) -> bool {
        let Some(relation) = self.table(from).map(|oid| self.executor.catalog.relation(oid)) else { return false };
        let keys = relation.constraints.iter().filter_map(|one| always_finds(one, relation));
        for key in keys.filter(|key| key.referenced == table) {
            let pairs = || key.columns.iter().zip(&key.referenced_columns);
            let is_of = |one: &Comparison, (own, other): (&SmolStr, &SmolStr)| one.own == *own && one.other == *other;
            let mut found = Vec::new();
            for pair in pairs() {
                let before = found.len();
                let of_pair = comparisons.iter().filter(|one| selects[one.condition] && is_of(one, pair));
                found.extend(of_pair.map(|one| one.condition));
                if found.len() == before {
                    found.clear();
                    break;
                }
            }
            if !found.is_empty() {
                found.into_iter().for_each(|condition| selects[condition] = false);
                return true;
            }
        }
        false
    }

    /// A condition finds the row itself in a query of the whole table.
    fn joins_itself(&self, own: usize, query: &Query, comparisons: &[Comparison], selects: &mut [bool]) -> bool {
        let QueryBody::Select(select) = &query.body else { return false };
        let Some(relation) = self.table(own).map(|oid| self.executor.catalog.relation(oid)) else { return false };
        let is_shown = |column: &SmolStr| {
            let is_it = |value: &Expr| matches!(&value.kind, ExprKind::Column(path) if path.last() == Some(column));
            let named = |alias: &Option<SmolStr>| alias.as_ref().is_none_or(|alias| alias == column);
            select.targets.iter().any(|target| is_it(&target.value) && named(&target.alias))
        };
        let finds = |one: &&Comparison| one.own == one.other && is_filled(relation, &one.own) && is_shown(&one.own);
        let mut is_found = false;
        for one in comparisons.iter().filter(finds) {
            is_found |= std::mem::replace(&mut selects[one.condition], false);
        }
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

    /// Finds which members conditions compare with each other by `=`.
    pub(super) fn find_comparisons(&mut self) {
        let mut compared = vec![BTreeMap::new(); self.members.len()];
        for (condition, it) in self.conditions.iter().enumerate() {
            let Some((left, right)) = self.sides_of(&it.expression) else { continue };
            for ((from, own), (next, other)) in [(left, right), (right, left)] {
                let comparison = Comparison { condition, own: own.clone(), other: other.clone() };
                compared[from].entry(next).or_insert_with(Vec::new).push(comparison);
            }
        }
        self.compared = compared;
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
    let key = constraint.foreign_key().filter(|_| constraint.holds())?;
    key.columns.iter().all(|name| is_filled(relation, name)).then_some(key)
}
