//! Concurrent builds, for which a second run of the migration tool waits while they wait for it.

use super::first_words;
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::text::sql_name;
use pgvet_model::effect::Visibility;
use pgvet_model::runner::RunLock;

declare_rule! {
    /// An index is built `CONCURRENTLY` by a migration tool that makes a second, simultaneous run wait in
    /// `pg_advisory_lock`.
    ///
    /// ## Why it matters
    ///
    /// A concurrent build waits for every transaction that can still see the table without the index, even if that
    /// transaction never reads the table. Some tools prevent two runs at the same time with
    /// `SELECT pg_advisory_lock(...)`. The second run then waits in this statement for the lock of the first run. The
    /// index build of the first run waits for the transaction of the second run. After `deadlock_timeout`, one second
    /// by default, PostgreSQL cancels one of the two statements with `deadlock detected` (SQLSTATE 40P01). If it
    /// cancels the build, an invalid index is left behind.
    ///
    /// The deadlock can occur if each replica of a program runs the migrations when it starts. The tools
    /// golang-migrate, sqlx, tern, Prisma and Atlas wait in this way. `pgvet trace --twice` reproduces the deadlock.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- set: run-lock waits
    /// CREATE INDEX CONCURRENTLY orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// Use instead:
    ///
    /// Run the migrations once for each deployment, before the replicas start. If that is not possible, build the index
    /// by hand before the deployment:
    ///
    /// ```sql,clean
    /// -- set: run-lock waits
    /// -- history:
    /// CREATE INDEX orders_customer_idx ON orders (customer_id);
    /// -- migration:
    /// CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - other migration tools: they take no lock, or a second run polls for the lock or ends at once
    /// - an index that already exists
    ///
    /// The confidence is `possible`, because nothing shows whether two runs start together. The finding is shown only
    /// with `--confidence possible`.
    ///
    /// ## Incidents
    ///
    /// - [golang-migrate #960](https://github.com/golang-migrate/migrate/issues/960): several replicas ran the
    ///   migrations at once, which left a dirty version and an invalid index
    /// - [matrix-authentication-service
    ///   #5298](https://github.com/element-hq/matrix-authentication-service/issues/5298): several replicas ran the
    ///   migrations at once with sqlx
    /// - [coder #8353](https://github.com/coder/coder/pull/8353): the project removed `CONCURRENTLY` from all
    ///   migrations
    ///
    /// ## Other linters
    ///
    /// No other known linter knows how migration tools lock.
    "second-run-deadlocks", Transaction, Warning,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    // Where another session holds the lock, nobody notices the deadlock, and the second run gives up.
    let waits = context.migration.runner.restart.lock == RunLock::Waits { by_its_session: true };
    let build = context.effects.index_builds.iter().find(|build| build.concurrently);
    let Some(build) = build.filter(|_| waits && context.effects.fails.is_none()) else { return };
    if build.table.visibility != Visibility::Existing {
        return;
    }
    let message = format!(
        "if a second process starts the migrations while the index `{}` is built, the two processes deadlock: the \
         second waits for the migration tool's lock, which the first holds, and the build waits for the second \
         process's transaction",
        build.index.name
    );
    let help = format!(
        "run the migrations from only one process in each deployment, and not from every replica that starts. If a \
         deadlock has ended the build, drop the invalid index, and run the migration again:\n    DROP INDEX \
         CONCURRENTLY IF EXISTS {};",
        sql_name(context, &build.index)
    );
    let finding = reporter.report(first_words(context), message).relation(&build.table);
    finding.assuming(Assumption::SecondRun).help(help).emit();
}
