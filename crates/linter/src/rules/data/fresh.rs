//! Variables of a function whose values cannot be in a table yet.

use super::inserted::is_generator;
use crate::ast::{Ast, Expr, ExprKind, InsertSource, ParameterMode, Query, QueryBody};
use crate::catalog::Relation;
use crate::plpgsql::{DeclarationKind, Into, SqlText, StatementKind, Target};
use crate::routine::{Node, RoutineContext, VariableKind};
use rustc_hash::FxHashSet;
use smol_str::SmolStr;

/// What is known of the variables of a function.
#[derive(Debug, Default)]
pub(super) struct Variables {
    /// They got a value from a sequence, a generator of UUIDs, or from a row that was just inserted.
    fresh: FxHashSet<SmolStr>,
    parameters: FxHashSet<SmolStr>,
    /// Columns of NEW that are the key of a row that was just inserted.
    fresh_fields: FxHashSet<SmolStr>,
    /// NEW is of no known table.
    new_is_unknown: bool,
}

impl Variables {
    pub(super) fn of(context: &RoutineContext<'_>) -> Self {
        let mut found = Self::default();
        for variable in context.routine.variables() {
            if let VariableKind::Parameter { mode, .. } = variable.kind
                && matches!(mode, ParameterMode::In | ParameterMode::InOut)
            {
                found.parameters.insert(variable.name);
            }
        }
        found.triggers(context);
        for step in context.routine.steps() {
            match step.node {
                Node::Block(block) => {
                    for declaration in &block.declarations {
                        if let DeclarationKind::Variable(variable) = &declaration.kind
                            && let Some(default) = &variable.default
                        {
                            found.assign(context, &declaration.name.text, default);
                        }
                    }
                }
                Node::Statement(statement) => match &statement.kind {
                    StatementKind::Assign(assign) => {
                        if let [name] = assign.target.names.as_slice() {
                            found.assign(context, name, &assign.value);
                        }
                    }
                    StatementKind::Sql(sql) => {
                        if let (Some(into), Some(ast)) = (&sql.into, context.routine.sql(&sql.text)) {
                            found.receive(ast, into);
                        }
                    }
                    _ => {}
                },
                Node::Sql(_) => {}
            }
        }
        found
    }

    /// After an INSERT, the keys of NEW are those of a row that was not there before.
    fn triggers(&mut self, context: &RoutineContext<'_>) {
        let triggers = context.triggers();
        self.new_is_unknown = triggers.is_empty() || triggers.iter().any(|using| !using.table.known);
        for using in triggers.iter().filter(|using| using.trigger.events.insert) {
            self.fresh_fields.extend(unique_columns(context, &using.table));
        }
    }

    fn assign(&mut self, context: &RoutineContext<'_>, name: &SmolStr, value: &SqlText) {
        if let Some(Ast::Select(query)) = context.routine.sql(value)
            && generates(query)
        {
            self.fresh.insert(name.clone());
        }
    }

    fn receive(&mut self, ast: &Ast, into: &Into) {
        let is_fresh = match ast {
            Ast::Insert(insert) => {
                !insert.returning.is_empty() && !matches!(insert.source, InsertSource::DefaultValues)
            }
            Ast::Select(query) => generates(query),
            _ => false,
        };
        if is_fresh {
            self.fresh.extend(into.targets.iter().filter_map(name_of));
        }
    }

    /// Can the value of this name not be in a table yet?
    pub(super) fn is_fresh(&self, path: &[SmolStr]) -> bool {
        match path {
            [record, field] if record == "new" => self.new_is_unknown || self.fresh_fields.contains(field),
            [first, ..] => self.fresh.contains(first),
            [] => false,
        }
    }

    /// Does the caller, or the row that fired the trigger, give a part of this value?
    pub(super) fn is_given(&self, value: &Expr) -> bool {
        let mut found = false;
        value.walk(&mut |part| {
            found |= match &part.kind {
                ExprKind::Parameter(_) => true,
                ExprKind::Column(path) if path.len() == 2 && path[0] == "new" => !self.is_fresh(path),
                ExprKind::Column(path) => path.iter().take(2).any(|name| self.parameters.contains(name)),
                _ => false,
            };
        });
        found
    }
}

fn name_of(target: &Target) -> Option<SmolStr> {
    target.names.first().cloned()
}

/// Columns that are part of a unique key of a table.
fn unique_columns(context: &RoutineContext<'_>, table: &Relation) -> Vec<SmolStr> {
    let indexes = super::unique::unique_indexes(context.catalog, table);
    indexes.iter().flat_map(|unique| unique.index.plain_columns().unwrap_or_default()).collect()
}

/// Does a query without tables call a generator?
fn generates(query: &Query) -> bool {
    let QueryBody::Select(select) = &query.body else { return false };
    select.from.is_empty()
        && select.targets.iter().any(|target| {
            let mut found = false;
            target.value.walk(&mut |part| {
                if let ExprKind::Call(call) = &part.kind {
                    found |= is_generator(&call.name, call.arguments.len());
                }
            });
            found
        })
}
