//! Triggers, rules and policies.

use super::alter_table::is_system_column;
use super::query::Depth;
use super::{Executor, Run, fail};
use crate::catalog::{Oid, Policy, RelationKind, Trigger};
use crate::effect::{ChangeAction, ChangedObject, RuleAction};
use pgvet_syntax::ast::{
    AlterPolicy, CreatePolicy, CreateRule, CreateTrigger, Expr, ExprKind, Firing, LockMode, Name, ObjectName,
    TriggerChoice, TriggerTiming,
};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::sync::Arc;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/trigger.c`, `CreateTriggerFiringOn`.
    pub(super) fn create_trigger(&mut self, create: &CreateTrigger) -> Run {
        let mode = LockMode::ShareRowExclusive;
        let table = self.open(&create.table, RelationKind::Table, mode)?;
        if let Some(from) = &create.constraint_from {
            self.open(from, RelationKind::Table, LockMode::AccessShare)?;
        }
        self.check_trigger(table, create)?;
        let function = self.trigger_function(&create.function);
        if !function.is_valid() {
            let name = &create.function;
            let schema = name.schema.as_ref().map(|schema| &schema.text);
            self.check_other_routine(schema, &name.name.text, name.range())?;
        }
        let trigger = Trigger {
            name: create.name.text.clone(),
            function,
            function_name: create.function.name.text.clone(),
            timing: create.timing,
            for_each_row: create.for_each_row,
            events: create.events,
            columns: create.columns.iter().map(|column| column.text.clone()).collect(),
            firing: Firing::Enable,
            constraint: create.constraint.then(|| create.name.text.clone()),
            deferrable: create.deferrable,
            initially_deferred: create.initially_deferred,
            condition: create.condition.clone().map(Arc::new),
            arguments: create.arguments.clone(),
            transitions: create.transitions.clone(),
            inherited: false,
            defined_at: self.place_of(create.name.range),
        };
        self.put_trigger(table, trigger.clone(), create.or_replace, create.name.range)?;
        let object = ChangedObject::Trigger {
            table: self.relation_name(table),
            which: TriggerChoice::Named(create.name.clone()),
        };
        self.change_object(object, ChangeAction::Create, create.keyword);
        let partitioned = self.catalog.relation(table).kind == RelationKind::PartitionedTable;
        if partitioned && create.for_each_row {
            for partition in self.lock_descendants(table, mode, create.table.range()) {
                let clone = Trigger { inherited: true, ..trigger.clone() };
                self.put_trigger(partition, clone, create.or_replace, create.name.range)?;
            }
        }
        Ok(())
    }

    /// Source: PostgreSQL 18, `src/backend/commands/trigger.c`, `CreateTriggerFiringOn`.
    fn check_trigger(&self, table: Oid, create: &CreateTrigger) -> Run {
        let relation = self.catalog.relation(table);
        let range = create.table.range();
        if !relation.known {
            return Ok(());
        }
        let instead = create.timing == TriggerTiming::InsteadOf;
        let wrong = match relation.kind {
            RelationKind::View => create.events.truncate || !instead && create.for_each_row,
            RelationKind::Table | RelationKind::PartitionedTable | RelationKind::ForeignTable => instead,
            _ => true,
        };
        if wrong {
            return fail("42809", format!("\"{}\" cannot have such a trigger", relation.name), range);
        }
        let is_for_rows = relation.kind == RelationKind::PartitionedTable && create.for_each_row;
        let is_refused =
            !self.target.at_least(11) || create.timing == TriggerTiming::Before && !self.target.at_least(13);
        if is_for_rows && is_refused {
            return fail("42809", format!("\"{}\" is a partitioned table", relation.name), range);
        }
        if instead && !create.for_each_row {
            return fail("0A000", "INSTEAD OF triggers must be FOR EACH ROW", range);
        }
        if create.for_each_row && create.events.truncate {
            return fail("0A000", "TRUNCATE FOR EACH ROW triggers are not supported", range);
        }
        if !create.transitions.is_empty() && relation.kind == RelationKind::View {
            return fail("42809", "triggers on views cannot have transition tables", range);
        }
        let in_tree = relation.kind == RelationKind::PartitionedTable || !relation.parents.is_empty();
        if !create.transitions.is_empty() && create.for_each_row && in_tree {
            let reason = "ROW triggers with transition tables are not supported on partitioned tables and children";
            return fail("0A000", reason, range);
        }
        if let Some(condition) = &create.condition {
            self.check_trigger_condition(table, create, condition)?;
        }
        match create.columns.iter().find(|column| relation.column(&column.text).is_none()) {
            Some(column) => {
                let reason = format!("column \"{}\" of relation \"{}\" does not exist", column.text, relation.name);
                fail("42703", reason, column.range)
            }
            None => Ok(()),
        }
    }

    /// WHEN names columns of the rows that there are, and before the change nothing that is computed by it.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/trigger.c`, `CreateTriggerFiringOn`.
    fn check_trigger_condition(&self, table: Oid, create: &CreateTrigger, condition: &Expr) -> Run {
        if self.analyze(condition, Some(table)).has_subquery {
            return fail("0A000", "cannot use subquery in trigger WHEN condition", condition.range);
        }
        self.check_columns_of_rows(table, condition)?;
        let relation = self.catalog.relation(table);
        let paths = columns_of_rows(condition);
        let names = |row: &str| paths.iter().any(|path| path[0] == row);
        let absent = [("old", create.events.insert), ("new", create.events.delete)];
        if !create.for_each_row && !paths.is_empty() || absent.iter().any(|(row, absent)| *absent && names(row)) {
            return fail("42P17", "the trigger's WHEN condition cannot reference such rows", condition.range);
        }
        let is_generated = |path: &&[SmolStr]| match path {
            [row, column] if row == "new" => relation.column(column).is_some_and(|column| column.generated.is_some()),
            _ => false,
        };
        if create.timing == TriggerTiming::Before && paths.iter().any(is_generated) {
            let reason = "BEFORE trigger's WHEN condition cannot reference NEW generated columns";
            return fail("42P17", reason, condition.range);
        }
        Ok(())
    }

    /// `NEW.column` and `OLD.column` must be there.
    fn check_columns_of_rows(&self, table: Oid, condition: &Expr) -> Run {
        let relation = self.catalog.relation(table);
        let is_missing = |path: &&[SmolStr]| match path {
            [_, column] => relation.column(column).is_none() && !is_system_column(column),
            _ => false,
        };
        match columns_of_rows(condition).iter().find(|path| relation.known && is_missing(path)) {
            Some(path) => fail("42703", format!("column {} does not exist", path.join(".")), condition.range),
            None => Ok(()),
        }
    }

    /// A range of the statement being run in its file, or the statement of the file that runs it.
    fn place_of(&self, range: TextRange) -> (u32, TextRange) {
        (self.place.file, self.text_at.map_or(self.place.range, |by| range.shifted(by)))
    }

    fn put_trigger(&mut self, table: Oid, trigger: Trigger, or_replace: bool, range: TextRange) -> Run {
        let relation = self.catalog.relation(table);
        match relation.triggers.get(&trigger.name) {
            Some(existing) if or_replace && existing.constraint.is_none() => {
                let name = trigger.name.clone();
                self.catalog.relation_mut(table).triggers.update(&name, |existing| *existing = trigger);
            }
            Some(_) => {
                let reason = format!("trigger \"{}\" for relation \"{}\" already exists", trigger.name, relation.name);
                return fail("42710", reason, range);
            }
            None => self.catalog.add_trigger(table, trigger),
        }
        Ok(())
    }

    /// The function of a trigger: the one of that name without parameters.
    fn trigger_function(&self, name: &ObjectName) -> Oid {
        let schemas = self.session.settings.schemas_of(name);
        let find = |schema: &SmolStr| {
            let mut candidates = self.catalog.functions_named(schema, &name.name.text);
            candidates.find(|function| function.parameters.is_empty()).map(|function| function.oid)
        };
        schemas.iter().find_map(find).unwrap_or_default()
    }

    /// Source: PostgreSQL 18, `src/backend/rewrite/rewriteDefine.c`, `DefineRule` and `DefineQueryRewrite`.
    pub(super) fn create_rule(&mut self, create: &CreateRule) -> Run {
        let table = self.open(&create.table, RelationKind::Table, LockMode::AccessExclusive)?;
        if self.catalog.relation(table).kind == RelationKind::MaterializedView {
            return fail("0A000", "rules on materialized views are not supported", create.name.range);
        }
        let before = self.effects.locks.len();
        if let Some(condition) = &create.condition {
            self.read_expression(condition, Depth::Analyze)?;
            self.check_columns_of_rows(table, condition)?;
        }
        for action in &create.actions {
            self.read_statement(action, Depth::Analyze)?;
        }
        let relation = self.catalog.relation(table);
        let can_have_rules =
            matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable | RelationKind::View);
        if !can_have_rules && relation.known {
            return fail("42809", format!("relation \"{}\" cannot have rules", relation.name), create.table.range());
        }
        let named = self.effects.locks[before..].iter().map(|lock| lock.relation.oid);
        self.catalog.set_rule_references(table, &create.name.text, named);
        let relation = self.catalog.relation_mut(table);
        if !relation.rules.contains(&create.name.text) {
            relation.rules.push(create.name.text.clone());
        } else if !create.or_replace {
            let reason = format!("rule \"{}\" for relation \"{}\" already exists", create.name.text, relation.name);
            return fail("42710", reason, create.name.range);
        }
        let does = RuleAction {
            event: create.event,
            instead: create.instead,
            nothing: create.actions.is_empty(),
            conditional: create.condition.is_some(),
        };
        let (name, table) = (create.name.text.clone(), self.relation_name(table));
        let object = ChangedObject::Rule { table, name, does: Some(does) };
        self.change_object(object, ChangeAction::Create, create.name.range);
        Ok(())
    }

    /// Source: PostgreSQL 18, `src/backend/commands/policy.c`, `CreatePolicy`.
    pub(super) fn create_policy(&mut self, create: &CreatePolicy) -> Run {
        let table = self.open(&create.table, RelationKind::Table, LockMode::AccessExclusive)?;
        for expr in create.using.iter().chain(&create.check) {
            self.read_expression(expr, Depth::Analyze)?;
            if !self.analyze(expr, Some(table)).has_subquery {
                self.check_names(table, expr)?;
            }
        }
        let using_reads = self.condition_reads(create.using.as_ref());
        let check_reads = self.condition_reads(create.check.as_ref());
        self.catalog.note_policy(table, create.using.iter().chain(&create.check));
        let relation = self.catalog.relation_mut(table);
        if relation.policies.contains(&create.name.text) {
            let reason = format!("policy \"{}\" for table \"{}\" already exists", create.name.text, relation.name);
            return fail("42710", reason, create.name.range);
        }
        relation.policies.push(Policy {
            name: create.name.text.clone(),
            using: create.using.clone().map(Arc::new),
            check: create.check.clone().map(Arc::new),
            using_reads,
            check_reads,
            permissive: create.permissive,
            command: create.command.clone(),
            roles: create.roles.clone(),
        });
        let object = ChangedObject::Policy { table: self.relation_name(table), name: create.name.text.clone() };
        self.change_object(object, ChangeAction::Create, create.name.range);
        Ok(())
    }

    /// Source: PostgreSQL 18, `src/backend/commands/policy.c`, `AlterPolicy`.
    pub(super) fn alter_policy(&mut self, alter: &AlterPolicy) -> Run {
        let table = self.open(&alter.table, RelationKind::Table, LockMode::AccessExclusive)?;
        for expr in alter.using.iter().chain(&alter.check) {
            self.read_expression(expr, Depth::Analyze)?;
        }
        let object = ChangedObject::Policy { table: self.relation_name(table), name: alter.name.text.clone() };
        self.change_object(object, ChangeAction::Alter, alter.name.range);
        let using_reads = self.condition_reads(alter.using.as_ref());
        let check_reads = self.condition_reads(alter.check.as_ref());
        self.catalog.note_policy(table, alter.using.iter().chain(&alter.check));
        let relation = self.catalog.relation_mut(table);
        let is_there = relation.policies.update(&alter.name.text, |policy| {
            if let Some(using) = &alter.using {
                (policy.using, policy.using_reads) = (Some(Arc::new(using.clone())), using_reads);
            }
            if let Some(check) = &alter.check {
                (policy.check, policy.check_reads) = (Some(Arc::new(check.clone())), check_reads);
            }
            if !alter.roles.is_empty() {
                policy.roles.clone_from(&alter.roles);
            }
        });
        if is_there || !relation.known { Ok(()) } else { missing_policy(&alter.name, &relation.name) }
    }
}

fn missing_policy(policy: &Name, table: &str) -> Run {
    fail("42704", format!("policy \"{}\" for table \"{table}\" does not exist", policy.text), policy.range)
}

/// Returns the columns of the rows NEW and OLD that an expression names.
fn columns_of_rows(expr: &Expr) -> Vec<&[SmolStr]> {
    let mut found: Vec<&[SmolStr]> = Vec::new();
    expr.walk(&mut |part| match &part.kind {
        ExprKind::Column(path) if path.first().is_some_and(|row| row == "new" || row == "old") => found.push(path),
        _ => {}
    });
    found
}
