//! Batches that are all in one transaction.

use super::unbounded_update_or_delete::changes_rows;
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RoutineContext, declare_rule};
use crate::rules::statement::locks::strong_locks;
use crate::severity::Severity;
use pgvet_model::catalog::{Oid, Relation};
use pgvet_model::effect::{DataChange, DataChangeKind, RelationName, Rows, RowsReason};
use pgvet_model::expression::returned_table;
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_model::routine::{Around, Node, Sql, SqlRole, Step, Trial};
use pgvet_syntax::ast::{Ast, ObjectKind, ObjectName};
use pgvet_syntax::plpgsql::{Loop, LoopKind, Statement, StatementKind};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::Statement as SqlStatement;

declare_rule! {
    /// A loop that updates or deletes rows in batches, without a `COMMIT` after each batch.
    ///
    /// ## Why it matters
    ///
    /// Batches are meant to keep transactions short. Without `COMMIT`, all batches run in one transaction. Every
    /// changed row stays locked until the last batch is done, and VACUUM cannot remove the dead rows until then. A
    /// failure at the end rolls everything back.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// DO $$
    /// BEGIN
    ///     LOOP
    ///         DELETE FROM events WHERE id IN (SELECT id FROM events WHERE expired LIMIT 1000);
    ///         EXIT WHEN NOT FOUND;
    ///     END LOOP;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// DO $$
    /// BEGIN
    ///     LOOP
    ///         DELETE FROM events WHERE id IN (SELECT id FROM events WHERE expired LIMIT 1000);
    ///         EXIT WHEN NOT FOUND;
    ///         COMMIT;
    ///     END LOOP;
    /// END $$;
    /// ```
    ///
    /// `COMMIT` works only if the `DO` block is sent alone, outside a transaction.
    ///
    /// ## When it is not reported
    ///
    /// - a loop with a `COMMIT`
    /// - a statement without `LIMIT`, key range or list of keys, which `unbounded-update-or-delete` reports. In a
    ///   `FOR ... IN SELECT` loop over a whole table, however, `bulk-change-in-loop` reports the statement.
    /// - a loop that alters, renames or drops an object in each iteration: it loops over tables, not over batches
    /// - temporary tables, and tables that the same deployment creates
    /// - in a `DO` block, tables that the migration drops afterwards
    ///
    /// ## Severity
    ///
    /// If the transaction already holds a lock that blocks reads or writes of a table in use, the severity is `error`:
    /// the lock is then held until the last batch is done.
    ///
    /// ## Incidents
    ///
    /// - [lobu #395](https://github.com/lobu-ai/lobu/pull/395): a backfill in batches without `COMMIT` exceeded the
    ///   startup timeout of the service. It was killed and began again each time.
    /// - [TarkovTracker #657](https://github.com/tarkovtracker-org/TarkovTracker/pull/657): a backfill in one
    ///   transaction blocked writes of all users for more than 30 minutes
    "bulk-change-in-loop", Data, Warning,
    {}
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let steps = context.routine.steps();
    let mut said: Option<TextRange> = None;
    for step in &steps {
        let Node::Statement(statement) = step.node else { continue };
        let StatementKind::Loop(a_loop) = &statement.kind else { continue };
        if said.is_some_and(|said| said.contains(statement.range)) {
            continue;
        }
        let inside: Vec<&Step<'_>> = steps.iter().filter(|step| is_inside(step, statement)).collect();
        let commits = |step: &&&Step<'_>| {
            matches!(
                step.node,
                Node::Statement(Statement { kind: StatementKind::Commit(_) | StatementKind::Call(_), .. })
            )
        };
        if inside.iter().any(|step| commits(&step) || alters_tables(step)) {
            continue;
        }
        let whole = goes_through_whole_table(context, step, a_loop);
        let mut trial = Trial::of_code(context.catalog, &context.routine.search_path, context.settings.versions.to);
        for sql in steps.iter().flat_map(|step| &step.sql) {
            if matches!(sql.ast, Ast::CreateTable(_) | Ast::CreateTableAs(_)) {
                trial.run(sql.ast);
            }
        }
        let found = inside.iter().find_map(|step| change(context, &mut trial, step, whole));
        let is_kept = |(_, table): &(TextRange, RelationName)| {
            !makes_named(&steps, &table.name) && !is_dropped_later(context, table.oid)
        };
        let Some((range, relation)) = found.filter(is_kept) else { continue };
        let table = &relation.name;
        said = Some(statement.range);
        let message = if whole {
            format!(
                "this loop changes `{table}` row by row in one transaction, and all changed rows stay locked until it \
                 commits"
            )
        } else {
            format!(
                "all batches of this loop run in one transaction, and all changed rows of `{table}` stay locked until \
                 it commits"
            )
        };
        let help = match context.function() {
            Some(function) if !function.procedure => {
                "turn the function into a procedure, which can COMMIT, and COMMIT after every few thousand rows"
            }
            Some(_) => "COMMIT after every few thousand rows",
            None => match context.migration.map(|migration| (migration.transaction, migration.statements().count())) {
                Some((TransactionMode::Transaction, _)) => {
                    "COMMIT after every few thousand rows, in a migration that runs without a transaction"
                }
                Some((TransactionMode::SingleString, 2..)) => {
                    "COMMIT after every few thousand rows, in a migration that contains only this statement: \
                     statements that are sent together run in one transaction"
                }
                _ => {
                    "COMMIT after every few thousand rows. PostgreSQL allows COMMIT in a DO block only if the block is \
                     sent alone, outside a transaction"
                }
            },
        };
        let mut finding = reporter.report(statement.keyword, message).label(range, "this change").help(help);
        if let Some(lock) = context.session.and_then(|session| strong_locks(session).next()) {
            let blocks = if lock.mode.blocks_reads() { "read or write" } else { "write to" };
            let message = format!(
                "nobody can {blocks} `{}` until the transaction ends, because this statement took {}",
                lock.unqualified_name(),
                lock.mode.sql()
            );
            finding = finding.severity(Severity::Error).label_in(lock.place.file, lock.place.range, message);
        }
        if context.catalog.get_relation(relation.oid).is_some() {
            finding = finding.relation(&relation);
        }
        finding.assuming(Assumption::Large { table: table.clone() }).emit();
    }
}

fn is_inside(step: &Step<'_>, statement: &Statement) -> bool {
    step.around.iter().any(|around| match around {
        Around::Loop { statement: own, .. } => own.range == statement.range,
        _ => false,
    })
}

/// `FOR r IN SELECT ... FROM t LOOP` without any condition, for a table in use.
fn goes_through_whole_table(context: &RoutineContext<'_>, step: &Step<'_>, a_loop: &Loop) -> bool {
    if !matches!(a_loop.kind, LoopKind::Query { .. }) {
        return false;
    }
    let reads_all = |ast: &Ast| {
        let Ast::Select(query) = ast else { return false };
        let table = returned_table(query).and_then(|table| context.relation(table));
        table.is_some_and(|table| is_in_use(context, table))
    };
    step.sql.iter().any(|sql| reads_all(sql.ast))
}

fn is_in_use(context: &RoutineContext<'_>, table: &Relation) -> bool {
    let is_new = context.function().is_none() && table.birth.is_of(context.deployment());
    table.kind.is_table() && !table.is_temporary() && !is_new
}

/// Whether a step alters, renames or drops an object. Such a loop goes from table to table and holds stronger locks
/// than row locks.
fn alters_tables(step: &Step<'_>) -> bool {
    step.sql.iter().any(|sql| matches!(sql.ast, Ast::AlterTable(_) | Ast::Rename(_) | Ast::SetSchema(_) | Ast::Drop(_)))
}

/// Whether the code creates a table of that name.
pub(super) fn makes(steps: &[Step<'_>], name: &ObjectName) -> bool {
    makes_named(steps, &name.name.text)
}

fn makes_named(steps: &[Step<'_>], name: &str) -> bool {
    steps.iter().flat_map(|step| &step.sql).any(|sql| match sql.ast {
        Ast::CreateTable(create) => create.name.name.text == name,
        Ast::CreateTableAs(create) => create.into.name.name.text == name,
        _ => false,
    })
}

/// Whether a statement after the DO block drops the table.
fn is_dropped_later(context: &RoutineContext<'_>, dropped: Oid) -> bool {
    let table = |name: &ObjectName| context.relation(name).map(|relation| relation.oid);
    let drops = |statement: &SqlStatement| match statement.ast() {
        Some(Ast::Drop(drop)) if drop.kind == ObjectKind::Table => {
            drop.objects.iter().any(|object| table(&object.name) == Some(dropped))
        }
        _ => false,
    };
    let end = context.routine.statement.end;
    let mut later = context.migration.into_iter().flat_map(Migration::statements);
    later.any(|statement| statement.range.start >= end && drops(statement))
}

/// The first UPDATE or DELETE of a step that a batch consists of.
fn change(
    context: &RoutineContext<'_>,
    trial: &mut Trial,
    step: &Step<'_>,
    any: bool,
) -> Option<(TextRange, RelationName)> {
    let is_statement = |sql: &&Sql<'_>| sql.role != SqlRole::Expression && changes_rows(sql.ast);
    step.sql.iter().filter(is_statement).find_map(|sql| {
        let mut changes = trial.run(sql.ast).data_changes.into_iter();
        let is_batch = |change: &DataChange| {
            let in_use =
                context.catalog.get_relation(change.relation.oid).is_none_or(|table| is_in_use(context, table));
            let is_work = change.kind != DataChangeKind::Insert && !change.by_trigger;
            is_work && in_use && change.relation.visibility.is_exposed() && (any || is_part(&change.rows))
        };
        changes.find(is_batch).map(|change| (sql.place(change.range), change.relation))
    })
}

/// Whether the rows are a part of more than one row that LIMIT, a range or a list limits.
fn is_part(rows: &Rows) -> bool {
    match rows.bound() {
        Some(bound) => bound > 1,
        None => matches!(rows.reason, RowsReason::GivenAtRunTime | RowsReason::JoinedToFew { .. } | RowsReason::Limit),
    }
}
