//! Variables of a function, and whether a table may already contain their values.

use super::inserted::{ValueSource, generator};
use super::unique::unique_indexes;
use crate::rule::RoutineContext;
use pgvet_model::routine::{Node, VariableKind};
use pgvet_syntax::ast::{Ast, Expr, ExprKind, InsertSource, ParameterMode, Query, QueryBody};
use pgvet_syntax::plpgsql::{DeclarationKind, Into, SqlText, StatementKind, Target};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

/// What is known of the variables of a function.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    /// Those that got a value from a sequence, a generator of UUIDs, or from a row that was just inserted.
    sources: FxHashMap<SmolStr, ValueSource>,
    parameters: FxHashSet<SmolStr>,
    /// Columns of NEW that are a key, or a part of one, of a row that was just inserted.
    fields: FxHashMap<SmolStr, ValueSource>,
    /// NEW is of no known table.
    new_is_unknown: bool,
}

impl Variables {
    pub(crate) fn of(context: &RoutineContext<'_>) -> Self {
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
        let is_new = triggers.iter().all(|using| using.trigger.events.insert && !using.trigger.events.update);
        for using in triggers.iter().filter(|using| using.trigger.events.insert) {
            for unique in unique_indexes(context.catalog, &using.table) {
                let columns = unique.columns().unwrap_or_default();
                let source = match columns.len() {
                    1 if is_new => ValueSource::Generated,
                    _ => ValueSource::MayBeGenerated,
                };
                for column in columns {
                    let known = self.fields.entry(column).or_insert(source);
                    *known = source.min(*known);
                }
            }
        }
    }

    fn assign(&mut self, context: &RoutineContext<'_>, name: &SmolStr, value: &SqlText) {
        if let Some(Ast::Select(query)) = context.routine.sql(value) {
            self.sources.extend(generated(query).map(|source| (name.clone(), source)));
        }
    }

    fn receive(&mut self, ast: &Ast, into: &Into) {
        let source = match ast {
            Ast::Insert(insert)
                if !insert.returning.is_empty() && !matches!(insert.source, InsertSource::DefaultValues) =>
            {
                let updates = insert.on_conflict.as_ref().is_some_and(|conflict| conflict.update.is_some());
                Some(if updates { ValueSource::MayBeGenerated } else { ValueSource::Generated })
            }
            Ast::Select(query) => generated(query),
            _ => None,
        };
        if let Some(source) = source {
            self.sources.extend(into.targets.iter().filter_map(name_of).map(|name| (name, source)));
        }
    }

    /// Returns the source of the value that a name stands for, if the value may be new.
    pub(crate) fn source(&self, path: &[SmolStr]) -> Option<ValueSource> {
        match path {
            [record, field] if record == "new" => {
                let unknown = Some(ValueSource::MayBeGenerated).filter(|_| self.new_is_unknown);
                self.fields.get(field).copied().or(unknown)
            }
            [first, ..] => self.sources.get(first).copied(),
            [] => None,
        }
    }

    /// Whether the caller, or the row that fired the trigger, provides a part of this value.
    pub(crate) fn is_given(&self, value: &Expr) -> bool {
        let mut found = false;
        value.walk(&mut |part| {
            found |= match &part.kind {
                ExprKind::Parameter(_) => true,
                ExprKind::Column(path) if path.len() == 2 && path[0] == "new" => {
                    self.source(path) != Some(ValueSource::Generated)
                }
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

/// Returns the source of the result of a query without tables, if it calls a generator.
fn generated(query: &Query) -> Option<ValueSource> {
    let QueryBody::Select(select) = &query.body else { return None };
    let mut found: Option<ValueSource> = None;
    for target in select.targets.iter().filter(|_| select.from.is_empty()) {
        target.value.walk(&mut |part| {
            if let ExprKind::Call(call) = &part.kind {
                found = [found, generator(call)].into_iter().flatten().min();
            }
        });
    }
    found
}
