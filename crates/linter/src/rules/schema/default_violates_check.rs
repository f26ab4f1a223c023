//! Defaults that a CHECK of the table refuses.

use crate::assumption::Assumption;
use crate::declared::{DeclarationContext, Declared};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{Until, ahead};
use crate::rules::statement::altered::Altered;
use crate::rules::text::enumerate;
use pgvet_model::builtin::oid;
use pgvet_model::catalog::{Catalog, Column, Constraint, ConstraintKind, Relation, TypeKind};
use pgvet_model::effect::RelationName;
use pgvet_model::expression::{Value, evaluate};
use pgvet_syntax::ast::{AlterTableAction, ConstraintKind as Syntax, Expr, ExprKind, TriggerTiming};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// The default of a column, or the defaults of several columns together, violate a `CHECK` of the table.
    ///
    /// ## Why it matters
    ///
    /// Every `INSERT` that omits the columns uses the defaults, and fails with "new row for relation violates check
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
    /// - a condition that depends on columns without a constant default, or on functions other than `length`, `lower`, `upper` and `trim`
    /// - a table with a `BEFORE INSERT` trigger, which may set the column
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible`, and the finding is shown only with `--confidence possible`, if earlier code drops
    /// constraints of the table whose names are known only at run time.
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
        && let Some(columns) = refused(context.catalog, context.relation, None, kept)
    {
        report(reporter, constraint.range, context.relation, &columns, kept);
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
            if let Some(columns) = refused(&end, table, Some(&column.text), check) {
                report(reporter, command.range, table, &columns, check);
            }
        }
    }
}

/// A column with the value of its default.
type Default<'r> = (&'r Column, Value);

/// The columns, as few as possible, whose defaults make the condition of a CHECK false whatever the other columns hold.
/// `changed` is one of them, if it is given.
fn refused<'r>(
    catalog: &Catalog,
    table: &'r Relation,
    changed: Option<&str>,
    check: &Constraint,
) -> Option<Vec<&'r Column>> {
    let ConstraintKind::Check { expression, columns } = &check.kind else { return None };
    let sets_values = table
        .triggers
        .iter()
        .any(|trigger| trigger.events.insert && trigger.for_each_row && trigger.timing == TriggerTiming::Before);
    if sets_values {
        return None;
    }
    let mut defaults: Vec<Default<'_>> =
        columns.iter().filter_map(|column| default_of(catalog, table, column)).collect();
    let is_changed = |column: &Column| changed.is_none_or(|changed| column.name == changed);
    let alone =
        |(column, value): &&Default<'_>| is_changed(column) && is_false(expression, &[(*column, value.clone())]);
    if let Some((column, _)) = defaults.iter().find(alone) {
        return Some(vec![column]);
    }
    if !is_false(expression, &defaults) {
        return None;
    }
    for at in (0..defaults.len()).rev() {
        let omitted = defaults.remove(at);
        if !is_false(expression, &defaults) {
            defaults.insert(at, omitted);
        }
    }
    let columns: Vec<&Column> = defaults.into_iter().map(|(column, _)| column).collect();
    columns.iter().any(|column| is_changed(column)).then_some(columns)
}

/// A column whose default is a constant that is not NULL.
fn default_of<'r>(catalog: &Catalog, table: &'r Relation, column: &str) -> Option<Default<'r>> {
    let column = table.column(column).filter(|column| column.generated.is_none() && column.identity.is_none())?;
    let default = constant(column.default.as_ref().filter(|_| is_decided(catalog, column))?);
    evaluate(default, &|_| None).filter(|value| *value != Value::Null).map(|value| (column, value))
}

/// Whether a condition is false for rows with these values.
fn is_false(condition: &Expr, values: &[Default<'_>]) -> bool {
    let row = |name: &str| values.iter().find(|(column, _)| column.name == name).map(|(_, value)| value.clone());
    evaluate(condition, &row) == Some(Value::Boolean(false))
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

fn report(reporter: &mut Reporter<'_>, range: TextRange, table: &Relation, columns: &[&Column], check: &Constraint) {
    let (table_name, constraint) = (&table.name, &check.name);
    let names = enumerate(columns.iter().map(|column| column.name.as_str()));
    let (subject, help) = match columns {
        [_] => (
            format!("the default of {names} violates"),
            format!("give {names} a default that satisfies `{constraint}`, or drop the default"),
        ),
        _ => (
            format!("the defaults of {names} together violate"),
            format!("give {names} defaults that together satisfy `{constraint}`, or drop one of the defaults"),
        ),
    };
    let message =
        format!("every INSERT into `{table_name}` that omits {names} fails: {subject} the constraint `{constraint}`");
    let mut finding = reporter.report(range, message).relation(&RelationName::existing(table)).help(help);
    if check.may_be_gone {
        finding = finding.assuming(Assumption::ConstraintKept { constraint: constraint.clone() });
    }
    finding.emit();
}
