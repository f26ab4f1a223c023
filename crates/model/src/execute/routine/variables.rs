//! Variables and parameters of the code that runs, as far as their values are known.

use super::value::Value;
use crate::catalog::{Relation, Trigger};
use pgvet_syntax::ast::TriggerTiming;
use pgvet_syntax::plpgsql::{Block, Context, LoopKind, Statement, StatementKind, Target, Visitor, walk};
use smol_str::{SmolStr, ToSmolStr};

/// The variables in scope. One whose value is not known is there with `None`, so that it is not treated as a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Variables(Vec<(SmolStr, Option<Value>)>);

impl Variables {
    /// Those that a trigger function has when the trigger fires.
    ///
    /// Source: PostgreSQL 18 documentation, 41.10.1.
    pub(in crate::execute) fn of_trigger(table: &Relation, trigger: &Trigger, operation: &str) -> Self {
        let when = match trigger.timing {
            TriggerTiming::Before => "BEFORE",
            TriggerTiming::After => "AFTER",
            TriggerTiming::InsteadOf => "INSTEAD OF",
        };
        let level = if trigger.for_each_row { "ROW" } else { "STATEMENT" };
        let values = [
            ("tg_op", operation),
            ("tg_when", when),
            ("tg_level", level),
            ("tg_name", &trigger.name),
            ("tg_relname", &table.name),
            ("tg_table_name", &table.name),
            ("tg_table_schema", &table.schema),
        ];
        let known = |(name, value): (&str, &str)| (SmolStr::new(name), Some(Value::Text(value.to_owned())));
        Self(values.into_iter().map(known).collect())
    }

    /// Sets `name`, or `record.field`, and forgets the fields of a record of that name.
    pub(in crate::execute) fn set(&mut self, name: SmolStr, value: Option<Value>) {
        self.0.retain(|(known, _)| *known != name && !is_field(known, &name));
        self.0.push((name, value));
    }

    pub(super) fn set_field(&mut self, record: &str, field: &str, value: Option<Value>) {
        self.0.push((format!("{record}.{field}").to_smolstr(), value));
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().rev().find(|(known, _)| known == name).and_then(|(_, value)| value.as_ref())
    }

    /// Whether code has no variable besides FOUND, which all code has, and those of triggers.
    pub(in crate::execute) fn is_empty(&self) -> bool {
        self.0.iter().all(|(name, _)| name == "found" || name.starts_with("tg_"))
    }

    /// Whether it is a variable, or a field of a record.
    pub(super) fn has(&self, path: &[SmolStr]) -> bool {
        path.first().is_some_and(|first| self.0.iter().any(|(known, _)| known == first))
    }

    pub(super) fn forget(&mut self, names: impl IntoIterator<Item = SmolStr>) {
        names.into_iter().for_each(|name| self.set(name, None));
    }

    /// After code that may or may not have run: forgets what it changed.
    pub(super) fn merge(&mut self, before: &Self) {
        for (name, value) in &mut self.0 {
            if before.get(name) != value.as_ref() {
                *value = None;
            }
        }
    }
}

fn is_field(known: &str, record: &str) -> bool {
    known.strip_prefix(record).is_some_and(|rest| rest.starts_with('.'))
}

/// The name under which a target is kept.
pub(super) fn target_name(target: &Target) -> SmolStr {
    match target.names.as_slice() {
        [name] => name.clone(),
        names => names.join(".").into(),
    }
}

/// Every variable that the statements may change.
pub(super) fn assigned(statements: &[Statement]) -> Vec<SmolStr> {
    struct Assigned(Vec<SmolStr>);
    impl Visitor for Assigned {
        fn statement(&mut self, statement: &Statement, _: Context) {
            let into = |into: &Option<pgvet_syntax::plpgsql::Into>| {
                into.iter().flat_map(|into| into.targets.clone()).collect()
            };
            let targets: Vec<Target> = match &statement.kind {
                StatementKind::Assign(assign) => vec![assign.target.clone()],
                StatementKind::Execute(execute) => into(&execute.into),
                StatementKind::Sql(sql) => into(&sql.into),
                StatementKind::Fetch(fetch) => into(&fetch.into),
                StatementKind::GetDiagnostics(items) => items.items.iter().map(|(target, _)| target.clone()).collect(),
                StatementKind::Loop(a_loop) => loop_targets(&a_loop.kind).to_vec(),
                _ => Vec::new(),
            };
            self.0.extend(targets.iter().map(target_name));
            let sets_found = matches!(
                statement.kind,
                StatementKind::Sql(_) | StatementKind::Perform(_) | StatementKind::Fetch(_) | StatementKind::Loop(_)
            );
            if sets_found {
                self.0.push(SmolStr::new_static("found"));
            }
        }
    }
    let mut found = Assigned(Vec::new());
    let block = Block { statements: statements.to_vec(), ..Block::default() };
    walk(&block, &mut found);
    found.0
}

/// The variables that a loop sets.
pub(super) fn loop_targets(kind: &LoopKind) -> &[Target] {
    match kind {
        LoopKind::Endless | LoopKind::While(_) => &[],
        LoopKind::Integer { variable, .. } => std::slice::from_ref(variable),
        LoopKind::Query { targets, .. }
        | LoopKind::Dynamic { targets, .. }
        | LoopKind::Cursor { targets, .. }
        | LoopKind::Foreach { targets, .. } => targets,
    }
}
