//! Whether an index finds the rows that conditions select.

use super::{Condition, Joined};
use crate::catalog::{Index, Oid};
use crate::effect::RowsReason;
use crate::execute::Executor;
use crate::expression::aggregates;
use pgvet_syntax::ast::{Expr, ExprKind, FunctionCall, OperatorForm, Select, SubqueryKind};
use smol_str::SmolStr;
use std::sync::Arc;

impl Joined<'_> {
    /// Returns the reason why the rows of a member are found without reading all of it.
    pub(super) fn found_by(&self, at: usize) -> Option<RowsReason> {
        self.conditions
            .iter()
            .filter(|condition| condition.limits.as_ref().is_none_or(|limits| limits.contains(&at)))
            .find_map(|condition| self.found_by_condition(at, &condition.expression))
            .or_else(|| self.found_by_partition(at))
    }

    fn found_by_condition(&self, at: usize, condition: &Expr) -> Option<RowsReason> {
        match &condition.kind {
            ExprKind::And(list) => list.iter().find_map(|part| self.found_by_condition(at, part)),
            ExprKind::Or(list) => {
                let all: Option<Vec<RowsReason>> = list.iter().map(|part| self.found_by_condition(at, part)).collect();
                all?.into_iter().next()
            }
            ExprKind::Not(operand) if matches!(operand.kind, ExprKind::Column(_)) => self.index_on(at, operand),
            ExprKind::Column(_) => self.index_on(at, condition),
            ExprKind::IsNull { operand, .. } | ExprKind::BooleanTest { operand, .. } => self.index_on(at, operand),
            ExprKind::Subquery { kind: SubqueryKind::Any, test: Some(test), query } => {
                let rows = self.executor.rows_of_query(query, self.env);
                let few = rows.bound().is_some() || rows.may_be_few();
                few.then(|| self.index_on(at, test)).flatten()
            }
            ExprKind::Operator { operator, operands, form, .. } if may_use_index(operator, *form) => {
                operands.iter().enumerate().find_map(|(position, key)| {
                    let others = || operands.iter().enumerate().filter(|(other, _)| *other != position);
                    let are_few = others().all(|(_, other)| self.gives_few_values(at, other));
                    are_few.then(|| self.index_on(at, key)).flatten()
                })
            }
            _ => None,
        }
    }

    /// Whether an operand has few values, so that looking up each of them is cheaper than reading the whole table.
    fn gives_few_values(&self, at: usize, operand: &Expr) -> bool {
        if let ExprKind::Row(list) | ExprKind::Array(list) = &operand.kind {
            return list.iter().all(|one| self.gives_few_values(at, one));
        }
        let Some(members) = self.members_of(operand) else {
            // A column of a query around this one, which runs this for each of its rows, or what is known only at run time.
            return !matches!(operand.kind, ExprKind::Call(_) | ExprKind::Subquery { .. });
        };
        let is_few = |member: &usize| *member != at && (self.bounds[*member].is_some() || self.is_picked(*member));
        members.iter().all(is_few)
    }

    /// Whether constants pick the rows of a member, without the help of others.
    fn is_picked(&self, at: usize) -> bool {
        self.picked.get_or_init(|| {
            let mut picked = vec![false; self.members.len()];
            for condition in &self.conditions {
                if let Some([only]) = self.members_of(&condition.expression).as_deref() {
                    picked[*only] = picked[*only] || self.picked_by(&condition.expression).is_some();
                }
            }
            picked
        })[at]
    }

    /// An index of the member that begins with this expression, or that has a predicate or an expression about its columns.
    fn index_on(&self, at: usize, key: &Expr) -> Option<RowsReason> {
        let keys = match &key.kind {
            ExprKind::Row(list) => list.iter().collect(),
            _ => vec![key],
        };
        let own: Vec<&Expr> =
            keys.into_iter().filter(|key| self.members_of(key).is_some_and(|members| members == [at])).collect();
        let relation = self.executor.catalog.relation(self.table(at)?);
        if own
            .iter()
            .any(|key| matches!(&key.kind, ExprKind::Column(path) if path.last().is_some_and(|name| name == "ctid")))
        {
            return Some(RowsReason::RowAddresses);
        }
        if own.is_empty() {
            return None;
        }
        let mut columns = Vec::new();
        own.iter().for_each(|key| key.walk(&mut |part| columns.extend(last_name(part))));
        let finds = |index: &Index| {
            let Some(first) = index.elements.first() else { return false };
            let begins = own.iter().any(|key| first.key.is_same(key));
            let mut named = Vec::new();
            index.predicate.iter().for_each(|predicate| predicate.walk(&mut |part| named.extend(last_name(part))));
            begins
                || index.method != "btree" && has_column(index, &columns)
                || columns.iter().any(|one| named.contains(one))
        };
        let mut indexes = relation.indexes.iter().filter_map(|oid| {
            let index = self.executor.catalog.relation(*oid);
            Some((index.index().filter(|index| index.valid)?, &index.name))
        });
        indexes.find(|(index, _)| finds(index)).map(|(_, name)| RowsReason::Index { index: name.clone() })
    }

    /// Returns the reason why conditions on the partition key exclude partitions, if they do.
    fn found_by_partition(&self, at: usize) -> Option<RowsReason> {
        let relation = self.executor.catalog.relation(self.table(at)?);
        let keys = relation.partition_by.as_ref()?;
        let is_key = |part: &Expr| keys.keys.iter().any(|key| key.is_same(part));
        let compares = |condition: &Condition<'_>| match &condition.expression.kind {
            ExprKind::Operator { operands, form, .. } if *form != OperatorForm::Distinct => {
                operands.iter().any(is_key) && operands.iter().any(|operand| self.is_constant(operand))
            }
            _ => false,
        };
        self.conditions.iter().any(compares).then_some(RowsReason::PartitionKey)
    }
}

fn has_column(index: &Index, columns: &[&SmolStr]) -> bool {
    let mut found = false;
    for element in index.elements.iter() {
        element.key.walk(&mut |part| found |= last_name(part).is_some_and(|name| columns.contains(&name)));
    }
    found
}

fn last_name(part: &Expr) -> Option<&SmolStr> {
    match &part.kind {
        ExprKind::Column(path) => path.last(),
        _ => None,
    }
}

/// No index finds what differs from a value.
fn may_use_index(operator: &str, form: OperatorForm) -> bool {
    let negates = operator == "<>" || operator.starts_with('!');
    let never = matches!(
        form,
        OperatorForm::Distinct | OperatorForm::NotDistinct | OperatorForm::NotBetween | OperatorForm::AllArray
    );
    !negates && !never
}

impl Executor<'_> {
    /// Whether a query asks for nothing but the least or greatest values of columns that lead an index.
    pub(super) fn asks_for_ends(&self, select: &Select, table: Oid) -> bool {
        let relation = self.catalog.relation(table);
        let indexes = || relation.indexes.iter().filter_map(|oid| self.catalog.relation(*oid).index());
        let is_usable = |index: &&Arc<Index>| index.predicate.is_none() && index.method == "btree" && index.valid;
        let leads = |column: &SmolStr| {
            let leading =
                |index: &Arc<Index>| index.elements.first().and_then(|first| first.key.as_column()) == Some(column);
            indexes().filter(is_usable).any(leading)
        };
        let is_end = |call: &&FunctionCall| {
            let argument = call.arguments.first().map(|argument| &argument.value);
            let column = argument.and_then(last_name);
            matches!(call.name.as_str(), "min" | "max") && call.filter.is_none() && column.is_some_and(leads)
        };
        let mut calls = select.targets.iter().flat_map(|target| aggregates(&target.value)).peekable();
        select.group_by.is_empty() && calls.peek().is_some() && calls.all(|call| is_end(&call))
    }
}
