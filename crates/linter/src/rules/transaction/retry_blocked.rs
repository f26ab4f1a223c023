//! A migration that stops half way outside a transaction, and cannot be run again.

use super::first_words;
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::deployment::lasting::Lasting;
use crate::rules::statement::timeouts::{awaited_lock, lock_timeout_in_effect};
use crate::rules::text::{identifier, sql_name};
use pgvet_model::catalog::Catalog;
use pgvet_model::effect::{Effects, Failure, IndexBuild, IndexBuildCause, ScanCause};
use pgvet_model::routine::Trial;
use pgvet_model::runner::Retry;
use pgvet_syntax::ast::{Ast, Transaction};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::Statement;
use std::collections::HashSet;

declare_rule! {
    /// A statement that may well fail, and that runs outside a transaction, after statements that cannot run a second
    /// time.
    ///
    /// ## Why it matters
    ///
    /// After a failure, each later deployment fails as well, until somebody repairs the database by hand. Outside a
    /// transaction, the statements before the failed one are already committed. The migration tool has not recorded the
    /// migration, so it runs the migration again from the start. The next run then fails at a statement that has
    /// already run, such as `ALTER TABLE ... ADD COLUMN`.
    ///
    /// These statements may well fail: concurrent builds, checks of existing rows, changes of all rows of a table, and
    /// statements that wait for a strong lock under `lock_timeout`. A concurrent build can fail because of a timeout, a
    /// deadlock or a duplicate key.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// ALTER TABLE orders ADD COLUMN customer_id bigint;
    /// CREATE INDEX CONCURRENTLY orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE INDEX CONCURRENTLY orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// Add the column in an earlier, separate migration, which can run in a transaction.
    ///
    /// ## When it is not reported
    ///
    /// - statements in a transaction, if the migration has committed nothing before: a failure then rolls back the
    ///   whole migration
    /// - a statement, if all statements before it can run again because of `IF NOT EXISTS`, `IF EXISTS` or
    ///   `OR REPLACE`. To find out, pgvet applies them a second time to the schema that it has computed from the
    ///   migrations.
    /// - migrations of a tool that resumes a failed migration at the failed statement, as Atlas does
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible` if nothing shows which program runs the file, and no statement in the file has to
    /// run outside a transaction. The finding is then shown only with `--confidence possible`.
    ///
    /// ## Incidents
    ///
    /// - [matrix-authentication-service #5297](https://github.com/element-hq/matrix-authentication-service/pull/5297):
    ///   after a failed build each retry failed with "relation already exists"
    "retry-blocked", Transaction, Warning,
    { recommended: false }
    statement = check,
}

/// Maximum number of statements that are run a second time.
const MAX_REPEATED: usize = 300;

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let continues = context.migration.runner.retry == Retry::Continues;
    if context.code.is_some() || continues || context.migration.baseline || !may_stop(context) {
        return;
    }
    let (stopped, end) = stop(context);
    if first_statement(context).is_none_or(|first| first.start >= end) {
        return;
    }
    let Some(blocker) = blocker(context, stopped, end) else { return };
    let mut finding = reporter
        .report(first_words(context), message(context, &blocker))
        .label(blocker.statement.range, format!("the next run fails here: {}", blocker.failure.reason))
        .assuming(Assumption::MayStop)
        .help(help(context, &blocker));
    if !context.effects.waits_for_transactions && !context.migration.runner.is_known {
        finding = finding.assuming(Assumption::NoTransactionAround);
    }
    finding.emit();
}

/// Whether the statement can fail because of the rows or the traffic of the table.
fn may_stop(context: &RuleContext<'_>) -> bool {
    let Effects { fails, scans, index_builds, data_changes, waits_for_transactions, .. } = context.whole;
    if fails.is_some() {
        return false;
    }
    let may_refuse = |cause: &ScanCause| {
        matches!(
            cause,
            ScanCause::NotNull { .. }
                | ScanCause::Check { .. }
                | ScanCause::ForeignKey { .. }
                | ScanCause::Validate { .. }
                | ScanCause::PartitionBound
                | ScanCause::DefaultPartition
                | ScanCause::Domain { .. }
        )
    };
    *waits_for_transactions
        || scans.iter().any(|scan| may_refuse(&scan.cause) && scan.relation.visibility.may_have_rows())
        || index_builds.iter().any(|build| is_unique(context, build) && build.table.visibility.may_have_rows())
        || data_changes.iter().any(|change| change.relation.visibility.may_have_rows() && change.rows.is_whole())
        || (lock_timeout_in_effect(context) && awaited_lock(context).is_some())
}

/// Whether rows can refuse the index.
fn is_unique(context: &RuleContext<'_>, build: &IndexBuild) -> bool {
    build.cause == IndexBuildCause::Constraint || matches!(context.ast, Ast::CreateIndex(create) if create.unique)
}

/// The catalog after the statement stops, and where in the file the transaction begins that is rolled back.
fn stop<'c>(context: &RuleContext<'c>) -> (&'c Catalog, u32) {
    match &context.session.block {
        Some(block) => (block.catalog_before(), block.started.range.start),
        None => (context.before, context.statement.range.start),
    }
}

fn first_statement(context: &RuleContext<'_>) -> Option<TextRange> {
    context.migration.statements().next().map(|statement| statement.range)
}

/// The first statement that a second run cannot run, and why.
struct Blocker<'a> {
    statement: &'a Statement,
    failure: Failure,
}

/// Runs the statements before `end` on the catalog that the first run has left.
fn blocker<'a>(context: &RuleContext<'a>, stopped: &Catalog, end: u32) -> Option<Blocker<'a>> {
    let undone: HashSet<u32> =
        Lasting::of(context.migration).undone.iter().map(|statement| statement.range.start).collect();
    let path = context.session.settings.search_path();
    let mut trial = Trial::new(stopped, &path, context.settings.versions.to);
    for statement in context.migration.statements().take(MAX_REPEATED) {
        if statement.range.start >= end {
            return None;
        }
        let ast = statement.ast()?;
        let is_control = matches!(ast, Ast::Transaction(Transaction::Begin | Transaction::Commit { .. }));
        if is_control || undone.contains(&statement.range.start) {
            continue;
        }
        if let Some(failure) = trial.run(ast).fails {
            return Some(Blocker { statement, failure });
        }
    }
    None
}

fn message(context: &RuleContext<'_>, blocker: &Blocker<'_>) -> String {
    let what = if context.effects.index_builds.is_empty() { "this statement" } else { "this index build" };
    format!(
        "if {what} fails, earlier statements stay committed, and the next run of the migration fails at one of them: {}",
        blocker.failure.reason
    )
}

fn help(context: &RuleContext<'_>, blocker: &Blocker<'_>) -> String {
    let guard = match blocker.statement.ast() {
        Some(Ast::CreateIndex(index)) if index.concurrently => {
            let name = index.name.as_ref().map_or_else(|| "...".to_owned(), |name| identifier(&name.text));
            format!(
                "; or add `DROP INDEX CONCURRENTLY IF EXISTS {name}` before the statement that creates this index, so \
                 that the next run can create the index again"
            )
        }
        _ => String::new(),
    };
    let left = match context.ast {
        Ast::CreateIndex(_) => context.effects.index_builds.iter().find(|build| build.concurrently),
        _ => None,
    };
    let record = context.migration.runner.restart.record(&context.migration.file.path);
    let recovery = match left {
        Some(build) => format!(
            "drop the invalid index with `DROP INDEX CONCURRENTLY IF EXISTS {}`, run this statement and all later \
             ones by hand, and {record}",
            sql_name(context, &build.index)
        ),
        None => format!("run this statement and all later ones by hand, and {record}"),
    };
    format!("move this statement to a separate migration{guard}. If this statement has already failed: {recovery}")
}
