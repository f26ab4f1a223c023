//! Defaults that a CHECK of the table refuses.

use crate::declared::{DeclarationContext, Declared};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{Until, ahead};
use crate::rules::statement::altered::Altered;
use pgvet_model::builtin::oid;
use pgvet_model::catalog::{Catalog, Column, ConstraintKind, Relation, TypeKind};
use pgvet_model::effect::RelationName;
use pgvet_model::expression::{Value, evaluate};
use pgvet_syntax::ast::{AlterTableAction, ConstraintKind as Syntax, Expr, ExprKind, TriggerTiming};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// The default of a column violates a `CHECK` of the table.
    ///
    /// ## Why it matters
    ///
    /// Every `INSERT` that omits the column uses the default, and fails with "new row for relation violates check
    /// constraint" (SQLSTATE 23514). The migration itself succeeds if no existing row violates the constraint.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE orders (id bigint PRIMARY KEY, quantity int NOT NULL DEFAULT 0 CHECK (quantity > 0));
    /// ```
    ///
    /// Use instead:
    ///
    /// Give the column a default that satisfies the constraint, or none.
    ///
    /// ```sql,clean
    /// CREATE TABLE orders (id bigint PRIMARY KEY, quantity int NOT NULL DEFAULT 1 CHECK (quantity > 0));
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a default or a constraint that later statements change
    /// - a condition that depends on other columns, or on functions other than `length`, `lower`, `upper` and `trim`
    /// - a table with a `BEFORE INSERT` trigger, which may set the column
    ///
    /// ## Other linters
    ///
    /// No other known linter reports these defaults.
    "default-violates-check", Schema, Warning,
    {}
    declaration = check_constraint,
    statement = check_default,
}

/// A CHECK, with the defaults that are there in the end.
fn check_constraint(context: &DeclarationContext<'_>, reporter: &mut Reporter<'_>) {
    let Declared::Constraint { constraint, .. } = context.declared else { return };
    let Syntax::Check(condition) = &constraint.kind else { return };
    if let Some(kept) = context.relation.constraints.enforced_check(condition)
        && let ConstraintKind::Check { expression, columns } = &kept.kind
        && let Some(column) =
            columns.iter().find_map(|column| refused(context.catalog, context.relation, column, expression))
    {
        report(reporter, constraint.range, context.relation, column, &kept.name);
    }
}

/// SET DEFAULT, with the CHECKs that are older.
fn check_default(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(altered) = Altered::of(context).filter(|_| context.effects.fails.is_none()) else { return };
    for command in &altered.statement.commands {
        let AlterTableAction::SetDefault { column, .. } = &command.action else { continue };
        let Some(old) = context.before.get_relation(altered.table.oid) else { continue };
        let end = ahead(context, &column.text, Until::EndOfMigration);
        let Some(table) = end.get_relation(altered.table.oid) else { continue };
        let checks = table.constraints.iter().filter(|check| check.enforced && old.constraint(&check.name).is_some());
        for check in checks {
            let ConstraintKind::Check { expression, columns } = &check.kind else { continue };
            if columns.contains(&column.text)
                && let Some(found) = refused(&end, table, &column.text, expression)
            {
                report(reporter, command.range, table, found, &check.name);
            }
        }
    }
}

/// The column, if its default makes the condition false whatever the other columns hold.
fn refused<'r>(catalog: &Catalog, table: &'r Relation, column: &str, condition: &Expr) -> Option<&'r Column> {
    let column = table.column(column).filter(|column| column.generated.is_none() && column.identity.is_none())?;
    let sets_values = table
        .triggers
        .iter()
        .any(|trigger| trigger.events.insert && trigger.for_each_row && trigger.timing == TriggerTiming::Before);
    if sets_values || !is_decided(catalog, column) {
        return None;
    }
    let value = evaluate(constant(column.default.as_ref()?), &|_| None).filter(|value| *value != Value::Null)?;
    let row = |name: &str| (name == column.name).then(|| value.clone());
    (evaluate(condition, &row) == Some(Value::Boolean(false))).then_some(column)
}

/// A literal without its cast, as a dump writes it: `'new'::text`.
fn constant(default: &Expr) -> &Expr {
    match &default.kind {
        ExprKind::Cast { operand, .. } if matches!(operand.kind, ExprKind::Literal(_)) => operand,
        _ => default,
    }
}

/// Whether the values of its type compare as they are written.
fn is_decided(catalog: &Catalog, column: &Column) -> bool {
    let is_simple = matches!(
        column.sql_type.oid.0,
        oid::INT2 | oid::INT4 | oid::INT8 | oid::NUMERIC | oid::BOOL | oid::TEXT | oid::VARCHAR
    );
    let is_enum = || catalog.get_type(column.sql_type.oid).is_some_and(|own| matches!(own.kind, TypeKind::Enum { .. }));
    column.collation.is_none() && (is_simple || is_enum())
}

fn report(reporter: &mut Reporter<'_>, range: TextRange, table: &Relation, column: &Column, constraint: &str) {
    let (table_name, name) = (&table.name, &column.name);
    let message = format!(
        "every INSERT into `{table_name}` that omits `{name}` fails: the default of `{name}` violates the constraint \
             `{constraint}`"
    );
    reporter
        .report(range, message)
        .relation(&RelationName::existing(table))
        .help(format!("give `{name}` a default that satisfies `{constraint}`, or drop the default"))
        .emit();
}
