//! CREATE INDEX that blocks writes while it builds.

use crate::assumption::Assumption;
use crate::fix::{Applicability, Edit, Fix};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::index;
use crate::rules::advice::offer::{leave_transaction, offer};
use crate::rules::statement::altered::by_range;
use crate::rules::statement::locks::{assumed_transaction, lock_on_reads, show_lock, show_other_locks};
use crate::severity::Severity;
use pgvet_model::catalog::RelationKind;
use pgvet_model::effect::{IndexBuild, IndexBuildCause, Visibility};
use pgvet_model::throughput::Work;
use pgvet_syntax::ast::{Ast, CreateIndex, LockMode};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// `CREATE INDEX` without `CONCURRENTLY` on a table that is in use.
    ///
    /// ## Why it matters
    ///
    /// The build takes a SHARE lock: nobody can insert, update or delete until the index is complete and the
    /// transaction ends. On a large table, the build takes minutes or hours. On a partitioned table, PostgreSQL builds
    /// the indexes of all partitions one after the other, and all partitions stay locked until the transaction ends.
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
    /// `CONCURRENTLY` cannot run in a transaction block. A build that fails leaves an invalid index behind: drop that
    /// index before the next attempt. PostgreSQL refuses `CONCURRENTLY` for a partitioned table. There, create the
    /// index `ON ONLY` the parent. Then create an index `CONCURRENTLY` on each partition, and attach each of these with
    /// `ALTER INDEX ... ATTACH PARTITION`.
    ///
    /// ## When it is not reported
    ///
    /// - a table that the same transaction created, or that the same migration created and left empty
    /// - an index `ON ONLY` a partitioned table, because PostgreSQL builds nothing
    /// - a temporary table
    /// - a materialized view that the same migration creates
    ///
    /// ## Materialized views
    ///
    /// An index on a materialized view that an earlier migration created is reported with the severity `warning`. The
    /// build blocks `REFRESH`, and queries queue behind a `REFRESH` that waits. `CREATE INDEX CONCURRENTLY` blocks
    /// `REFRESH` as well, so build the index when no `REFRESH` is due.
    ///
    /// ## Fix safety
    ///
    /// The fix adds `CONCURRENTLY`. The fix is unsafe, because the file can no longer run in a transaction, and a
    /// failed build leaves an invalid index. If the statement has `IF NOT EXISTS`, the next run skips the build,
    /// because an invalid index of that name exists. If a migration tool runs the file in a transaction, and the file
    /// has no other statement, the fix also adds the comment that disables this transaction. No fix is offered if the
    /// transaction contains other statements, for partitioned tables and materialized views, and in function bodies.
    "index-without-concurrently", Locking, Error,
    {
        fixable: true,
        sources: &[
            "squawk/require-concurrent-index-creation",
            "eugene/E6",
            "strong_migrations/add_index",
            "pgls/requireConcurrentIndexCreation", "atlas/PG101"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.effects.fails.is_some() {
        return;
    }
    let builds = context.effects.index_builds.iter().filter(|build| {
        let new_view =
            build.table.kind == RelationKind::MaterializedView && build.table.visibility != Visibility::Existing;
        build.cause == IndexBuildCause::CreateIndex
            && !build.concurrently
            && build.table.visibility.is_exposed()
            && !new_view
    });
    let mut is_built = false;
    for (range, builds) in by_range(builds, |build| build.range) {
        is_built = true;
        report(context, reporter, range, &builds);
    }
    if !is_built {
        report_unseen_partitions(context, reporter);
    }
}

/// The index of a partitioned table whose partitions no migration shows.
fn report_unseen_partitions(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::CreateIndex(statement) = context.ast else { return };
    let named = context.effects.locks.iter().find(|lock| lock.range == statement.table.range());
    let Some(table) = named.map(|lock| &lock.relation) else { return };
    let is_parent = table.kind == RelationKind::PartitionedTable && table.visibility == Visibility::Existing;
    let has_children = context.before.get_relation(table.oid).is_none_or(|table| !table.children.is_empty());
    let creates = context.effects.creates.iter().any(|created| created.kind.is_index());
    if !is_parent || has_children || statement.only || !creates {
        return;
    }
    let name = &table.name;
    let message =
        format!("building this index blocks all writes to `{name}` and its partitions until the transaction ends");
    let help = "create the index ON ONLY the parent, build an index concurrently on each partition, and attach these \
                indexes";
    let finding = reporter.report(statement.index_keyword, message).relation(table).help(help);
    finding.assuming(Assumption::HasPartitions { table: name.clone() }).emit();
}

fn report(context: &RuleContext<'_>, reporter: &mut Reporter<'_>, range: TextRange, builds: &[&IndexBuild]) {
    let [first, ..] = builds else { return };
    let statement = match context.ast {
        Ast::CreateIndex(statement) => Some(statement),
        _ => None,
    };
    let named = statement.and_then(|statement| {
        context.effects.locks.iter().find(|lock| lock.range == statement.table.range()).map(|lock| &lock.relation)
    });
    let table = named.unwrap_or(&first.table);
    let locked = lock_on_reads(context, table.oid);
    let message = match (table.kind, builds.len()) {
        _ if locked.is_some() => format!(
            "this builds an index on `{0}` while the transaction holds {1} on the table: nobody can read or write `{0}` \
             until the transaction ends",
            table.name,
            LockMode::AccessExclusive.sql()
        ),
        (RelationKind::PartitionedTable, 2..) => format!(
            "building this index blocks all writes to `{}` and its {} partitions until the transaction ends",
            table.name,
            builds.len()
        ),
        (RelationKind::MaterializedView, _) => {
            format!(
                "building this index blocks every REFRESH of `{}` until the transaction ends; if a REFRESH without \
                 CONCURRENTLY waits, later queries of the view queue behind that REFRESH",
                table.name
            )
        }
        _ => format!("building this index blocks all writes to `{}` until the transaction ends", table.name),
    };
    let mut finding = reporter.report(range, message).relation(table).work(Work::IndexBuild);
    if let Some(lock) = locked {
        finding = show_lock(finding, lock).assuming(assumed_transaction(context, lock.place));
    } else if table.kind == RelationKind::MaterializedView {
        finding = finding.severity(Severity::Warning);
    }
    if locked.is_some() || context.is_surely_in_block() {
        finding = show_other_locks(finding, context, &[table.oid]);
    }
    let finding = match statement {
        _ if table.kind == RelationKind::MaterializedView => finding.help(WITHOUT_REFRESH),
        Some(statement) if table.kind == RelationKind::PartitionedTable => {
            let advice = index::create_by_partition(context, statement, table, &first.table, builds.len());
            offer(context, finding, advice)
        }
        Some(statement) => offer(context, finding, index::create_concurrently(context, statement)),
        None => finding
            .help("build the index with CREATE INDEX CONCURRENTLY, outside of functions, DO blocks and transactions"),
    };
    let is_helped = !matches!(table.kind, RelationKind::PartitionedTable | RelationKind::MaterializedView);
    finding.fix(statement.filter(|_| is_helped).and_then(|statement| concurrently(context, statement))).emit();
}

/// SHARE UPDATE EXCLUSIVE, which CONCURRENTLY holds during the build, conflicts with the locks of REFRESH.
///
/// Source: PostgreSQL 18 documentation, 13.3.1.
const WITHOUT_REFRESH: &str = "build the index in a transaction of its own when no REFRESH is due (CREATE INDEX \
                               CONCURRENTLY would block REFRESH, too)";

fn concurrently(context: &RuleContext<'_>, statement: &CreateIndex) -> Option<Fix> {
    let mut edits = leave_transaction(context)?;
    let edit = Edit { range: TextRange::at(statement.index_keyword.end), text: " CONCURRENTLY".to_owned() };
    edits.push(edit);
    Some(Fix { title: "Build the index concurrently".to_owned(), applicability: Applicability::Unsafe, edits })
}
