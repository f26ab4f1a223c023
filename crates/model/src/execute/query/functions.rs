//! Functions that a query calls, and triggers that a data change fires.

use super::Depth;
use super::after::ChangedRows;
use super::constant_names::relation_in_text;
use super::geometry::is_geometry_function;
use super::text_functions::{called_name, text_function};
use crate::builtin;
use crate::catalog::{Oid, RelationKind, Trigger};
use crate::effect::{CalledFunction, DataChangeKind, LockCause, Unknown, UnknownReason};
use crate::execute::rename::is_of_system;
use crate::execute::routine::{Arguments, Variables};
use crate::execute::{Executor, Run, fail};
use crate::session::SettingValue;
use pgvet_syntax::ast::{
    Ast, Call, Expr, ExprKind, Firing, FromItem, FunctionCall, Literal, LockMode, Part, QueryBody, TriggerTiming,
    string_literal,
};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

/// When a trigger runs, as seen from the triggers of foreign keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FiredAt {
    Before,
    /// After the change, but before those of foreign keys because of its name.
    AfterByEarlierName,
    After,
}

/// The beginning of the names of the triggers of foreign keys.
///
/// Source: PostgreSQL 18, `src/backend/commands/trigger.c`, `CreateTriggerFiringOn`.
const FOREIGN_KEY_TRIGGER: &str = "RI_ConstraintTrigger_";

impl FiredAt {
    fn of(trigger: &Trigger) -> Self {
        match trigger.timing {
            TriggerTiming::Before | TriggerTiming::InsteadOf => Self::Before,
            TriggerTiming::After if rank(trigger) == AFTER_ROW && *trigger.name < *FOREIGN_KEY_TRIGGER => {
                Self::AfterByEarlierName
            }
            TriggerTiming::After => Self::After,
        }
    }
}

const AFTER_ROW: u8 = 2;

/// The order of triggers with other names: those of rows run between those of the statement, and deferred ones at the
/// end.
fn rank(trigger: &Trigger) -> u8 {
    match (trigger.timing, trigger.for_each_row) {
        (TriggerTiming::Before, false) => 0,
        (TriggerTiming::Before | TriggerTiming::InsteadOf, _) => 1,
        (TriggerTiming::After, _) if trigger.initially_deferred => 4,
        (TriggerTiming::After, true) => AFTER_ROW,
        (TriggerTiming::After, false) => 3,
    }
}

fn is_fired_by(trigger: &Trigger, kind: DataChangeKind, columns: &[SmolStr]) -> bool {
    match kind {
        DataChangeKind::Insert => trigger.events.insert,
        DataChangeKind::Delete => trigger.events.delete,
        DataChangeKind::Update => {
            let of = &trigger.columns;
            trigger.events.update
                && (of.is_empty() || columns.is_empty() || of.iter().any(|column| columns.contains(column)))
        }
    }
}

fn operation(kind: DataChangeKind) -> &'static str {
    match kind {
        DataChangeKind::Insert => "INSERT",
        DataChangeKind::Update => "UPDATE",
        DataChangeKind::Delete => "DELETE",
    }
}

impl Executor<'_> {
    /// CALL.
    pub(crate) fn call(&mut self, call: &Call) -> Run {
        for argument in &call.call.arguments {
            self.read_expression(&argument.value, Depth::Run)?;
        }
        let call = &call.call;
        if self.called_functions(call).is_empty() {
            self.check_other_routine(call.schema.as_ref(), &call.name, call.name_range)?;
            self.note_missing_function(call);
        }
        self.run_call(call)
    }

    /// Runs a function that a query calls by name.
    pub(super) fn run_call(&mut self, call: &FunctionCall) -> Run {
        let of_system = call.schema.as_ref().is_none_or(|schema| schema == "pg_catalog");
        if self.called_functions(call).is_empty() {
            self.note_reach_of_call(call);
        }
        if of_system && self.run_system_function(call)? {
            return Ok(());
        }
        let argument = |argument: &pgvet_syntax::ast::Argument| (argument.name.clone(), self.value(&argument.value));
        let arguments = call.arguments.iter().map(argument).collect();
        let called = self.called_functions(call);
        if called.is_empty() && is_geometry_function(call) {
            return self.run_geometry_function(call);
        }
        if called.is_empty() {
            return self.run_text_function(call);
        }
        for oid in called {
            self.note_call(oid, call.name_range);
            self.run_function_with(oid, &arguments, call.name_range);
        }
        Ok(())
    }

    /// Notes functions that nothing defines, in a query of which nobody reads the result: it calls them for what they do.
    /// So does any statement that gives one the name of a relation.
    pub(in crate::execute) fn note_missing_functions(&mut self, ast: &Ast) {
        if !matches!(ast, Ast::Select(_) | Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) | Ast::Merge(_)) {
            return;
        }
        if let Ast::Select(query) = ast
            && let QueryBody::Select(select) = &query.body
        {
            let rows = select.from.iter().filter_map(|item| match item {
                FromItem::Function { calls, .. } => Some(calls),
                _ => None,
            });
            let values = select.targets.iter().map(|target| &target.value).chain(rows.flatten());
            for value in values {
                if let ExprKind::Call(call) = &value.kind {
                    self.note_missing_function(call);
                }
            }
        }
        ast.visit(&mut |part| match part {
            Part::Expr(Expr { kind: ExprKind::Call(call), .. }) if self.takes_relation(call) => {
                self.note_missing_function(call);
            }
            _ => {}
        });
    }

    /// Whether an argument is the name of a relation, in quotes.
    fn takes_relation(&self, call: &FunctionCall) -> bool {
        let mut names = call.arguments.iter().filter_map(|argument| relation_in_text(&argument.value));
        names.any(|name| self.find(&name).is_some())
    }

    fn note_missing_function(&mut self, call: &FunctionCall) {
        let name = &call.name;
        let is_defined = self.catalog.functions_with_name(name).next().is_some();
        if is_defined
            || text_function(call).is_some()
            || is_geometry_function(call)
            || is_of_system(call.schema.as_ref(), name)
            || builtin::is_extension_function(name)
        {
            return;
        }
        self.skip_code(UnknownReason::MissingFunction { function: called_name(call) }, call.name_range, true);
    }

    fn note_call(&mut self, oid: Oid, range: TextRange) {
        let Some(function) = self.catalog.get_function(oid) else { return };
        let defined_at = function.defined_at.as_ref().map(|definition| (definition.file, definition.name));
        let is_direct = self.running.is_empty();
        let call = CalledFunction { oid, name: function.display_name(), range, defined_at, is_direct };
        if !self.effects.calls.contains(&call) {
            self.effects.calls.push(call);
        }
    }

    /// Runs a function of PostgreSQL that locks relations; false for any other.
    fn run_system_function(&mut self, call: &FunctionCall) -> Run<bool> {
        let argument = call.arguments.first().map(|argument| &argument.value);
        match call.name.as_str() {
            "nextval" | "setval" | "currval" => {
                if let Some(oid) = argument.and_then(|argument| self.sequence_argument(argument)) {
                    let relation = self.catalog.relation(oid);
                    if relation.kind != RelationKind::Sequence && relation.known {
                        return fail("42809", format!("\"{}\" is not a sequence", relation.name), call.name_range);
                    }
                    self.lock(oid, LockMode::RowExclusive, LockCause::Function, call.name_range);
                }
            }
            "brin_summarize_new_values" | "brin_summarize_range" | "brin_desummarize_range" => {
                if let Some(index) = argument.and_then(|argument| self.relation_argument(argument)) {
                    let table = self.catalog.relation(index).index().map(|index| index.table);
                    for oid in table.into_iter().chain([index]) {
                        self.lock(oid, LockMode::ShareUpdateExclusive, LockCause::Function, call.name_range);
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The functions of the project that a call may mean: those that take so many arguments.
    pub(crate) fn called_functions(&self, call: &FunctionCall) -> Vec<Oid> {
        self.catalog.functions_called(call, &self.session.settings.search_path())
    }

    /// Runs a function of the project; a refusal inside depends on data too often to be the statement's.
    pub(crate) fn run_function(&mut self, oid: Oid, range: TextRange) {
        self.run_function_with(oid, &Arguments::new(), range);
    }

    fn run_function_with(&mut self, oid: Oid, arguments: &Arguments, range: TextRange) {
        let locked_before = self.effects.locks.len();
        self.run_unless_refused(|executor| executor.call_function(oid, arguments, range));
        self.effects.locks.are_of_code(locked_before);
    }

    fn run_unless_refused(&mut self, run: impl FnOnce(&mut Self) -> Run) {
        let (catalog, session) = (self.catalog.clone(), self.session.clone());
        if let Err(failure) = run(self) {
            self.forget_refused();
            self.catalog = catalog;
            self.session = session;
            self.unknown(format!("a function that it calls may fail: {}", failure.reason));
        }
    }

    /// Runs the functions of the triggers that a change of rows fires at this time.
    pub(super) fn fire_triggers(&mut self, rows: &ChangedRows, at: FiredAt, range: TextRange) {
        let fires = |trigger: &Trigger| FiredAt::of(trigger) == at && is_fired_by(trigger, rows.kind, &rows.columns);
        self.run_triggers(rows.table, operation(rows.kind), fires, range);
    }

    /// Runs the functions of all triggers that a change of rows fires.
    pub(super) fn fire_all_triggers(
        &mut self,
        table: Oid,
        kind: DataChangeKind,
        columns: &[SmolStr],
        range: TextRange,
    ) {
        self.run_triggers(table, operation(kind), |trigger| is_fired_by(trigger, kind, columns), range);
    }

    /// Runs the functions of the triggers of TRUNCATE.
    pub(crate) fn fire_truncate_triggers(&mut self, table: Oid, range: TextRange) {
        self.run_triggers(table, "TRUNCATE", |trigger| trigger.events.truncate, range);
    }

    /// Whether `session_replication_role` keeps ordinary triggers and those of foreign keys from firing.
    pub(super) fn is_replica(&self) -> bool {
        let role = self.session.settings.get("session_replication_role");
        role.is_some_and(|setting| setting.value.eq_ignore_ascii_case("replica"))
    }

    fn run_triggers(&mut self, table: Oid, operation: &str, fires: impl Fn(&Trigger) -> bool, range: TextRange) {
        let replica = self.is_replica();
        let relation = self.catalog.relation(table);
        let mut fired: Vec<&Arc<Trigger>> = (relation.triggers.iter())
            .filter(|trigger| match trigger.firing {
                Firing::Enable => !replica,
                Firing::EnableAlways => true,
                Firing::EnableReplica => replica,
                Firing::Disable => false,
            })
            .filter(|trigger| fires(trigger))
            .collect();
        if fired.is_empty() {
            return;
        }
        fired.sort_by_key(|trigger| (rank(trigger), &trigger.name));
        let calls: Vec<_> = fired
            .into_iter()
            .filter_map(|trigger| {
                let function = self.catalog.get_function(trigger.function)?.clone();
                Some((function, Variables::of_trigger(relation, trigger, operation)))
            })
            .collect();
        let locked_before = self.effects.locks.len();
        let before = self.effects.data_changes.len();
        let known = std::mem::take(&mut self.effects.unknown);
        self.unrecorded(|executor| {
            for (function, variables) in calls {
                executor.run_unless_refused(|executor| executor.call_with(&function, variables, range));
            }
        });
        self.effects.locks.are_of_code(locked_before);
        for unknown in std::mem::replace(&mut self.effects.unknown, known) {
            self.effects.note_unknown(Unknown { by_trigger: true, ..unknown });
        }
        // The triggers of a view do what the statement says.
        if self.catalog.relation(table).kind != RelationKind::View {
            self.effects.data_changes[before..].iter_mut().for_each(|change| change.by_trigger = true);
        }
    }

    /// `set_config('name', 'value', is_local)` as an output column of a SELECT is SET.
    pub(super) fn run_set_config(&mut self, call: &FunctionCall) {
        let [name, value, local] = &call.arguments[..] else { return };
        let (Some(name), Some(value)) = (string_literal(&name.value), string_literal(&value.value)) else { return };
        let local = match &local.value.kind {
            ExprKind::Literal(Literal::Boolean(local)) => *local,
            _ => match string_literal(&local.value) {
                Some("t" | "true" | "on" | "1") => true,
                Some("f" | "false" | "off" | "0") => false,
                _ => return,
            },
        };
        let name = SmolStr::new(name.to_ascii_lowercase());
        let value = SettingValue { value: value.into(), place: self.place };
        if !local {
            self.session.settings.set(name, value);
        } else if self.is_in_transaction() {
            self.session.settings.set_local(name, value);
        }
    }
}
