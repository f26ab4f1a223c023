//! Statements that fail when half of a migration is run again.

use super::first_words;
use super::invalid_index_kept::{self, is_dropped_before};
use super::retry::run_again;
use super::retry_blocked;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::other_statements::earlier;
use crate::rules::text::qualified;
use pgvet_model::effect::{DataChangeKind, Visibility};
use pgvet_model::routine::Trial;
use pgvet_model::runner::Retry;
use pgvet_syntax::ast::{AlterTableAction, Ast, InsertSource, ObjectName, QueryBody};

declare_rule! {
    /// A statement that runs outside a transaction, and that fails or inserts its rows again if the migration is run a
    /// second time.
    ///
    /// ## Why it matters
    ///
    /// If a later statement of the file fails, the reported statement is already committed. The next run of the
    /// migration then fails at the reported statement, and somebody has to clean up by hand. An `INSERT` may succeed,
    /// but it then inserts its rows a second time.
    ///
    /// If `REINDEX CONCURRENTLY` fails, it can leave an invalid index behind. If `DETACH PARTITION CONCURRENTLY` fails
    /// while it waits for older queries, the detach stays pending.
    ///
    /// `pgvet trace --crash` tests this on a server: it ends the session at each statement, and runs the migration
    /// again.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE orders (id bigint PRIMARY KEY);
    /// SELECT 1;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE IF NOT EXISTS orders (id bigint PRIMARY KEY);
    /// SELECT 1;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - statements in a transaction, because the transaction is rolled back as a whole
    /// - the last statement of the file, unless it is `CREATE INDEX CONCURRENTLY`, `REINDEX CONCURRENTLY` or
    ///   `DETACH PARTITION CONCURRENTLY`, which can leave something behind when they fail
    /// - a statement that follows a `DROP ... IF EXISTS` of the same object
    /// - an `INSERT` with `ON CONFLICT`, an `INSERT ... SELECT`, and an `INSERT` after a statement that empties the
    ///   table
    /// - migrations of a tool that resumes a failed migration at the failed statement, as Atlas does. Statements that
    ///   can leave something behind when they fail are still reported.
    /// - a statement with `IF NOT EXISTS` that would keep an invalid index, which `invalid-index-kept` reports
    /// - a statement that is followed by a statement that may well fail: `retry-blocked` reports the later statement
    ///
    /// ## Incidents
    ///
    /// - [Kilo-Org/cloud #5037](https://github.com/Kilo-Org/cloud/pull/5037): after the tables of a failed migration
    ///   were dropped by hand, each further run failed because the tables did not exist
    "not-rerunnable", Transaction, Info,
    {
        recommended: false,
        sources: &["squawk/prefer-robust-stmts", "pgls/preferRobustStmts"],
        yields_to: &[&invalid_index_kept::RULE.meta, &retry_blocked::RULE.meta],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.in_block() || context.code.is_some_and(|code| code.guarded) {
        return;
    }
    let is_last = context.later().next().is_none();
    if let Some((message, help)) = half_done(context) {
        reporter.report(first_words(context), message).help(help).emit();
        return;
    }
    let Some(help) = missing_guard(context.ast) else { return check_insert(context, is_last, reporter) };
    let concurrent = match context.ast {
        Ast::CreateIndex(index) if index.concurrently => Some(index),
        _ => None,
    };
    let message = match concurrent {
        Some(index) if is_dropped_before(context, index) => return,
        Some(index) if index.if_not_exists => {
            "if this build fails, it leaves an invalid index, and the next run keeps that index"
        }
        Some(_) => "if this build fails, it leaves an invalid index, and the next run fails because the name is taken",
        None if is_last || context.migration.runner.retry == Retry::Continues || runs_again(context) => return,
        None => "if a later statement fails, the next run of the migration fails at this statement",
    };
    reporter.report(first_words(context), message).help(help).emit();
}

/// What a statement of several transactions leaves when it does not end, and how to recover.
fn half_done(context: &RuleContext<'_>) -> Option<(&'static str, String)> {
    let again = run_again(context);
    match context.ast {
        Ast::Reindex(reindex) if reindex.concurrently => {
            let index = match context.effects.index_builds.as_slice() {
                [only] => qualified(&only.index.schema, &format!("{}_ccnew", only.index.name)),
                _ => "NAME_ccnew".to_owned(),
            };
            let help = format!(
                "if the rebuild has already failed, drop the invalid index, whose name ends with `_ccnew` or `_ccold` \
                 and perhaps a number, and {again}:\n    DROP INDEX CONCURRENTLY IF EXISTS {index};"
            );
            Some(("if this rebuild fails, it can leave an invalid index, and the next run does not drop it", help))
        }
        Ast::AlterTable(alter) => {
            let partition = alter.commands.iter().find_map(|command| match &command.action {
                AlterTableAction::DetachPartition { partition, concurrently: true, .. } => Some(partition),
                _ => None,
            })?;
            let record = context.migration.runner.restart.record(&context.migration.file.path);
            let help = format!(
                "if this statement has failed and the detach is pending (pg_inherits.inhdetachpending), complete the \
                 detach with `ALTER TABLE {} DETACH PARTITION {} FINALIZE`, and {record}. Otherwise {again}",
                written(context, &alter.name),
                written(context, partition)
            );
            let message = "if this statement fails while it waits for older queries, the detach stays pending, \
                           and the next run fails";
            Some((message, help))
        }
        _ => None,
    }
}

/// A name as the file has it.
fn written<'a>(context: &RuleContext<'a>, name: &ObjectName) -> &'a str {
    &context.source()[name.range().as_usize()]
}

/// Whether the statement can run a second time because an earlier one drops IF EXISTS what it makes.
fn runs_again(context: &RuleContext<'_>) -> bool {
    let mut undoing = earlier(context).filter(|ast| is_undoing(ast)).peekable();
    if undoing.peek().is_none() {
        return false;
    }
    let path = context.session.settings.search_path();
    let mut trial = Trial::new(context.after, &path, context.settings.versions.to);
    undoing.for_each(|ast| drop(trial.run(ast)));
    trial.run(context.ast).fails.is_none()
}

fn is_undoing(ast: &Ast) -> bool {
    match ast {
        Ast::Drop(drop) => drop.if_exists,
        Ast::AlterTable(alter) => alter.commands.iter().any(|command| {
            matches!(
                command.action,
                AlterTableAction::DropColumn { if_exists: true, .. }
                    | AlterTableAction::DropConstraint { if_exists: true, .. }
            )
        }),
        _ => false,
    }
}

/// Rows that are written in the statement, and that a second run inserts again.
fn check_insert(context: &RuleContext<'_>, is_last: bool, reporter: &mut Reporter<'_>) {
    let Ast::Insert(insert) = context.ast else { return };
    let is_constant = match &insert.source {
        InsertSource::DefaultValues => true,
        InsertSource::Query(query) => matches!(query.body, QueryBody::Values(_)),
    };
    let into = context.effects.data_changes.iter().find(|change| {
        change.kind == DataChangeKind::Insert
            && !change.by_trigger
            && change.relation.visibility == Visibility::Existing
    });
    let Some(into) = into.filter(|_| is_constant && !is_last && insert.on_conflict.is_none()) else { return };
    let empties = |ast: &Ast| match ast {
        Ast::Truncate(_) => true,
        Ast::Delete(delete) => delete.table.name.name.text == insert.table.name.name.text,
        _ => false,
    };
    if context.migration.runner.retry == Retry::Continues || earlier(context).any(empties) {
        return;
    }
    let message = format!(
        "if a later statement fails, the next run of the migration inserts these rows into `{}` again, or fails with a \
         duplicate key error",
        into.relation.name
    );
    let help = "run the file in a transaction, or add ON CONFLICT DO NOTHING if a unique index rejects duplicates";
    reporter.report(first_words(context), message).relation(&into.relation).help(help).emit();
}

/// How to make the statement fit to be run again; `None` where it is.
pub(super) fn missing_guard(ast: &Ast) -> Option<&'static str> {
    const CREATE: &str = "add IF NOT EXISTS, or run the file in a transaction";
    const DROP: &str = "add IF EXISTS, or run the file in a transaction";
    const REPLACE: &str = "add OR REPLACE, or run the file in a transaction";
    const TRANSACTION: &str = "run the file in a transaction";
    match ast {
        Ast::CreateIndex(index) if index.concurrently => {
            Some("add DROP INDEX CONCURRENTLY IF EXISTS before this statement")
        }
        Ast::CreateIndex(index) if !index.if_not_exists => Some(CREATE),
        Ast::CreateTable(table) if !table.if_not_exists => Some(CREATE),
        Ast::CreateSequence(sequence) if !sequence.if_not_exists => Some(CREATE),
        Ast::CreateSchema(schema) if !schema.if_not_exists => Some(CREATE),
        Ast::CreateExtension(extension) if !extension.if_not_exists => Some(CREATE),
        Ast::AlterEnum(alter) if alter.renamed.is_none() && !alter.if_not_exists => Some(CREATE),
        Ast::CreateType(_) | Ast::CreateDomain(_) | Ast::Rename(_) | Ast::CreatePolicy(_) => Some(TRANSACTION),
        Ast::CreateView(view) if !view.or_replace => Some(REPLACE),
        Ast::CreateFunction(function) if !function.or_replace => Some(REPLACE),
        Ast::Drop(drop) if !drop.if_exists => Some(DROP),
        Ast::AlterTable(alter) => alter.commands.iter().find_map(|command| match &command.action {
            AlterTableAction::AddColumn { if_not_exists: false, .. } => Some(CREATE),
            AlterTableAction::DropColumn { if_exists: false, .. }
            | AlterTableAction::DropConstraint { if_exists: false, .. } => Some(DROP),
            AlterTableAction::AddConstraint(constraint) if constraint.name.is_some() => {
                Some("add DROP CONSTRAINT IF EXISTS before this statement, or run the file in a transaction")
            }
            _ => None,
        }),
        _ => None,
    }
}
