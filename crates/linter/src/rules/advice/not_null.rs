//! NOT NULL without reading the table under ACCESS EXCLUSIVE.

use super::{Advice, before, everywhere_at_least};
use crate::fix::Step;
use crate::rule::RuleContext;
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::{ConstraintKind, Relation};
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::{AlterTableAction, Ast, ExprKind};
use pgvet_syntax::lexer::identifier as unquoted;
use smol_str::SmolStr;

/// The whole advice for columns that are to become NOT NULL.
pub(crate) fn advice(context: &RuleContext<'_>, table: &RelationName, columns: &[SmolStr]) -> Advice {
    let advice = Advice::new(sentence(context)).all(steps(context, table, columns));
    if everywhere_at_least(context, 12) {
        let steps = all_steps(context, table, columns);
        advice.with_steps(context, steps)
    } else {
        advice.then("before PostgreSQL 12, SET NOT NULL always reads the whole table: keep the CHECK instead")
    }
}

/// The steps, and where it was not SET NOT NULL that asked for them, the statement itself.
fn all_steps(context: &RuleContext<'_>, table: &RelationName, columns: &[SmolStr]) -> Vec<Step> {
    let known = before(context, table);
    // A CHECK that was there before stays.
    let stays = |sql: &String| {
        let dropped = sql.rsplit_once(" DROP CONSTRAINT ").map(|(_, name)| unquoted(name));
        dropped.is_some_and(|name| known.is_some_and(|relation| relation.constraint(&name).is_some()))
    };
    let mut steps: Vec<Step> =
        steps(context, table, columns).into_iter().filter(|sql| !stays(sql)).map(Step::new).collect();
    let Ast::AlterTable(statement) = context.ast else { return Vec::new() };
    if !statement.commands.iter().all(|command| matches!(command.action, AlterTableAction::SetNotNull { .. })) {
        steps.push(Step::new(context.text(context.statement.range)));
    }
    steps
}

fn sentence(context: &RuleContext<'_>) -> &'static str {
    if everywhere_at_least(context, 18) {
        "add the NOT NULL constraint as NOT VALID (PostgreSQL 18 and later), then validate it in a later transaction, \
         which does not block reads or writes:"
    } else if everywhere_at_least(context, 12) {
        "first add a CHECK (... IS NOT NULL) as NOT VALID, then validate it in a later transaction, which does not \
         block reads or writes:"
    } else {
        "add a CHECK (... IS NOT NULL) as NOT VALID instead, and validate it in a later transaction, which does not \
         block reads or writes:"
    }
}

/// The statements; the first and the second must not run in one transaction.
///
/// Source: PostgreSQL 12 release notes (SET NOT NULL uses a valid CHECK); 18 release notes (NOT NULL ... NOT VALID).
pub(crate) fn steps(context: &RuleContext<'_>, table: &RelationName, columns: &[SmolStr]) -> Vec<String> {
    columns.iter().flat_map(|column| column_steps(context, table, column)).collect()
}

fn column_steps(context: &RuleContext<'_>, table: &RelationName, column: &SmolStr) -> Vec<String> {
    let sql_table = sql_name(context, table);
    let sql_column = identifier(column);
    let choose = |label: &str| {
        let name = context.before.choose_constraint_name(&table.name, Some(column), label, &table.schema, &[]);
        identifier(&name)
    };
    if everywhere_at_least(context, 18) {
        let name = choose("not_null");
        return vec![
            format!("ALTER TABLE {sql_table} ADD CONSTRAINT {name} NOT NULL {sql_column} NOT VALID"),
            format!("ALTER TABLE {sql_table} VALIDATE CONSTRAINT {name}"),
        ];
    }
    let unvalidated = before(context, table).and_then(|relation| unvalidated_proof(relation, column));
    let mut steps = Vec::new();
    let name = unvalidated.map_or_else(|| choose("is_not_null"), |name| identifier(name));
    if unvalidated.is_none() {
        steps.push(format!("ALTER TABLE {sql_table} ADD CONSTRAINT {name} CHECK ({sql_column} IS NOT NULL) NOT VALID"));
    }
    steps.push(format!("ALTER TABLE {sql_table} VALIDATE CONSTRAINT {name}"));
    if everywhere_at_least(context, 12) {
        steps.push(format!("ALTER TABLE {sql_table} ALTER COLUMN {sql_column} SET NOT NULL"));
        steps.push(format!("ALTER TABLE {sql_table} DROP CONSTRAINT {name}"));
    }
    steps
}

/// A CHECK that would prove it and only has to be validated.
fn unvalidated_proof<'r>(relation: &'r Relation, column: &SmolStr) -> Option<&'r SmolStr> {
    let proves = |constraint: &&std::sync::Arc<pgvet_model::catalog::Constraint>| {
        let ConstraintKind::Check { expression, .. } = &constraint.kind else { return false };
        let ExprKind::IsNull { operand, negated: true } = &expression.kind else { return false };
        !constraint.valid && constraint.enforced && operand.as_column() == Some(column)
    };
    relation.constraints.iter().find(proves).map(|constraint| &constraint.name)
}

/// The statements for the columns of a primary key, where they help: before 12 it reads the table in any case.
pub(crate) fn steps_for_key(context: &RuleContext<'_>, table: &RelationName, columns: &[SmolStr]) -> Vec<String> {
    if everywhere_at_least(context, 12) {
        steps(context, table, &nullable(context, table, columns))
    } else {
        Vec::new()
    }
}

/// Those of the columns that may hold nulls.
fn nullable(context: &RuleContext<'_>, table: &RelationName, columns: &[SmolStr]) -> Vec<SmolStr> {
    let relation = before(context, table);
    let may_be_null =
        |column: &&SmolStr| relation.and_then(|relation| relation.column(column)).is_none_or(|column| !column.not_null);
    columns.iter().filter(may_be_null).cloned().collect()
}
