//! Foreign keys that set columns to NULL that must not be NULL.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::{Until, ahead};
use pgvet_model::catalog::{Catalog, Column, ForeignKeyConstraint, Oid, Relation, Trigger, TypeKind};
use pgvet_model::effect::RelationName;
use pgvet_syntax::ast::{
    AlterTable, AlterTableAction, Ast, ColumnDef, Constraint, ConstraintKind as Syntax, CreateTable, Expr, ExprKind,
    Literal, ReferentialAction, TableElement, TriggerTiming,
};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

declare_rule! {
    /// A foreign key sets a column to NULL, although the column is `NOT NULL`.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL accepts the foreign key. Later, each `DELETE` of a row to which another row refers fails with "null
    /// value in column violates not-null constraint" (SQLSTATE 23502), and so does each `UPDATE` of the key with `ON
    /// UPDATE SET NULL`. Such errors appear only when somebody first deletes a row that is in use.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE customers (id bigint PRIMARY KEY);
    /// CREATE TABLE orders (
    ///     id bigint PRIMARY KEY,
    ///     customer_id bigint NOT NULL REFERENCES customers ON DELETE SET NULL
    /// );
    /// ```
    ///
    /// Use instead:
    ///
    /// Allow NULL in the column, or choose another action:
    ///
    /// ```sql,clean
    /// CREATE TABLE customers (id bigint PRIMARY KEY);
    /// CREATE TABLE orders (
    ///     id bigint PRIMARY KEY,
    ///     customer_id bigint REFERENCES customers ON DELETE SET NULL
    /// );
    /// ```
    ///
    /// ## Also reported
    ///
    /// - `SET NOT NULL` or `ADD PRIMARY KEY` on a column of an older foreign key with such an action
    /// - `SET DEFAULT` as the action, if the default of the column is NULL
    ///
    /// ## When it is not reported
    ///
    /// - The foreign key sets other columns: `ON DELETE SET NULL (note)`.
    /// - The foreign key is not enforced.
    /// - A later statement of the migration changes the foreign key or the column.
    /// - A `BEFORE UPDATE` trigger for each row of the table may set the column.
    /// - The type of the column is a domain.
    ///
    /// ## Other linters
    ///
    /// No other known linter reports these foreign keys.
    "set-null-on-not-null-column", Schema, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let (name, oid) = match context.ast {
        Ast::CreateTable(create) => (&create.name, context.effects.creates.first().map(|table| table.oid)),
        Ast::AlterTable(alter) => {
            let named = context.effects.locks.iter().find(|lock| lock.range == alter.name.range());
            (&alter.name, named.map(|lock| lock.relation.oid))
        }
        _ => return,
    };
    let Some(after) = oid.and_then(|oid| context.after.get_relation(oid)) else { return };
    let before = context.before.get_relation(after.oid);
    let found = violations(context.after, after);
    let is_new = |one: &&Violation| {
        before.is_none_or(|before| !violations(context.before, before).iter().any(|known| known.is_same(one)))
    };
    let Some(first) = found.iter().find(is_new) else { return };
    let end = ahead(context, &after.name, Until::EndOfMigration);
    let lasting = end.get_relation(after.oid).map(|table| violations(&end, table)).unwrap_or_default();
    if !lasting.iter().any(|one| one.is_same(first)) {
        return;
    }
    let range = place(context.ast, first).unwrap_or_else(|| name.range());
    let referenced = context.after.get_relation(first.referenced).map_or("the referenced table", |table| &table.name);
    let (verb, table, column) = (first.verb, &after.name, &first.column);
    let (action, constraint) = (first.action, &first.constraint);
    let of_key = if verb == "UPDATE" { " of the key" } else { "" };
    let message = format!(
        "every {verb}{of_key} in `{referenced}` fails if a row of `{table}` refers to the row: ON {verb} {action} of \
         `{constraint}` sets `{column}` to NULL, but the column is NOT NULL"
    );
    let help = format!(
        "allow NULL in `{column}`, or use another action, such as ON {verb} CASCADE, or ON {verb} RESTRICT, which says \
         in the error that the row is still in use"
    );
    reporter.report(range, message).relation(&RelationName::existing(after)).help(help).emit();
}

/// A column that an action of a foreign key sets to NULL although it must not be NULL.
#[derive(Debug, Clone, PartialEq)]
struct Violation {
    constraint: SmolStr,
    column: SmolStr,
    referenced: Oid,
    /// DELETE or UPDATE.
    verb: &'static str,
    /// SET NULL or SET DEFAULT.
    action: &'static str,
}

impl Violation {
    fn is_same(&self, other: &Self) -> bool {
        self.constraint == other.constraint && self.column == other.column
    }
}

fn violations(catalog: &Catalog, table: &Relation) -> Vec<Violation> {
    let sets_values =
        |trigger: &Trigger| trigger.events.update && trigger.for_each_row && trigger.timing == TriggerTiming::Before;
    if table.triggers.iter().any(|trigger| sets_values(trigger)) {
        return Vec::new();
    }
    let enforced = table.constraints.iter().filter(|constraint| constraint.enforced);
    let keys = enforced.filter_map(|constraint| Some((constraint, constraint.foreign_key()?)));
    keys.flat_map(|(constraint, key)| {
        let columns = of_key(catalog, table, key);
        columns.into_iter().map(|(column, verb, action)| Violation {
            constraint: constraint.name.clone(),
            column: column.name.clone(),
            referenced: key.referenced,
            verb,
            action,
        })
    })
    .collect()
}

/// The columns that the actions of a foreign key cannot set.
///
/// Source: PostgreSQL 18, `src/backend/utils/adt/ri_triggers.c`, `ri_set`.
fn of_key<'t>(
    catalog: &Catalog,
    table: &'t Relation,
    key: &ForeignKeyConstraint,
) -> Vec<(&'t Column, &'static str, &'static str)> {
    let set = if key.set_columns.is_empty() { &key.columns } else { &key.set_columns };
    let mut found = Vec::new();
    for (verb, action, columns) in [("DELETE", key.on_delete, set), ("UPDATE", key.on_update, &key.columns)] {
        for column in columns.iter().filter_map(|column| table.column(column)).filter(|column| column.not_null) {
            match action {
                ReferentialAction::SetNull => found.push((column, verb, "SET NULL")),
                ReferentialAction::SetDefault if has_no_default(catalog, column) => {
                    found.push((column, verb, "SET DEFAULT"));
                }
                _ => {}
            }
        }
    }
    found
}

/// Whether the default of a column is NULL. A domain may have a default of its own.
fn has_no_default(catalog: &Catalog, column: &Column) -> bool {
    let of_type = catalog.get_type(column.sql_type.oid);
    let is_domain = of_type.is_some_and(|own| matches!(own.kind, TypeKind::Domain { .. }));
    let is_null = |default: &Expr| match &default.kind {
        ExprKind::Cast { operand, .. } => operand.kind == ExprKind::Literal(Literal::Null),
        kind => *kind == ExprKind::Literal(Literal::Null),
    };
    let is_generated = column.identity.is_some() || column.generated.is_some();
    !is_domain && !is_generated && column.default.as_ref().is_none_or(|default| is_null(default))
}

/// Where a statement makes a column one that the foreign key cannot set.
fn place(ast: &Ast, violation: &Violation) -> Option<TextRange> {
    match ast {
        Ast::CreateTable(create) => in_table(create, violation),
        Ast::AlterTable(alter) => in_commands(alter, violation),
        _ => None,
    }
}

fn in_table(create: &CreateTable, violation: &Violation) -> Option<TextRange> {
    create.elements.iter().find_map(|element| match element {
        TableElement::Column(column) => in_column(column, violation),
        TableElement::Constraint(constraint) => of_constraint(constraint, violation),
        TableElement::Like { .. } => None,
    })
}

fn in_column(column: &ColumnDef, violation: &Violation) -> Option<TextRange> {
    let own = column.constraints.iter().filter(|_| column.name.text == violation.column);
    own.filter(|constraint| matches!(constraint.kind, Syntax::ForeignKey(_))).map(|constraint| constraint.range).next()
}

fn of_constraint(constraint: &Constraint, violation: &Violation) -> Option<TextRange> {
    let Syntax::ForeignKey(key) = &constraint.kind else { return None };
    key.columns.iter().any(|column| column.text == violation.column).then_some(constraint.range)
}

fn in_commands(alter: &AlterTable, violation: &Violation) -> Option<TextRange> {
    let command = alter.commands.iter().find(|command| match &command.action {
        AlterTableAction::AddColumn { column, .. } => column.name.text == violation.column,
        AlterTableAction::SetNotNull { column }
        | AlterTableAction::DropDefault { column }
        | AlterTableAction::SetDefault { column, .. } => column.text == violation.column,
        AlterTableAction::AddConstraint(constraint) => {
            of_constraint(constraint, violation).is_some() || matches!(constraint.kind, Syntax::PrimaryKey(_))
        }
        _ => false,
    });
    command.map(|command| command.range)
}
