//! A new enum label that is used before it is committed.

use super::split_help;
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::everywhere_at_least;
use crate::rules::statement::locks::assumed_transaction;
use crate::rules::statement::sqlstate::UNSAFE_NEW_ENUM_VALUE_USAGE;
use pgvet_model::catalog::{Oid, TypeDef, TypeKind};
use pgvet_syntax::ast::{
    AlterTableAction, Ast, ColumnDef, Constraint, ConstraintKind, Expr, ExprKind, Query, QueryBody, TableElement,
    TypeName, string_literal,
};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// An enum label is used in the transaction that adds it.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL refuses the statement with `unsafe use of new value of enum type`. Until the transaction commits, no
    /// row and no default may contain the label. If the same transaction also created the type, PostgreSQL 17 and later
    /// accept the label, but PostgreSQL 12 to 16 refuse it.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- transaction
    /// -- history:
    /// CREATE TYPE order_status AS ENUM ('open', 'paid');
    /// CREATE TABLE orders (id bigint PRIMARY KEY, status order_status);
    /// -- migration:
    /// ALTER TYPE order_status ADD VALUE 'refunded';
    /// ALTER TABLE orders ALTER COLUMN status SET DEFAULT 'refunded';
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- autocommit
    /// -- history:
    /// CREATE TYPE order_status AS ENUM ('open', 'paid');
    /// CREATE TABLE orders (id bigint PRIMARY KEY, status order_status);
    /// -- migration:
    /// ALTER TYPE order_status ADD VALUE 'refunded';
    /// ALTER TABLE orders ALTER COLUMN status SET DEFAULT 'refunded';
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a label that `CREATE TYPE` lists, in the transaction that creates the type
    /// - from PostgreSQL 17 on, a label that `ADD VALUE` adds in the transaction that creates the type
    /// - before PostgreSQL 12, an `ADD VALUE` that PostgreSQL itself refuses in a transaction, which
    ///   `concurrently-in-transaction` reports. PostgreSQL accepts it if the same transaction created the type.
    ///
    /// If the tool runs all pending migrations in one transaction (Drizzle, node-pg-migrate), labels of earlier pending
    /// migrations are reported as well.
    "enum-value-used-in-same-transaction", Transaction, Error,
    {}
    statement = check,
}

/// A constant that is a label of the type.
struct Use {
    enum_type: Oid,
    label: String,
    range: TextRange,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(block) = &context.session.block else { return };
    let added = |definition: &TypeDef, label: &str| match &definition.kind {
        TypeKind::Enum { labels } => labels.get(label).and_then(|label| label.added_in),
        _ => None,
    };
    // All pending migrations may be in one transaction. The label is then safe if the type is in it, too, and
    // PostgreSQL is 17 or newer.
    let may_be_here = |definition: &TypeDef, added: u32| {
        let unsafe_since = |since| definition.transaction < since || !everywhere_at_least(context, 17);
        block.may_be_since.is_some_and(|since| since <= added && unsafe_since(since))
    };
    let help = split_help(context, "the statements that use the new value");
    let assumption = assumed_transaction(context, block.started);
    if let Some(failure) =
        context.effects.fails.as_ref().filter(|failure| failure.sqlstate == UNSAFE_NEW_ENUM_VALUE_USAGE)
    {
        let message = format!("PostgreSQL refuses this: {}", failure.reason);
        reporter.report(failure.range, message).help(help).assuming(assumption).emit();
        return;
    }
    for used in defaults(context).into_iter().chain(comparisons(context)) {
        let Some(definition) = context.before.get_type(used.enum_type) else { continue };
        let Some(added) = added(definition, &used.label) else { continue };
        if added == block.number {
            let message = format!(
                "`{}` was added to `{}` in this transaction, and PostgreSQL refuses to use it until the transaction commits",
                used.label, definition.name
            );
            reporter.report(used.range, message).help(help.clone()).assuming(assumption.clone()).emit();
        } else if may_be_here(definition, added) {
            let message = format!(
                "`{}` was added to `{}` in an earlier migration, and the migration tool runs all pending migrations \
                 in one transaction: PostgreSQL refuses to use the value until that transaction commits",
                used.label, definition.name
            );
            let help = "deploy this migration after the earlier migration has been applied";
            reporter.report(used.range, message).help(help).assuming(Assumption::OneTransaction).emit();
        }
    }
}

/// `DEFAULT 'label'`.
fn defaults(context: &RuleContext<'_>) -> Vec<Use> {
    if let Ast::CreateTable(create) = context.ast {
        let column = |element: &TableElement| match element {
            TableElement::Column(column) => of_column(context, column),
            _ => Vec::new(),
        };
        return create.elements.iter().flat_map(column).collect();
    }
    let Ast::AlterTable(statement) = context.ast else { return Vec::new() };
    let path = context.session.settings.search_path();
    let table = context.before.find_relation(&statement.name, &path).and_then(|oid| context.before.get_relation(oid));
    let mut uses = Vec::new();
    for command in &statement.commands {
        match &command.action {
            AlterTableAction::SetDefault { column, default } => {
                let column = table.and_then(|table| table.column(&column.text));
                uses.extend(column.and_then(|column| constant(column.sql_type.oid, default)));
            }
            AlterTableAction::AddColumn { column, .. } => {
                uses.extend(of_column(context, column));
            }
            _ => {}
        }
    }
    uses
}

/// The defaults of a column that is being created.
fn of_column(context: &RuleContext<'_>, column: &ColumnDef) -> Vec<Use> {
    let enum_type = column.type_name.as_ref().and_then(|name| named_type(context, name));
    let default = |constraint: &Constraint| match &constraint.kind {
        ConstraintKind::Default(default) => constant(enum_type?, default),
        _ => None,
    };
    column.constraints.iter().filter_map(default).collect()
}

fn named_type(context: &RuleContext<'_>, name: &TypeName) -> Option<Oid> {
    if let Some(schema) = &name.schema {
        context.before.type_named(schema, &name.name)
    } else {
        let path = context.session.settings.search_path();
        path.iter().find_map(|schema| context.before.type_named(schema, &name.name))
    }
}

fn constant(enum_type: Oid, value: &Expr) -> Option<Use> {
    let label = string_literal(value)?.to_owned();
    Some(Use { enum_type, label, range: value.range })
}

/// `column = 'label'` in a condition, where the column is an enum of a table that the statement uses.
fn comparisons(context: &RuleContext<'_>) -> Vec<Use> {
    let mut uses = Vec::new();
    for condition in conditions(context.ast) {
        condition.walk(&mut |expr| {
            let ExprKind::Operator { operands, .. } = &expr.kind else { return };
            let types: Vec<Oid> = operands.iter().filter_map(|operand| column_type(context, operand)).collect();
            for enum_type in types {
                uses.extend(operands.iter().filter_map(|operand| constant(enum_type, operand)));
            }
        });
    }
    uses
}

fn conditions(ast: &Ast) -> Vec<&Expr> {
    match ast {
        Ast::Update(update) => update.filter.iter().collect(),
        Ast::Delete(delete) => delete.filter.iter().collect(),
        Ast::Select(query) => filter(query).into_iter().collect(),
        Ast::CreateView(view) => filter(&view.query).into_iter().collect(),
        Ast::CreateIndex(index) => index.predicate.iter().collect(),
        Ast::AlterTable(alter) => {
            let checks = alter.commands.iter().filter_map(|command| match &command.action {
                AlterTableAction::AddConstraint(Constraint { kind: ConstraintKind::Check(condition), .. }) => {
                    Some(condition)
                }
                _ => None,
            });
            checks.collect()
        }
        _ => Vec::new(),
    }
}

fn filter(query: &Query) -> Option<&Expr> {
    if let QueryBody::Select(select) = &query.body { select.filter.as_ref() } else { None }
}

fn column_type(context: &RuleContext<'_>, operand: &Expr) -> Option<Oid> {
    let ExprKind::Column(path) = &operand.kind else { return None };
    let name = path.last()?;
    let relations = context.effects.locks.iter().filter_map(|lock| context.before.get_relation(lock.relation.oid));
    relations.filter_map(|relation| relation.column(name)).map(|column| column.sql_type.oid).next()
}
