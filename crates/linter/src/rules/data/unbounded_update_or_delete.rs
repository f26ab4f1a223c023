//! UPDATE or DELETE of a whole table.

use super::one_row::{reads_one_row, stores_total, takes_one_row};
use crate::ast::{Ast, Expr, ExprKind, InsertSource, Part, QueryBody};
use crate::catalog::Catalog;
use crate::confidence::Assumption;
use crate::effect::{DataChange, DataChangeKind, RelationName};
use crate::report::Reporter;
use crate::routine::{RoutineContext, Sql, SqlRole, Trial};
use crate::rule::{RuleContext, declare_rule};
use crate::rules::around::rest;
use crate::settings::{Settings, TableSize};
use crate::source::TextRange;

declare_rule! {
    /// `UPDATE`, `DELETE` or `MERGE` of all rows of a table that is in use.
    ///
    /// ## Why it matters
    ///
    /// Every row is locked until the transaction ends, so that other sessions wait for hours to change any of them. Each
    /// updated row is written anew: the table grows by as much again, with its indexes, the WAL and the lag of replicas,
    /// and vacuum can remove nothing meanwhile.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// UPDATE orders SET total = price * quantity;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// UPDATE orders SET total = price * quantity WHERE id BETWEEN 1 AND 10000 AND total IS NULL;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// Where a WHERE clause limits the rows; it does not where it only finds the row of another table that a foreign key of
    /// a `NOT NULL` column refers to, or the row itself in a query of the whole table, or asks for the null of a column
    /// that the same migration has added. For tables that the same transaction created, and for tables that configuration
    /// says to be small or that can have one row only; nor for a table that gets the count or sum of another table, the
    /// same for all rows, or whose changed rows code takes for one (`UPDATE ... RETURNING n INTO next`), for it has one row
    /// then; nor for a table that another migration of the same release made and no migration has put rows into. While
    /// the transaction holds a strong lock, `work-after-strong-lock` says it. What triggers do is not reported either, for
    /// they do it at any change of their table, also where a function makes that change. A `MERGE` is reported where a
    /// branch without condition has a whole table as source. A
    /// function is reported where it is defined, unless a migration calls it and it is reported there; trigger functions
    /// are not, because what fires them decides.
    ///
    /// ## Confidence
    ///
    /// A finding is `likely`: it assumes that the table is large. It is only `possible`, and shown with
    /// `--confidence possible`, if something speaks against that:
    ///
    /// - the same migration deletes the rows and lists them again with `INSERT ... VALUES` or `COPY`
    /// - code reads all rows into one variable (`SELECT version INTO current FROM schema_version`)
    ///
    /// Statistics or `[tables]` in the configuration state the size of a table: a large one makes the finding an error.
    "unbounded-update-or-delete", Data, Warning,
    {
        sources: &["pgls/updateWithoutWhere", "dryrun/update-without-where", "bytebase/statement.where.require"],
        yields_to: &["work-after-strong-lock"],
    }
    statement = check,
    routine = check_routine,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let mut said: Vec<TextRange> = Vec::new();
    for change in context.effects.data_changes.iter().filter(|change| change.unbounded) {
        let table = &change.relation;
        let is_small = is_small(table, context.ast, context.before, context.settings);
        if change.kind == DataChangeKind::Insert
            || !table.visibility.is_exposed()
            || is_small
            || said.contains(&change.range)
            || change.by_trigger
        {
            continue;
        }
        said.push(change.range);
        let (verb, help) = words(change.kind, context.ast);
        let message =
            format!("this {verb} every row of `{}` and keeps all of them locked until it is done", table.name);
        let is_refilled = change.kind == DataChangeKind::Delete && is_refilled(context, table);
        let is_taken = context.after.get_relation(table.oid).is_some_and(|table| table.taken_for_one_row);
        let name = table.name.clone();
        let assumption = match () {
            () if is_refilled => Assumption::LargeThoughListed { table: name },
            () if is_taken => Assumption::LargeThoughReadAsOneRow { table: name },
            () => Assumption::Large { table: name },
        };
        reporter.report(change.range, message).relation(table).assuming(assumption).help(help).emit();
    }
}

/// Does the migration list the rows that take the place of those it deletes, or load a file of them?
fn is_refilled(context: &RuleContext<'_>, table: &RelationName) -> bool {
    let path = context.session.settings.search_path();
    let fills = |ast: &Ast| {
        let target = match ast {
            Ast::Insert(insert) => match &insert.source {
                InsertSource::Query(query) if matches!(query.body, QueryBody::Values(_)) => Some(&insert.table.name),
                _ => None,
            },
            Ast::Copy(copy) if copy.from => copy.table.as_ref(),
            _ => None,
        };
        target.is_some_and(|target| context.before.find_relation(target, &path) == Some(table.oid))
    };
    rest(context).iter().any(|ast| fills(ast))
}

/// Says configuration, a constraint, or the statement itself that the table has few rows?
fn is_small(table: &RelationName, ast: &Ast, catalog: &Catalog, settings: &Settings) -> bool {
    settings.table(&table.schema, &table.name).size() == TableSize::Small
        || catalog
            .get_relation(table.oid)
            .is_some_and(|relation| catalog.has_one_row(relation) || stores_total(ast, relation))
}

/// What it does, and the next step.
fn words(kind: DataChangeKind, ast: &Ast) -> (&'static str, &'static str) {
    match kind {
        _ if matches!(ast, Ast::Merge(_)) => (
            "changes",
            "merge a part of the source at a time, each in a transaction of its own, \
             and give WHEN MATCHED a condition that leaves out rows that are the same",
        ),
        DataChangeKind::Delete => (
            "deletes",
            "delete in batches of some thousand rows, each in a transaction of its own; \
             TRUNCATE is fast where nobody needs the table meanwhile",
        ),
        _ => (
            "rewrites",
            "update in batches of some thousand rows, each in a transaction of its own:\n    \
             UPDATE ... WHERE id BETWEEN ... AND ...;",
        ),
    }
}

/// A function that no reported migration calls: what happens when somebody does.
fn check_routine(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let is_of_trigger = !context.triggers().is_empty();
    if context.function().is_none() || context.called_by_migration || is_of_trigger {
        return;
    }
    let steps = context.routine.steps();
    let sql = || steps.iter().flat_map(|step| &step.sql).filter(|sql| sql.role != SqlRole::Expression);
    if !sql().any(|sql| may_reach_all(sql.ast)) {
        return;
    }
    let mut trial = Trial::new(context.catalog, &context.routine.search_path, context.settings.versions.to);
    for sql in sql() {
        let creates = matches!(sql.ast, Ast::CreateTable(_) | Ast::CreateTableAs(_));
        if !creates && !may_reach_all(sql.ast) {
            continue;
        }
        for change in trial.run(sql.ast).data_changes {
            check_change(context, sql, &change, reporter);
        }
    }
}

fn check_change(context: &RoutineContext<'_>, sql: &Sql<'_>, change: &DataChange, reporter: &mut Reporter<'_>) {
    let table = &change.relation;
    let is_work = change.unbounded && change.kind != DataChangeKind::Insert && !change.by_trigger;
    if !is_work
        || !table.visibility.is_exposed()
        || is_small(table, sql.ast, context.catalog, context.settings)
        || takes_one_row(sql)
        || context.catalog.get_relation(table.oid).is_none() && context.routines.makes_temporary(&table.name)
    {
        return;
    }
    let (verb, help) = words(change.kind, sql.ast);
    let message = format!(
        "when {} is called, this {verb} every row of `{}` and keeps all of them locked until it is done",
        context.name(),
        table.name
    );
    let name = table.name.clone();
    let assumption = if reads_one_row(context, table) {
        Assumption::LargeThoughReadAsOneRow { table: name }
    } else {
        Assumption::Large { table: name }
    };
    reporter.report(sql.place(change.range), message).relation(table).assuming(assumption).help(help).emit();
}

/// Has it an UPDATE or DELETE that may concern a whole table? Whether it does, its effects say.
fn may_reach_all(ast: &Ast) -> bool {
    let mut found = false;
    ast.visit(&mut |part| {
        found |= match part {
            Part::Update(update) => !update.from.is_empty() || update.filter.as_ref().is_none_or(is_constant),
            Part::Delete(delete) => !delete.using.is_empty() || delete.filter.as_ref().is_none_or(is_constant),
            _ => false,
        };
    });
    found
}

fn is_constant(filter: &Expr) -> bool {
    matches!(filter.kind, ExprKind::Literal(_))
}
