//! Triggers that let nobody change rows of a table, so that no batch can fill a new column.

use super::{Advice, before};
use crate::rule::RuleContext;
use pgvet_model::catalog::{Relation, Trigger};
use pgvet_model::effect::RelationName;
use pgvet_model::routine::{Node, Routine};
use pgvet_syntax::ast::{Firing, TriggerTiming};
use pgvet_syntax::plpgsql::{RaiseLevel, StatementKind};

/// What to do in place of a second column that batches fill, if a trigger of the table refuses every UPDATE.
pub(super) fn in_place_of_second(context: &RuleContext<'_>, table: &RelationName, column: &str) -> Option<Advice> {
    advice(context, table, &format!("a new column in place of `{column}`"))
}

/// What to do in place of a new column that batches fill, if a trigger of the table refuses every UPDATE.
pub(super) fn in_place_of_batches(context: &RuleContext<'_>, table: &RelationName, column: &str) -> Option<Advice> {
    advice(context, table, &format!("`{column}`"))
}

fn advice(context: &RuleContext<'_>, table: &RelationName, filled: &str) -> Option<Advice> {
    let trigger = before(context, table).and_then(|relation| refuses_updates(context, relation))?;
    let (name, table) = (&trigger.name, &table.name);
    let advice = Advice::new(format!(
        "run this while nobody uses `{table}`: {filled} cannot be filled in batches, because the trigger `{name}` \
         raises an error on every UPDATE of `{table}`"
    ));
    Some(advice.without_steps(format!("the trigger `{name}` raises an error on every UPDATE of `{table}`")))
}

/// A trigger that raises an error for each UPDATE, whichever columns and rows it changes.
fn refuses_updates<'c>(context: &RuleContext<'c>, relation: &'c Relation) -> Option<&'c Trigger> {
    let fires = |trigger: &&Trigger| {
        let is_enabled = matches!(trigger.firing, Firing::Enable | Firing::EnableAlways);
        let is_for_all = trigger.columns.is_empty() && trigger.condition.is_none();
        is_enabled && trigger.events.update && is_for_all && trigger.timing != TriggerTiming::InsteadOf
    };
    let raises = |trigger: &&Trigger| {
        let function = context.before.get_function(trigger.function);
        function.and_then(Routine::alone).is_some_and(|routine| always_raises(&routine))
    };
    relation.triggers.iter().map(|trigger| &**trigger).filter(fires).find(raises)
}

/// Whether every run of the code ends in an error: an exception that depends on nothing, with nothing before it that
/// returns.
fn always_raises(routine: &Routine) -> bool {
    let steps = routine.steps();
    let kinds = steps.iter().filter_map(|step| match step.node {
        Node::Statement(statement) => Some((&statement.kind, step.around.is_empty())),
        _ => None,
    });
    let mut until_return = kinds.take_while(|(kind, _)| !matches!(kind, StatementKind::Return(_)));
    until_return.any(|(kind, is_alone)| {
        is_alone && matches!(kind, StatementKind::Raise(raise) if raise.level == RaiseLevel::Exception)
    })
}
