//! Large objects.

use super::large_objects::{Refers, calls};
use crate::report::{Finding, Reporter};
use crate::rule::{RoutineContext, RuleContext, declare_rule};
use pgvet_syntax::ast::{AlterTableAction, Ast, ColumnDef, FunctionCall, TableElement};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// Data is stored in large objects: by `lo_create` or a similar function, or in a column of type `oid` or `lo`.
    ///
    /// ## Why it matters
    ///
    /// All large objects of a database are in one table, `pg_largeobject`, separate from the rows that refer to them.
    /// Deleting a row leaves its object behind, privileges and constraints do not follow the row, and logical
    /// replication skips large objects. Each is a separate entry in a dump: for a million of them, `pg_dump` before
    /// version 17 needed 755 MB of memory.
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
    /// - `lo_unlink`, which removes large objects
    ///
    /// For a column of type `oid`, the confidence is `possible`, and the finding is shown only with `--confidence
    /// possible`, because an `oid` can refer to any system object.
    "large-object-use", Bloat, Warning,
    {}
    statement = check,
    routine = check_routine,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    for call in calls(context.ast) {
        report_call(call, call.name_range, reporter);
    }
    match context.ast {
        Ast::CreateTable(create) => {
            let columns = create.elements.iter().filter_map(|element| match element {
                TableElement::Column(column) => Some(column),
                _ => None,
            });
            columns.for_each(|column| check_column(&create.name.name.text, column, reporter));
        }
        Ast::AlterTable(alter) => {
            for command in &alter.commands {
                if let AlterTableAction::AddColumn { column, .. } = &command.action {
                    check_column(&alter.name.name.text, column, reporter);
                }
            }
        }
        _ => {}
    }
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
    let message = format!(
        "{}() works on a large object, which no row owns: deleting the row that refers to it leaves it behind, pg_dump \
         treats it separately, and logical replication skips it",
        call.name
    );
    reporter
        .report(range, message)
        .help("keep the data in a column of type bytea, up to 1 GB, or outside the database")
        .emit();
}

fn check_column(table: &str, column: &ColumnDef, reporter: &mut Reporter<'_>) {
    let Some(type_name) = column.type_name.as_ref() else { return };
    let Some(refers) = Refers::of_written(type_name) else { return };
    let message = format!(
        "`{table}.{}` refers to large objects: deleting a row leaves its object behind, pg_dump treats it separately, \
         and logical replication skips it",
        column.name.text
    );
    let help = "use bytea instead of oid (text for strings in Hibernate); for system objects use regclass, regtype or \
               another reg* type";
    let finding = reporter.report(type_name.range, message).help(help);
    refers.assumption(&column.name.text).into_iter().fold(finding, Finding::assuming).emit();
}
