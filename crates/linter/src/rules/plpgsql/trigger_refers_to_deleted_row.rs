//! Triggers that refer to a row which the statement that fires them deletes.

use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RoutineContext, declare_rule};
use pgvet_model::catalog::{Constraint, ForeignKeyConstraint, Relation, Trigger};
use pgvet_model::effect::DataChangeKind;
use pgvet_model::routine::{Around, Node, SqlRole, Step, Trial, TriggerUse};
use pgvet_syntax::ast::from_pg::parse_sql;
use pgvet_syntax::ast::{
    Ast, Expr, ExprKind, Firing, Insert, InsertSource, Part, QueryBody, ReferentialAction, TriggerTiming,
};
use pgvet_syntax::lexer::quote_identifier;
use pgvet_syntax::plpgsql::{Branch, Condition, ConditionKind, Statement, StatementKind};
use smol_str::SmolStr;
use std::sync::Arc;

declare_rule! {
    /// A trigger for `DELETE` inserts a row that refers to a row which the same statement deletes.
    ///
    /// ## Why it matters
    ///
    /// When the trigger runs, the row is already deleted, or is deleted right after. The foreign key of the inserted row
    /// finds no row to refer to, and the whole `DELETE` fails with "violates foreign key constraint" (SQLSTATE 23503).
    /// With `ON DELETE CASCADE`, this happens one table further: a `DELETE` of a team also deletes its members, the
    /// trigger on the members writes a log row for the team, and no team with members can be deleted any more. `ON DELETE
    /// CASCADE` and `ON DELETE SET NULL` of the log table do not help, because the row of the log is inserted too late.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE teams (id bigint PRIMARY KEY);
    /// CREATE TABLE members (id bigint PRIMARY KEY, team_id bigint REFERENCES teams ON DELETE CASCADE);
    /// CREATE TABLE log (team_id bigint REFERENCES teams, entry text);
    /// CREATE FUNCTION log_member() RETURNS trigger LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     INSERT INTO log (team_id, entry) VALUES (OLD.team_id, 'left');
    ///     RETURN OLD;
    /// END $$;
    /// CREATE TRIGGER log_member AFTER DELETE ON members FOR EACH ROW EXECUTE FUNCTION log_member();
    /// ```
    ///
    /// Use instead:
    ///
    /// Keep the key in the log table without a foreign key:
    ///
    /// ```sql,clean
    /// CREATE TABLE teams (id bigint PRIMARY KEY);
    /// CREATE TABLE members (id bigint PRIMARY KEY, team_id bigint REFERENCES teams ON DELETE CASCADE);
    /// CREATE TABLE log (team_id bigint, entry text);
    /// CREATE FUNCTION log_member() RETURNS trigger LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     INSERT INTO log (team_id, entry) VALUES (OLD.team_id, 'left');
    ///     RETURN OLD;
    /// END $$;
    /// CREATE TRIGGER log_member AFTER DELETE ON members FOR EACH ROW EXECUTE FUNCTION log_member();
    /// ```
    ///
    /// ## Also reported
    ///
    /// - a trigger on the referenced table itself that inserts a row with the key of the deleted row: an `AFTER` trigger, or
    ///   a `BEFORE` trigger if the foreign key has no action for `DELETE`
    ///
    /// ## When it is not reported
    ///
    /// - values other than the plain column of `OLD`, or `coalesce(NEW.x, OLD.x)`
    /// - foreign keys of several columns, or foreign keys that are not enforced
    /// - an `INSERT` that a `DELETE` does not reach, such as one after `IF TG_OP = 'INSERT'`
    /// - an `INSERT` in a block whose `EXCEPTION` handler catches the error
    /// - `DEFERRABLE INITIALLY DEFERRED` foreign keys with an action for `DELETE`
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible` if a condition other than one on `TG_OP` decides whether the trigger inserts the row.
    "trigger-refers-to-deleted-row", Plpgsql, Warning,
    {}
    routine = check,
}

/// A value that an INSERT gives a foreign key.
struct Reference<'a> {
    table: &'a Relation,
    constraint: &'a Constraint,
    key: &'a ForeignKeyConstraint,
    /// The column of OLD.
    old: &'a SmolStr,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let uses: Vec<&TriggerUse> = context.triggers().iter().filter(|used| fires(used)).collect();
    if uses.is_empty() {
        return;
    }
    let steps = context.routine.steps();
    for (at, step) in steps.iter().enumerate() {
        for sql in step.sql.iter().filter(|sql| sql.role == SqlRole::Statement) {
            let Ast::Insert(insert) = sql.ast else { continue };
            let Some(table) = context.relation(&insert.table.name).filter(|table| table.known) else { continue };
            if is_caught(step) {
                continue;
            }
            let found = references(insert, table).into_iter().find_map(|reference| {
                let mut fails = uses.iter().filter_map(|used| Some((*used, harm(context, used, &reference)?)));
                fails.find(|(used, _)| is_reached(context, used, table)).map(|(used, harm)| (used, harm, reference))
            });
            let Some((used, harm, reference)) = found else { continue };
            let column = &reference.key.columns[0];
            let help = format!(
                "keep the key in `{}` without the foreign key `{}`, or insert the row with NULL in `{column}`",
                table.name, reference.constraint.name
            );
            let range = sql.place(insert.table.name.range());
            let finding = reporter.report(range, harm).relation(&context.relation_name(&used.table)).help(help);
            let is_certain =
                used.trigger.condition.is_none() && steps[..=at].iter().all(|step| is_about_operation(&steps, step));
            let assumption = Assumption::TriggerInserts { table: used.table.name.clone() };
            finding.assuming((!is_certain).then_some(assumption)).emit();
        }
    }
}

/// Whether the trigger runs for each deleted row.
fn fires(used: &TriggerUse) -> bool {
    let trigger = &used.trigger;
    trigger.for_each_row
        && trigger.events.delete
        && trigger.timing != TriggerTiming::InsteadOf
        && matches!(trigger.firing, Firing::Enable | Firing::EnableAlways)
}

/// The foreign keys to which an INSERT gives a column of OLD.
fn references<'a>(insert: &'a Insert, table: &'a Relation) -> Vec<Reference<'a>> {
    let values = values_of(insert, table);
    let keys = table.constraints.iter().filter(|constraint| constraint.enforced);
    let keys = keys.filter_map(|constraint| Some((&**constraint, constraint.foreign_key()?)));
    keys.filter_map(|(constraint, key)| {
        let [column] = key.columns.as_slice() else { return None };
        let old = values.iter().find(|(name, _)| *name == column).and_then(|(_, value)| column_of_old(value))?;
        Some(Reference { table, constraint, key, old })
    })
    .collect()
}

/// The values of an INSERT of one row, with their columns.
fn values_of<'a>(insert: &'a Insert, table: &'a Relation) -> Vec<(&'a SmolStr, &'a Expr)> {
    let InsertSource::Query(query) = &insert.source else { return Vec::new() };
    let values: Vec<&Expr> = match &query.body {
        QueryBody::Values(rows) => rows.first().map_or_else(Vec::new, |row| row.iter().collect()),
        QueryBody::Select(select) if select.from.is_empty() && select.filter.is_none() => {
            select.targets.iter().map(|target| &target.value).collect()
        }
        _ => Vec::new(),
    };
    if insert.columns.is_empty() {
        return table.columns.iter().map(|column| &column.name).zip(values).collect();
    }
    insert.columns.iter().map(|column| &column.text).zip(values).collect()
}

/// The column in `OLD.column`. NEW is NULL in a trigger for DELETE.
fn column_of_old(value: &Expr) -> Option<&SmolStr> {
    match &value.kind {
        ExprKind::Cast { operand, .. } => column_of_old(operand),
        ExprKind::Column(path) => match path.as_slice() {
            [row, column] if row == "old" => Some(column),
            _ => None,
        },
        ExprKind::Coalesce(parts) => {
            let is_new = |part: &Expr| matches!(&part.kind, ExprKind::Column(path) if path.first().is_some_and(|row| row == "new"));
            column_of_old(parts.iter().find(|part| !is_new(part))?)
        }
        _ => None,
    }
}

/// What fails, if a DELETE does.
///
/// Source: tried on PostgreSQL 14 and 18; `src/backend/utils/adt/ri_triggers.c`, `RI_FKey_check`.
fn harm(context: &RoutineContext<'_>, used: &TriggerUse, reference: &Reference<'_>) -> Option<String> {
    let Reference { table, constraint, key, old, .. } = reference;
    let (deleted, trigger) = (&used.table, &used.trigger);
    let has_action = !matches!(key.on_delete, ReferentialAction::NoAction | ReferentialAction::Restrict);
    let [referenced] = key.referenced_columns.as_slice() else { return None };
    if constraint.initially_deferred && has_action {
        return None;
    }
    if deleted.oid == key.referenced {
        let is_own = referenced == *old && !constraint.initially_deferred;
        let fails = is_own && (trigger.timing == TriggerTiming::After || !has_action);
        return fails.then(|| {
            format!(
                "every DELETE from `{}` fails: trigger `{}` inserts a row into `{}` that refers to the deleted row",
                deleted.name, trigger.name, table.name
            )
        });
    }
    let cascades = |other: &Arc<Constraint>| {
        other.enforced
            && other.foreign_key().is_some_and(|other| {
                other.referenced == key.referenced
                    && other.on_delete == ReferentialAction::Cascade
                    && other.columns.as_slice() == [(*old).clone()]
                    && other.referenced_columns == key.referenced_columns
            })
    };
    let parent = context.catalog.get_relation(key.referenced)?;
    deleted.constraints.iter().any(cascades).then(|| {
        format!(
            "a DELETE from `{}` fails if a row of `{}` refers to the deleted row: ON DELETE CASCADE also deletes the row of \
             `{}`, and trigger `{}` then inserts a row into `{}` that refers to the deleted row of `{}`",
            parent.name, deleted.name, deleted.name, trigger.name, table.name, parent.name
        )
    })
}

/// Whether the trigger may insert rows into a table when a row is deleted: its code can ask which operation fires it.
fn is_reached(context: &RoutineContext<'_>, used: &TriggerUse, table: &Relation) -> bool {
    let deleted = &used.table;
    let (schema, name) = (quote_identifier(&deleted.schema), quote_identifier(&deleted.name));
    let Some(delete) = parse_sql(&format!("DELETE FROM {schema}.{name}")).ok().and_then(|mut list| list.pop()) else {
        return false;
    };
    let mut catalog = context.catalog.clone();
    let is_other = |trigger: &Trigger| trigger.name != used.trigger.name;
    catalog.relation_mut(deleted.oid).triggers.update_where(is_other, |other| other.firing = Firing::Disable);
    let trial = Trial::of_code(&catalog, &context.routine.search_path, context.settings.versions.to);
    let changes = trial.run_in_block(&delete).data_changes;
    changes.iter().any(|change| change.kind == DataChangeKind::Insert && change.relation.oid == table.oid)
}

/// Whether a handler around a step catches the violation of a foreign key.
fn is_caught(step: &Step<'_>) -> bool {
    let catches = |condition: &Condition| match &condition.kind {
        ConditionKind::Name(name) => {
            name.eq_ignore_ascii_case("foreign_key_violation")
                || name.eq_ignore_ascii_case("integrity_constraint_violation")
        }
        ConditionKind::SqlState(state) => state == "23503" || state == "23000",
        ConditionKind::Others => true,
    };
    step.around.iter().any(|around| match around {
        Around::Exception { section, .. } => {
            section.handlers.iter().any(|handler| handler.conditions.iter().any(catches))
        }
        _ => false,
    })
}

/// Whether no condition other than one on the operation decides if the code ends at a step, or reaches one that inserts
/// rows.
fn is_about_operation(steps: &[Step<'_>], step: &Step<'_>) -> bool {
    let is_end = matches!(step.node, Node::Statement(statement) if matches!(statement.kind, StatementKind::Return(_)));
    let inserts = step.sql.iter().any(|sql| matches!(sql.ast, Ast::Insert(_)));
    let is_plain = |around: &Around<'_>| match around {
        Around::Branch(branch) => asks_for_operation(branch),
        Around::Else(otherwise) => steps.iter().any(|outer| match outer.node {
            Node::Statement(Statement { kind: StatementKind::If(conditional), .. }) => {
                let is_it = conditional.otherwise.as_ref().is_some_and(|own| std::ptr::eq(own, *otherwise));
                is_it && conditional.branches.iter().all(asks_for_operation)
            }
            _ => false,
        }),
        Around::Exception { .. } => true,
        Around::Loop { .. } | Around::Handler { .. } => false,
    };
    !(is_end || inserts) || step.around.iter().all(is_plain)
}

/// Whether a condition is about nothing but `TG_OP`.
fn asks_for_operation(branch: &Branch) -> bool {
    let Ok(parsed) = parse_sql(&format!("SELECT {}", branch.condition.text)) else { return false };
    let (mut columns, mut is_other) = (0, false);
    for ast in &parsed {
        ast.visit(&mut |part| match part {
            Part::Expr(Expr { kind: ExprKind::Column(path), .. }) => {
                columns += 1;
                is_other |= path.as_slice() != ["tg_op"];
            }
            Part::Read(_) => is_other = true,
            _ => {}
        });
    }
    columns > 0 && !is_other
}
