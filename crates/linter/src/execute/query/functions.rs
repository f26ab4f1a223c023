//! Functions that a query calls, and triggers that a data change fires.

use super::Depth;
use crate::ast::{Call, Expr, ExprKind, Firing, FunctionCall, Literal, TriggerEvents, string_literal};
use crate::catalog::Oid;
use crate::effect::{CalledFunction, DataChangeKind, LockCause, LockMode, RelationKind};
use crate::execute::routine::Arguments;
use crate::execute::{Executor, Run, fail};
use crate::session::SettingValue;
use crate::source::TextRange;
use smol_str::SmolStr;

/// The arguments of the calls that act on a relation given as text, as far as they are constant.
fn constant_text(expr: &Expr) -> Option<&str> {
    string_literal(expr)
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
        }
        self.run_call(call)
    }

    /// Runs a function that a query calls by name.
    pub(super) fn run_call(&mut self, call: &FunctionCall) -> Run {
        let of_system = call.schema.as_ref().is_none_or(|schema| schema == "pg_catalog");
        if of_system && self.run_system_function(call)? {
            return Ok(());
        }
        let argument = |argument: &crate::ast::Argument| (argument.name.clone(), self.value(&argument.value));
        let arguments = call.arguments.iter().map(argument).collect();
        for oid in self.called_functions(call) {
            self.note_call(oid, call.name_range);
            self.run_function_with(oid, &arguments, call.name_range);
        }
        Ok(())
    }

    fn note_call(&mut self, oid: Oid, range: TextRange) {
        let Some(function) = self.catalog.get_function(oid) else { return };
        let defined_at = function.defined_at.as_ref().map(|definition| (definition.file, definition.name));
        let call = CalledFunction { oid, name: function.display_name(), range, defined_at };
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

    /// The sequence that `'name'` or `pg_get_serial_sequence('table', 'column')` stands for.
    fn sequence_argument(&self, argument: &Expr) -> Option<Oid> {
        match &argument.kind {
            ExprKind::Call(call) if call.name == "pg_get_serial_sequence" => {
                let table = self.relation_argument(&call.arguments.first()?.value)?;
                let column = constant_text(&call.arguments.get(1)?.value)?;
                let owned = &self.catalog.relation(table).owned_sequences;
                owned.iter().copied().find(|sequence| {
                    let sequence = self.catalog.get_relation(*sequence).and_then(|relation| relation.sequence());
                    let owner = sequence.and_then(|sequence| sequence.owned_by.as_ref());
                    owner.is_some_and(|(_, owned)| owned == column)
                })
            }
            ExprKind::Cast { operand, .. } => self.sequence_argument(operand),
            _ => self.relation_argument(argument),
        }
    }

    /// The relation that a constant names.
    fn relation_argument(&self, argument: &Expr) -> Option<Oid> {
        let text = constant_text(argument)?;
        let mut parts: Vec<SmolStr> = split_identifier(text);
        let range = argument.range;
        let name = crate::ast::Name::new(parts.pop()?, range);
        let schema = parts.pop().map(|schema| crate::ast::Name::new(schema, range));
        self.find(&crate::ast::ObjectName { schema, name })
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
        let (catalog, session) = (self.catalog.clone(), self.session.clone());
        if let Err(failure) = self.call_function(oid, arguments, range) {
            self.catalog = catalog;
            self.session = session;
            self.unknown(format!("a function that it calls may fail: {}", failure.reason));
        }
    }

    /// Runs the functions of the triggers that a change of rows fires.
    pub(super) fn fire_triggers(&mut self, table: Oid, kind: DataChangeKind, columns: &[SmolStr], range: TextRange) {
        let fires = |events: TriggerEvents, of: &[SmolStr]| match kind {
            DataChangeKind::Insert => events.insert,
            DataChangeKind::Delete => events.delete,
            DataChangeKind::Update => {
                events.update
                    && (of.is_empty() || columns.is_empty() || of.iter().any(|column| columns.contains(column)))
            }
        };
        self.run_triggers(table, fires, range);
    }

    /// Runs the functions of the triggers of TRUNCATE.
    pub(crate) fn fire_truncate_triggers(&mut self, table: Oid, range: TextRange) {
        self.run_triggers(table, |events, _| events.truncate, range);
    }

    fn run_triggers(&mut self, table: Oid, fires: impl Fn(TriggerEvents, &[SmolStr]) -> bool, range: TextRange) {
        let replica = self
            .session
            .settings
            .get("session_replication_role")
            .is_some_and(|setting| setting.value.eq_ignore_ascii_case("replica"));
        let functions: Vec<Oid> = (self.catalog.relation(table).triggers.iter())
            .filter(|trigger| match trigger.firing {
                Firing::Enable => !replica,
                Firing::EnableAlways => true,
                Firing::EnableReplica => replica,
                Firing::Disable => false,
            })
            .filter(|trigger| fires(trigger.events, &trigger.columns))
            .map(|trigger| trigger.function)
            .collect();
        let before = self.effects.data_changes.len();
        for function in functions {
            self.run_function(function, range);
        }
        // The triggers of a view do what the statement says.
        if self.catalog.relation(table).kind != RelationKind::View {
            self.effects.data_changes[before..].iter_mut().for_each(|change| change.by_trigger = true);
        }
    }

    /// `set_config('name', 'value', is_local)` as an output column of a SELECT is SET.
    pub(super) fn run_set_config(&mut self, call: &FunctionCall) {
        let [name, value, local] = &call.arguments[..] else { return };
        let (Some(name), Some(value)) = (constant_text(&name.value), constant_text(&value.value)) else { return };
        let local = match &local.value.kind {
            ExprKind::Literal(Literal::Boolean(local)) => *local,
            _ => match constant_text(&local.value) {
                Some("t" | "true" | "on" | "1") => true,
                Some("f" | "false" | "off" | "0") => false,
                _ => return,
            },
        };
        let name = SmolStr::new(name.to_ascii_lowercase());
        let value = SettingValue { value: value.into(), place: self.place };
        if !local {
            self.session.settings.set(name, value);
        } else if self.session.in_transaction() {
            self.session.settings.set_local(name, value);
        }
    }
}

/// Splits the text of a possibly qualified name as PostgreSQL's regclass input does.
fn split_identifier(text: &str) -> Vec<SmolStr> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut quoted = false;
    let mut characters = text.trim().chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                part.push('"');
            }
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(SmolStr::new(std::mem::take(&mut part))),
            _ if quoted => part.push(character),
            _ => part.push(character.to_ascii_lowercase()),
        }
    }
    parts.push(SmolStr::new(part));
    parts
}

#[cfg(test)]
mod tests {
    use super::split_identifier;

    #[test]
    fn names_in_text_are_folded_and_unquoted() {
        assert_eq!(split_identifier("Public.\"My \"\"Seq\""), ["public", "My \"Seq"]);
    }
}
