//! Large objects.

use super::large_objects::{Refers, calls};
use crate::report::{Finding, Reporter};
use crate::rule::{RoutineContext, RuleContext, declare_rule};
use pgvet_model::catalog::{Oid, Relation};
use pgvet_syntax::ast::{AlterTableAction, Ast, ColumnDef, FunctionCall, LockMode, TableElement};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;

declare_rule! {
    /// A use of large objects: a call of `lo_create` or a similar function, or a column of type `oid`, of type `lo`, or
    /// of a domain based on one of these types.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL stores all large objects of a database in one table, `pg_largeobject`, separate from the rows that
    /// refer to them. When a row is deleted, the large object to which it refers remains. Privileges and constraints of
    /// the table do not apply to the large object, and logical replication skips it. Before version 17, `pg_dump`
    /// creates a separate entry for each large object: for a million large objects it needed 755 MB of memory.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE documents (id bigint PRIMARY KEY, content oid);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE documents (id bigint PRIMARY KEY, content bytea);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - calls of `lo_unlink`, which deletes large objects
    ///
    /// ## Confidence
    ///
    /// For a column of type `oid`, the confidence is `possible`, because an `oid` can also identify other objects, such
    /// as tables. The finding is then shown only with `--confidence possible`.
    "large-object-use", Bloat, Warning,
    {}
    statement = check,
    routine = check_routine,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    for call in calls(context.ast) {
        report_call(call, call.name_range, reporter);
    }
    if context.effects.fails.is_some() {
        return;
    }
    let created = context.effects.creates.iter().filter(|created| created.kind.is_table());
    let altered = context.effects.locks.iter().filter(|lock| lock.mode == LockMode::AccessExclusive);
    let mut seen: FxHashSet<Oid> = FxHashSet::default();
    for table in created.chain(altered.map(|lock| &lock.relation)) {
        if seen.insert(table.oid) {
            check_table(context, reporter, table.oid);
        }
    }
}

/// The columns of a table that refer to large objects since this statement.
fn check_table(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, oid: Oid) {
    let Some(after) = context.after.get_relation(oid).filter(|table| table.kind.is_table() && !table.is_partition())
    else {
        return;
    };
    let before = context.before.get_relation(oid);
    for column in after.columns.iter().filter(|column| column.inherited_from == 0) {
        let Some(refers) = Refers::of_column(context.after, column) else { continue };
        let was_there = before.is_some_and(|before| match before.column(&column.name) {
            Some(old) => Refers::of_column(context.before, old).is_some(),
            // RENAME COLUMN makes none.
            None => before.columns.len() == after.columns.len() && !matches!(context.ast, Ast::AlterTable(_)),
        });
        if !was_there {
            report_column(reporter, place(context, &column.name), after, &column.name, refers);
        }
    }
}

/// The type in the definition of a column, or else the name of a new table.
fn place(context: &RuleContext<'_>, name: &str) -> TextRange {
    let of_definition = |column: &ColumnDef| {
        let written = column.type_name.as_ref().filter(|_| column.name.text == name);
        written.map(|type_name| type_name.range)
    };
    let found = match context.ast {
        Ast::CreateTable(create) => {
            let typed = create.elements.iter().find_map(|element| match element {
                TableElement::Column(column) => of_definition(column),
                _ => None,
            });
            typed.or(Some(create.name.range()))
        }
        Ast::CreateTableAs(create) => Some(create.into.name.range()),
        Ast::AlterTable(alter) => alter.commands.iter().find_map(|command| match &command.action {
            AlterTableAction::AddColumn { column, .. } => of_definition(column),
            AlterTableAction::AlterColumnType { column, type_name, .. } if column.text == name => Some(type_name.range),
            _ => None,
        }),
        _ => None,
    };
    found.unwrap_or(context.statement.range)
}

fn check_routine(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    // What a DO block runs is reported as it runs.
    if context.routine.function.is_none() {
        return;
    }
    for step in context.routine.steps() {
        for sql in &step.sql {
            for call in calls(sql.ast) {
                report_call(call, sql.place(call.name_range), reporter);
            }
        }
    }
}

fn report_call(call: &FunctionCall, range: TextRange, reporter: &mut Reporter<'_>) {
    let creates = ["lo_import", "lo_from_bytea", "lo_create", "lo_creat"].contains(&call.name.as_str());
    let verb = if creates { "creates" } else { "works with" };
    let message = format!(
        "{}() {verb} a large object, which stays when the row that refers to it is deleted; neither `pg_dump --table` \
         nor logical replication copies large objects",
        call.name
    );
    reporter
        .report(range, message)
        .help("keep the data in a column of type bytea, up to 1 GB, or outside the database")
        .emit();
}

fn report_column(reporter: &mut Reporter<'_>, range: TextRange, table: &Relation, column: &str, refers: Refers) {
    let message = format!(
        "`{}.{column}` refers to large objects, which stay when the row is deleted; neither `pg_dump --table` nor \
         logical replication copies large objects",
        table.name
    );
    let help = "use bytea instead of oid; for a String with @Lob in Hibernate, use text. If the column stores OIDs of \
                system objects, use regclass, regtype or another reg* type";
    let finding = reporter.report(range, message).help(help);
    refers.assumption(column).into_iter().fold(finding, Finding::assuming).emit();
}
