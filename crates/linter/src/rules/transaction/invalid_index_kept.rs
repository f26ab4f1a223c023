//! CREATE INDEX CONCURRENTLY IF NOT EXISTS, which keeps the invalid index of a failed build.

use super::first_words;
use super::retry::run_again;
use crate::assumption::Assumption;
use crate::fix::{Applicability, Fix};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::offer::{is_autocommit, line_before};
use crate::rules::deployment::other_statements::earlier;
use crate::rules::text::sql_name;
use pgvet_model::migration::TransactionMode;
use pgvet_syntax::ast::{Ast, CreateIndex, ObjectKind};

declare_rule! {
    /// `CREATE INDEX CONCURRENTLY IF NOT EXISTS` without a `DROP INDEX CONCURRENTLY IF EXISTS` before it.
    ///
    /// ## Why it matters
    ///
    /// A concurrent build can fail because of a timeout, a deadlock, a duplicate key or a lost connection. A failed
    /// build leaves behind an invalid index with the name of the new index. `IF NOT EXISTS` only checks the name, so
    /// the next run builds nothing and succeeds. The migration is then recorded as applied.
    ///
    /// No query uses an invalid index, but every write maintains it. A unique index that is invalid because of
    /// duplicates still rejects some new rows, and does not guarantee that the existing ones are unique.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// DROP INDEX CONCURRENTLY IF EXISTS orders_customer_idx;
    /// CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// If the migration tool sends the whole file as one string, the `CONCURRENTLY` statement must be the only one in
    /// the file. The file therefore cannot drop the index first. Omit `IF NOT EXISTS` in this file: after a failed
    /// build, the next run then fails, and you can drop the invalid index.
    ///
    /// ## When it is not reported
    ///
    /// - a statement that follows a `DROP INDEX ... IF EXISTS` of the same name
    /// - an index that an earlier migration creates
    ///
    /// ## Confidence
    ///
    /// If a migration of the same deployment creates the table and leaves it empty, the confidence is `possible`, and
    /// the finding is shown only with `--confidence possible`.
    ///
    /// ## Incidents
    ///
    /// - [chatwoot #15885](https://github.com/chatwoot/chatwoot/issues/15885): the build was interrupted, the retry
    ///   skipped it, and the migration was recorded as applied
    /// - [freehire #2165](https://github.com/strelov1/freehire/pull/2165): a unique index stayed invalid in production
    ///
    /// ## Fix safety
    ///
    /// The fix adds `DROP INDEX CONCURRENTLY IF EXISTS` before the statement. The fix is unsafe, because it also drops
    /// a valid index of that name, for example one that somebody built by hand.
    "invalid-index-kept", Transaction, Warning,
    { fixable: true }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::CreateIndex(create) = context.ast else { return };
    let concurrent = create.if_not_exists && create.concurrently && context.effects.fails.is_none();
    let build = context.effects.index_builds.iter().find(|build| build.concurrently);
    let Some(build) = build.filter(|_| concurrent && !is_dropped_before(context, create)) else { return };
    let index = sql_name(context, &build.index);
    let drop = format!("DROP INDEX CONCURRENTLY IF EXISTS {index}");
    let again = run_again(context);
    let help = if context.migration.transaction == TransactionMode::SingleString {
        format!(
            "remove IF NOT EXISTS, so that the next run fails instead of keeping an invalid index (this file must \
             contain only one statement, so it cannot drop the index first). To recover from a failed build, run this \
             by hand, then {again}:\n    {drop};"
        )
    } else {
        format!(
            "before this statement, drop the index that a failed build may have left (concurrently, outside a \
             transaction):\n    {drop};\nTo recover from a failed build, {again}"
        )
    };
    let message = format!(
        "if this build fails, it leaves an invalid index `{}`, and the next run keeps that index, because IF NOT \
         EXISTS only checks the name",
        build.index.name
    );
    let table = build.table.name.clone();
    let assumption = if build.table.visibility.may_have_rows() {
        Assumption::MayStop
    } else {
        Assumption::MayStopThoughEmpty { table }
    };
    let fix = is_autocommit(context).then(|| Fix {
        title: "Drop an index that a failed build may have left".to_owned(),
        applicability: Applicability::Unsafe,
        edits: vec![line_before(context, &drop)],
    });
    reporter
        .report(first_words(context), message)
        .relation(&build.table)
        .assuming(assumption)
        .help(help)
        .fix(fix)
        .emit();
}

/// Whether the migration drops the index IF EXISTS first, so that an invalid one is removed.
pub(super) fn is_dropped_before(context: &RuleContext<'_>, index: &CreateIndex) -> bool {
    earlier(context).any(|ast| match ast {
        Ast::Drop(drop) if drop.kind == ObjectKind::Index && drop.if_exists => {
            let name = index.name.as_ref().map(|name| &name.text);
            drop.objects.iter().any(|object| Some(&object.name.name.text) == name)
        }
        _ => false,
    })
}
