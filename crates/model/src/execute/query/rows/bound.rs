//! Members of which a limited number of rows takes part: constants, or values of other bounded members, for all columns
//! of a unique index.

use super::{Bound, Condition, Joined, Member, Owner, Source};
use crate::builtin::oid;
use crate::catalog::{Index, Relation, RelationKind};
use crate::effect::{Rows, RowsReason};
use pgvet_syntax::ast::{Expr, ExprKind, Literal, OperatorForm, SubqueryKind};
use smol_str::SmolStr;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of branches of OR that are examined.
const MAX_BRANCHES: usize = 100;

/// Expressions of a member that are equal to a limited number of values.
struct Pin<'c> {
    keys: Vec<&'c Expr>,
    values: u64,
    /// The members whose rows give the values.
    from: Vec<usize>,
}

impl<'a> Joined<'a> {
    pub(super) fn find_bounds(&mut self) {
        let members = self.members.iter().enumerate();
        self.bounds = members.map(|(at, member)| self.own_bound(member).or_else(|| self.no_rows(at))).collect();
        let members_of: Vec<BTreeSet<usize>> =
            self.conditions.iter().map(|condition| self.members_named(&condition.expression)).collect();
        let mut conditions_of = vec![Vec::new(); self.members.len()];
        for (condition, members) in members_of.iter().enumerate() {
            members.iter().for_each(|member| conditions_of[*member].push(condition));
        }
        // Each round looks at the members that a condition connects with one that was bounded since.
        let mut round: BTreeSet<usize> = (0..self.members.len()).collect();
        while !round.is_empty() {
            let mut next = BTreeSet::new();
            while let Some(at) = round.pop_first() {
                if self.bounds[at].is_none() && self.table(at).is_some() {
                    self.bounds[at] = self.bound_by_key(at, &self.conditions, true);
                    if self.bounds[at].is_some() {
                        let connected = conditions_of[at].iter().flat_map(|condition| &members_of[*condition]);
                        let (later, earlier): (Vec<usize>, Vec<usize>) = connected.partition(|other| **other > at);
                        round.extend(later);
                        next.extend(earlier);
                    }
                }
            }
            round = next;
        }
    }

    /// The members whose columns a condition names.
    fn members_named(&self, condition: &Expr) -> BTreeSet<usize> {
        let mut members = BTreeSet::new();
        condition.walk(&mut |part| {
            if let ExprKind::Column(path) = &part.kind
                && let Owner::Member(at) = self.owner(path)
            {
                members.insert(at);
            }
        });
        members
    }

    /// Returns the bound of a member that does not depend on conditions.
    fn own_bound(&self, member: &Member<'a>) -> Option<Bound> {
        let rows = match &member.source {
            Source::Table { oid, .. } => self.executor.rows_of_table(*oid),
            Source::Query { rows, .. } | Source::Other(rows) => rows.clone(),
        };
        rows.bound().map(|bound| Bound { rows: bound, factor: bound, reason: rows.reason })
    }

    /// Returns the bound of a member of which a condition excludes all rows.
    fn no_rows(&self, at: usize) -> Option<Bound> {
        if self.table(at).is_none() || self.members[at].optional {
            return None;
        }
        let holds = |condition: &&Condition<'_>| condition.limits.as_ref().is_none_or(|limits| limits.contains(&at));
        let mut conditions = self.conditions.iter().filter(holds);
        let reason = conditions.find_map(|condition| self.excluded_by(at, &condition.expression))?;
        Some(Bound { rows: 0, factor: 0, reason })
    }

    /// The rows that unique indexes, or their addresses, leave.
    fn bound_by_key(&self, at: usize, conditions: &[Condition<'_>], looks_into_or: bool) -> Option<Bound> {
        let holds = |condition: &&Condition<'_>| condition.limits.as_ref().is_none_or(|limits| limits.contains(&at));
        let conditions: Vec<&Condition<'_>> = conditions.iter().filter(holds).collect();
        let pins = self.pins(at, &conditions);
        let by_index = self.unique_indexes(at).filter_map(|(index, name)| {
            let implied = self.implies_predicate(at, &index, &conditions);
            let reason = RowsReason::UniqueIndex { index: name.clone() };
            let keys: Vec<&Expr> = index.elements.iter().map(|element| &element.key).collect();
            implied.then(|| self.bound_of(at, &keys, &pins, reason)).flatten()
        });
        let address =
            Expr { kind: ExprKind::Column(vec!["ctid".into()]), range: pgvet_syntax::source::TextRange::default() };
        let by_address = self.bound_of(at, &[&address], &pins, RowsReason::RowAddresses);
        let by_branches = || if looks_into_or { self.bound_by_branches(at, &conditions) } else { None };
        by_index.chain(by_address).min_by_key(|bound| bound.rows).or_else(by_branches)
    }

    /// `id = 1 OR id = 2`.
    fn bound_by_branches(&self, at: usize, conditions: &[&Condition<'_>]) -> Option<Bound> {
        conditions.iter().find_map(|condition| {
            let ExprKind::Or(branches) = &condition.expression.kind else { return None };
            if branches.len() > MAX_BRANCHES {
                return None;
            }
            let bound = |branch: &Expr| {
                let mut parts = Vec::new();
                add_parts(branch, &mut parts);
                self.bound_by_key(at, &parts, false)
            };
            let bounds: Vec<Bound> = branches.iter().map(bound).collect::<Option<_>>()?;
            let rows = bounds.iter().fold(0_u64, |sum, bound| sum.saturating_add(bound.rows));
            let reason = bounds.first()?.reason.clone();
            Some(Bound { rows, factor: rows, reason })
        })
    }

    /// The unique indexes that all rows of a member are in.
    fn unique_indexes(&self, at: usize) -> impl Iterator<Item = (Arc<Index>, &SmolStr)> {
        let table = self.table(at).map(|oid| self.executor.catalog.relation(oid)).filter(|relation| {
            let only = matches!(self.members[at].source, Source::Table { only: true, .. });
            // Indexes of a parent do not see the rows of tables that inherit from it.
            only || relation.kind == RelationKind::PartitionedTable || relation.children.is_empty()
        });
        let indexes = table.into_iter().flat_map(|table| &table.unique_indexes);
        indexes.filter_map(|oid| {
            let relation: &Relation = self.executor.catalog.relation(*oid);
            let index = relation.index().filter(|index| index.valid)?;
            Some((index.clone(), &relation.name))
        })
    }

    /// Whether each part of the predicate of a partial index is among the conditions.
    fn implies_predicate(&self, at: usize, index: &Index, conditions: &[&Condition<'_>]) -> bool {
        let Some(predicate) = &index.predicate else { return true };
        let mut parts = Vec::new();
        add_parts(predicate, &mut parts);
        let holds = |condition: &&Condition<'_>, part: &Condition<'_>| {
            condition.expression.is_same(&part.expression)
                && self.members_of(&condition.expression).is_some_and(|members| members == [at])
        };
        parts.iter().all(|part| conditions.iter().any(|condition| holds(condition, part)))
    }

    /// The rows with the pinned values of all keys.
    fn bound_of(&self, at: usize, keys: &[&Expr], pins: &[Pin<'_>], reason: RowsReason) -> Option<Bound> {
        let (mut used, mut from) = (Vec::new(), Vec::new());
        for key in keys {
            let pins_key = |pin: &&Pin<'_>| pin.keys.iter().any(|pinned| self.is_key(at, key, pinned));
            let cheapest = pins.iter().enumerate().filter(|(_, pin)| pins_key(pin));
            let (number, pin) = cheapest.min_by_key(|(_, pin)| self.values_of(pin))?;
            if !used.contains(&number) {
                used.push(number);
                from.extend(pin.from.iter().copied());
            }
        }
        from.sort_unstable();
        from.dedup();
        let factor = used.iter().fold(1_u64, |product, number| product.saturating_mul(pins[*number].values));
        let others = from.iter().filter_map(|other| self.bounds[*other].as_ref());
        let rows = others.fold(factor, |product, other| product.saturating_mul(other.rows));
        Some(Bound { rows, factor, reason })
    }

    fn values_of(&self, pin: &Pin<'_>) -> u64 {
        let others = pin.from.iter().filter_map(|other| self.bounds[*other].as_ref());
        others.fold(pin.values, |product, other| product.saturating_mul(other.rows))
    }

    /// Whether a pinned expression is the key of an index of the member.
    fn is_key(&self, at: usize, key: &Expr, pinned: &Expr) -> bool {
        // Other names of the columns may exchange them.
        self.members[at].columns.is_empty()
            && key.is_same(pinned)
            && self.members_of(pinned).is_some_and(|members| members == [at])
    }

    fn pins<'c>(&self, at: usize, conditions: &[&'c Condition<'_>]) -> Vec<Pin<'c>> {
        let mut pins: Vec<Pin<'c>> = Vec::new();
        for condition in conditions {
            pins.extend(self.pins_of(at, &condition.expression));
        }
        pins.extend(self.key_ranges(at, conditions));
        pins
    }

    fn pins_of<'c>(&self, at: usize, condition: &'c Expr) -> Vec<Pin<'c>> {
        match &condition.kind {
            ExprKind::Operator { operator, operands, form, .. } if operator == "=" => {
                self.pins_of_equality(at, *form, operands)
            }
            ExprKind::Subquery { kind: SubqueryKind::Any, test: Some(test), query } if self.is_independent(query) => {
                let rows = self.executor.rows_of_query(query, self.env);
                rows.bound().map(|values| pin(test, values, Vec::new())).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn pins_of_equality<'c>(&self, at: usize, form: OperatorForm, operands: &'c [Expr]) -> Vec<Pin<'c>> {
        match (form, operands) {
            (OperatorForm::Plain, [left, right]) => match (&left.kind, &right.kind) {
                (ExprKind::Row(left), ExprKind::Row(right)) if left.len() == right.len() => {
                    left.iter().zip(right).flat_map(|(left, right)| self.pins_of_pair(at, left, right)).collect()
                }
                _ => self.pins_of_pair(at, left, right),
            },
            (OperatorForm::NotDistinct, [left, right]) if is_value(right) => self.pins_of_pair(at, left, right),
            (OperatorForm::In, [tested, list @ ..]) if list.iter().all(|value| self.is_constant(value)) => {
                vec![pin(tested, list.len() as u64, Vec::new())]
            }
            (OperatorForm::AnyArray, [tested, array]) => {
                self.elements(array).map(|values| pin(tested, values, Vec::new())).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// `left = right`, where either is a key.
    fn pins_of_pair<'c>(&self, at: usize, left: &'c Expr, right: &'c Expr) -> Vec<Pin<'c>> {
        let one_side = |(key, value): (&'c Expr, &'c Expr)| {
            let from = self.members_of(value).filter(|members| !members.contains(&at) && keeps_equality(value))?;
            from.iter().all(|other| self.bounds[*other].is_some()).then(|| pin(key, 1, from))
        };
        [(left, right), (right, left)].into_iter().filter_map(one_side).collect()
    }

    /// How many elements an array has at most.
    fn elements(&self, array: &Expr) -> Option<u64> {
        match &array.kind {
            ExprKind::Array(list) if list.iter().all(|value| self.is_constant(value)) => Some(list.len() as u64),
            ExprKind::Subquery { kind: SubqueryKind::Array, query, .. } if self.is_independent(query) => {
                self.executor.rows_of_query(query, self.env).bound()
            }
            ExprKind::Cast { operand, .. } if matches!(operand.kind, ExprKind::Array(_)) => self.elements(operand),
            _ if self.is_constant(array) => self.executor.length_of(array),
            _ => None,
        }
    }

    /// `id BETWEEN 1 AND 1000`, `id >= 1 AND id < 1001`, of whole numbers.
    fn key_ranges<'c>(&self, at: usize, conditions: &[&'c Condition<'_>]) -> Vec<Pin<'c>> {
        let mut ranges: Vec<(&'c Expr, i64, i64)> = Vec::new();
        for (key, low, high) in conditions.iter().filter_map(|condition| self.limits_of(at, &condition.expression)) {
            match ranges.iter_mut().find(|(known, ..)| known.is_same(key)) {
                Some(range) => (range.1, range.2) = (range.1.max(low), range.2.min(high)),
                None => ranges.push((key, low, high)),
            }
        }
        let is_closed = |(_, low, high): &(&Expr, i64, i64)| *low != i64::MIN && *high != i64::MAX;
        let values = |low: i64, high: i64| high.checked_sub(low).map_or(u64::MAX, |more| more.max(-1).abs_diff(-1));
        ranges.into_iter().filter(is_closed).map(|(key, low, high)| pin(key, values(low, high), Vec::new())).collect()
    }

    /// The least and the greatest number that a condition leaves to a column of whole numbers.
    fn limits_of<'c>(&self, at: usize, condition: &'c Expr) -> Option<(&'c Expr, i64, i64)> {
        let ExprKind::Operator { operator, operands, form, .. } = &condition.kind else { return None };
        match (form, operands.as_slice()) {
            (OperatorForm::Between, [key, low, high]) => {
                let (low, high) = (self.number(low)?, self.number(high)?);
                // SYMMETRIC takes them in any order.
                self.is_whole_number(at, key).then_some((key, low.min(high), high.max(low)))
            }
            (OperatorForm::Plain, [left, right]) => {
                let (key, number, operator) = match self.number(right) {
                    Some(number) => (left, number, operator.as_str()),
                    None => (right, self.number(left)?, mirrored(operator)),
                };
                let (low, high) = match operator {
                    ">=" => (number, i64::MAX),
                    ">" => (number.checked_add(1)?, i64::MAX),
                    "<=" => (i64::MIN, number),
                    "<" => (i64::MIN, number.checked_sub(1)?),
                    _ => return None,
                };
                self.is_whole_number(at, key).then_some((key, low, high))
            }
            _ => None,
        }
    }

    fn number(&self, expression: &Expr) -> Option<i64> {
        if self.is_constant(expression) { self.executor.whole_number(expression) } else { None }
    }

    fn is_whole_number(&self, at: usize, key: &Expr) -> bool {
        let ExprKind::Column(path) = &key.kind else { return false };
        let column = path.last().zip(self.table(at));
        let column = column.and_then(|(name, oid)| self.executor.catalog.relation(oid).column(name));
        column.is_some_and(|column| [oid::INT2, oid::INT4, oid::INT8].contains(&column.sql_type.oid.0))
    }
}

fn pin(tested: &Expr, values: u64, from: Vec<usize>) -> Pin<'_> {
    let keys = match &tested.kind {
        ExprKind::Row(list) => list.iter().collect(),
        _ => vec![tested],
    };
    Pin { keys, values, from }
}

/// `1 < id` is `id > 1`.
fn mirrored(operator: &str) -> &str {
    match operator {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        other => other,
    }
}

/// A literal other than NULL.
fn is_value(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Literal(literal) => *literal != Literal::Null,
        ExprKind::Cast { operand, .. } => is_value(operand),
        _ => false,
    }
}

/// Whether a key is equal to this value only where the index says so: types such as citext and float8 take more values
/// for equal.
fn keeps_equality(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Cast { target, .. } => !matches!(target.name.as_str(), "citext" | "float4" | "float8"),
        ExprKind::Collate { .. } => false,
        _ => true,
    }
}

/// The parts of AND.
fn add_parts<'c>(condition: &'c Expr, parts: &mut Vec<Condition<'c>>) {
    match &condition.kind {
        ExprKind::And(list) => list.iter().for_each(|part| add_parts(part, parts)),
        _ => parts.push(Condition { expression: std::borrow::Cow::Borrowed(condition), limits: None }),
    }
}

impl Rows {
    /// As many as the smaller of two bounds.
    pub(super) fn limited(self, limit: Option<u64>) -> Self {
        match limit {
            Some(limit) if self.bound().is_none_or(|bound| limit < bound) => Self::at_most(limit, RowsReason::Limit),
            _ => self,
        }
    }
}
