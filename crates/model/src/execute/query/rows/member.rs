//! The members of a FROM clause and their conditions.

use super::query::rows_of_system_relation;
use super::{Condition, Joined, Member, Source};
use crate::catalog::Oid;
use crate::effect::{Rows, RowsReason};
use crate::execute::Executor;
use crate::execute::query::{Env, is_always_true};
use pgvet_syntax::ast::{Alias, Expr, ExprKind, FromItem, JoinKind, OperatorForm, RelationRef};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

impl<'a> Joined<'a> {
    /// The members of FROM, with `target` as the first where a statement changes it.
    pub(in crate::execute::query) fn new(
        executor: &'a Executor<'a>,
        env: &'a Env<'a>,
        target: Option<(Oid, &'a RelationRef)>,
        from: &'a [FromItem],
        filters: impl IntoIterator<Item = &'a Expr>,
    ) -> Self {
        let mut joined = Self {
            executor,
            env,
            members: Vec::new(),
            named: FxHashMap::default(),
            conditions: Vec::new(),
            bounds: Vec::new(),
            compared: Vec::new(),
            picked: OnceCell::new(),
        };
        if let Some((oid, reference)) = target {
            joined.add(reference.called(), Source::Table { oid, only: reference.only }, reference.alias.as_ref(), None);
        }
        for item in from {
            joined.add_item(item);
        }
        for filter in filters {
            joined.add_condition(filter, None);
        }
        joined.find_bounds();
        joined.find_comparisons();
        joined
    }

    fn add(&mut self, name: &SmolStr, source: Source<'a>, alias: Option<&'a Alias>, range: Option<TextRange>) {
        let columns = alias.map_or(&[][..], |alias| &alias.columns);
        self.named.entry(name.clone()).or_insert(self.members.len());
        self.members.push(Member { name: name.clone(), source, columns, optional: false, range });
    }

    fn add_item(&mut self, item: &'a FromItem) {
        match item {
            FromItem::Relation(relation) => {
                let source = self.relation(relation);
                self.add(relation.called(), source, relation.alias.as_ref(), Some(relation.name.range()));
            }
            FromItem::Subquery { query, alias, .. } => {
                let rows = self.executor.rows_of_query(query, self.env);
                let name = alias.as_ref().map_or_else(SmolStr::default, |alias| alias.name.clone());
                self.add(&name, Source::Query { rows, query: Some(&**query) }, alias.as_ref(), None);
            }
            FromItem::Function { calls, alias, .. } => {
                let name = alias.as_ref().map_or_else(SmolStr::default, |alias| alias.name.clone());
                let rows = self.executor.rows_of_functions(calls);
                self.add(&name, Source::Other(rows), alias.as_ref(), None);
            }
            FromItem::Join { kind, left, right, on, using } => self.add_join(*kind, left, right, on.as_ref(), using),
        }
    }

    fn relation(&self, relation: &'a RelationRef) -> Source<'a> {
        if let Some((rows, query)) = self.executor.rows_of_cte(&relation.name, self.env) {
            return Source::Query { rows, query };
        }
        if self.env.is_cte(&relation.name) {
            return Source::Other(Rows::unknown_part(RowsReason::NotKnown));
        }
        if self.executor.is_system_relation(&relation.name) {
            return Source::Other(rows_of_system_relation(&relation.name));
        }
        match self.executor.find(&relation.name) {
            Some(oid) => Source::Table { oid, only: relation.only },
            None => Source::Other(Rows::unknown_part(RowsReason::NotKnown)),
        }
    }

    fn add_join(
        &mut self,
        kind: JoinKind,
        left: &'a FromItem,
        right: &'a FromItem,
        on: Option<&'a Expr>,
        using: &'a [SmolStr],
    ) {
        let start = self.members.len();
        self.add_item(left);
        let middle = self.members.len();
        self.add_item(right);
        let end = self.members.len();
        let (left, right) = (start..middle, middle..end);
        let limits = match kind {
            JoinKind::Inner | JoinKind::Natural => None,
            JoinKind::Left => Some(right.clone()),
            JoinKind::Right => Some(left.clone()),
            JoinKind::Full => Some(0..0),
        };
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            self.members[right.clone()].iter_mut().for_each(|member| member.optional = true);
        }
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            self.members[left.clone()].iter_mut().for_each(|member| member.optional = true);
        }
        if let Some(on) = on {
            self.add_condition(on, limits.as_ref());
        }
        for column in using {
            if let (Some(left), Some(right)) = (self.owner_in(&left, column), self.owner_in(&right, column)) {
                let expression = Cow::Owned(equality(left, right));
                self.conditions.push(Condition { expression, limits: limits.clone() });
            }
        }
    }

    /// The column of USING by the only member of a side that has it.
    fn owner_in(&self, side: &Range<usize>, column: &SmolStr) -> Option<Expr> {
        let mut owners = side.clone().filter(|at| side.len() == 1 || self.has_column(*at, column) == Some(true));
        let owner = owners.next().filter(|_| owners.next().is_none())?;
        let path = vec![self.members[owner].name.clone(), column.clone()];
        Some(Expr { kind: ExprKind::Column(path), range: TextRange::default() })
    }

    fn add_condition(&mut self, condition: &'a Expr, limits: Option<&Range<usize>>) {
        match &condition.kind {
            ExprKind::And(list) => list.iter().for_each(|part| self.add_condition(part, limits)),
            _ if is_always_true(condition) => {}
            _ => {
                let expression = Cow::Borrowed(condition);
                self.conditions.push(Condition { expression, limits: limits.cloned() });
            }
        }
    }
}

fn equality(left: Expr, right: Expr) -> Expr {
    let kind = ExprKind::Operator {
        schema: None,
        operator: SmolStr::new_static("="),
        form: OperatorForm::Plain,
        operands: vec![left, right],
    };
    Expr { kind, range: TextRange::default() }
}
