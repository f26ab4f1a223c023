//! CREATE INDEX that blocks writes while it builds.

use crate::ast::Ast;
use crate::effect::{IndexBuildCause, RelationKind};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};

declare_rule! {
    /// `CREATE INDEX` without `CONCURRENTLY` on a table that is in use.
    ///
    /// ## Why it matters
    ///
    /// The build holds a SHARE lock: nobody can insert, update or delete until the last row is in the index. On a large
    /// table that takes minutes to hours.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE INDEX orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE INDEX CONCURRENTLY orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// `CONCURRENTLY` cannot run in a transaction block, and leaves an invalid index behind when it fails: drop that
    /// before the next attempt.
    ///
    /// ## When it is not reported
    ///
    /// For a table that the same transaction created, or the same migration while it is empty; for `ON ONLY` a
    /// partitioned table, which builds nothing.
    "index-without-concurrently", Locking, Error,
    {
        sources: &["squawk/require-concurrent-index-creation", "eugene/E6", "strong_migrations/add_index", "pgls/requireConcurrentIndexCreation"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::CreateIndex(statement) = context.ast else { return };
    let mut builds = context.effects.index_builds.iter().filter(|build| {
        build.cause == IndexBuildCause::CreateIndex && !build.concurrently && build.table.visibility.is_exposed()
    });
    let Some(build) = builds.next() else { return };
    let more = builds.count();
    let partitioned = context
        .effects
        .locks
        .iter()
        .find(|lock| lock.relation.kind == RelationKind::PartitionedTable && lock.relation.visibility.is_exposed());
    let table = partitioned.map_or(&build.table, |lock| &lock.relation);
    let message = if more == 0 || partitioned.is_none() {
        format!("building this index blocks every write to `{}` until it is done", table.name)
    } else {
        format!(
            "building this index blocks every write to `{}` and its {} partitions until all are done",
            table.name,
            more + 1
        )
    };
    let help = if partitioned.is_some() {
        "create the index on the parent alone, build each partition's index concurrently, then attach it:\n    \
         CREATE INDEX ... ON ONLY parent (...);\n    \
         CREATE INDEX CONCURRENTLY ... ON partition (...);\n    \
         ALTER INDEX ... ATTACH PARTITION ...;"
    } else {
        "build it outside a transaction with CREATE INDEX CONCURRENTLY"
    };
    drop(reporter.report(statement.keyword, message).relation(table).help(help));
}
