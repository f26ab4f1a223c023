//! A migration that can deadlock with the application, because the two lock in different orders.

use super::lock_order::application::Setting;
use super::lock_order::ending::{Ending, Split, gives_up};
use super::lock_order::migration;
use super::mixed_ddl_and_bulk_dml::is_upgrade;
use crate::assumption::Assumption;
use crate::report::Reporter;
use crate::rule::{Earlier, MigrationContext, RuleContext, declare_rule};
use pgvet_model::effect::{DataChangeKind, Lock, LockCause};
use pgvet_model::migration::Migration;
use pgvet_model::place::Place;
use pgvet_model::routine::Routines;
use pgvet_model::session::{LongWork, TransactionBlock};
use pgvet_syntax::ast::{Ast, Transaction};
use pgvet_syntax::lexer::quote_identifier;

declare_rule! {
    /// A migration that locks tables in an order that can deadlock with the application, or that changes rows of a
    /// table and later needs a stronger lock on it.
    ///
    /// ## Why it matters
    ///
    /// The migration holds a lock on one table and waits for a second table. A transaction of the application holds a
    /// lock on the second table and waits for the first: neither can continue. After `deadlock_timeout` PostgreSQL
    /// cancels one of the two: the migration, or the transaction of a user.
    ///
    /// A typical case is `ALTER TABLE a; UPDATE a ...; ALTER TABLE b` in one transaction, while the application writes
    /// to `b` and then to `a`. If the deployment is repeated after each deadlock, it blocks the application each time.
    ///
    /// pgvet learns from these sources in which order the application locks tables:
    ///
    /// - foreign keys: an INSERT locks its table, and then the referenced table. If the foreign key is
    ///   INITIALLY DEFERRED, COMMIT locks the referenced table.
    /// - triggers: the statement that fires a trigger locks its table, and then the tables that the trigger uses. BEFORE
    ///   triggers lock before foreign keys do, and AFTER triggers afterwards, unless their name sorts before
    ///   `RI_ConstraintTrigger_`.
    /// - views: a query locks the view, and then the tables that the view reads, in the order in which the view names
    ///   them
    /// - functions: the statements in their bodies, in the order of the text. Branches of an IF or CASE exclude each
    ///   other, and a branch that ends with RETURN or an error excludes the statements after it.
    /// - queries of the project: the query files of sqlc, `PgTyped`, yesql, aiosql and HugSQL, and `.sqlx/query-*.json`
    ///
    /// A deadlock is also possible within one table. A session that waits for a row that the migration has changed
    /// holds a lock on the table. If the migration then alters the table, it waits for that lock, and the two deadlock.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE customers (id bigint PRIMARY KEY);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint REFERENCES customers);
    /// -- migration: transaction
    /// ALTER TABLE customers ADD COLUMN note text;
    /// ALTER TABLE orders ADD COLUMN note text;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE customers (id bigint PRIMARY KEY);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint REFERENCES customers);
    /// -- migration: autocommit
    /// ALTER TABLE customers ADD COLUMN note text;
    /// ALTER TABLE orders ADD COLUMN note text;
    /// ```
    ///
    /// If you need one transaction, lock the tables at its beginning, in the order in which the application locks them.
    /// In any case, set `lock_timeout` below `deadlock_timeout`, and run the migration again if the timeout expires.
    ///
    /// ## When it is not reported
    ///
    /// - tables in separate transactions
    /// - tables that the migration created, and writes to a table or queries of a view that the deployment created
    /// - locks that do not conflict with the locks of the application. For example, an UPDATE that gives no column of a
    ///   unique index another value does not conflict with the check of a foreign key.
    /// - the lock order of a function that changes the schema: pgvet treats this function as a helper of migrations
    /// - a table that `LOCK TABLE ... NOWAIT` requests: the migration fails instead of waiting
    /// - two tables, if the application first locks a third table that the migration has already locked: the
    ///   application then waits there before it locks one of the two
    /// - a change of all rows of a table before the table is altered, which `mixed-ddl-and-bulk-dml` reports
    ///
    /// ## Confidence
    ///
    /// The confidence is `possible` in these cases:
    ///
    /// - Only a DELETE locks in the opposite order: any DELETE from a table, or one in a query or function, including the
    ///   rows that its foreign keys change.
    /// - The deadlock is about rows of a table, and the migration changes only some of these rows.
    /// - Only a function locks in the opposite order, and nothing shows that deployed code calls it: no trigger, policy,
    ///   default, view, query of the project, `calls-per-hour` or `GRANT EXECUTE` on this function in particular. A role that
    ///   has `EXECUTE` on all functions, or by default, shows no call.
    /// - Only an INSERT into or UPDATE of a lookup table locks in the opposite order. The rows of a lookup table are
    ///   inserted by migrations.
    /// - The application takes its two locks in one statement, its foreign keys, triggers and views included. This
    ///   statement has to run between the two locks of the migration, which is a short time if the migration reads and
    ///   writes at most a few rows or a lookup table in between. It does not matter whether the migration also waits for
    ///   other tables in between.
    /// - Only an INSERT locks in the opposite order, and the queries of the project insert into other tables, but not into
    ///   this one.
    /// - The migration drops the table, foreign key or function that makes the application lock in the opposite order.
    /// - The migration enables row-level security on both tables, which had none: their setup is usually not complete.
    /// - The transaction stops with an error if one of the two tables has rows, so that deployed code can hardly use it.
    /// - `lock_timeout` is shorter than the default of `deadlock_timeout` (1 s), so the migration usually gives up
    ///   first.
    ///
    /// If several partitions of two tables can deadlock in the same way, this is one finding, which gives the number of
    /// the other partitions. If several transactions or migrations can deadlock on the same two tables, reports show
    /// one finding with the other places.
    ///
    /// pgvet assumes that a function runs its statements in the order of its text, and each loop once. For each
    /// transaction of a migration, it follows at most 500 calls of functions and triggers in the statements of the
    /// application. pgvet does not compare two migrations with each other, because migration tools run one migration at
    /// a time.
    ///
    /// If a session keeps the plan of a statement with WITH or a view, the lock order of later executions can differ from
    /// that of the first. pgvet knows one of the two orders: for WITH that of the first execution, for views that of later
    /// ones.
    ///
    /// ## Incidents
    ///
    /// - [memex-ai #353](https://github.com/mindset-ai/memex-ai/pull/353): a migration altered two tables in the
    ///   opposite order of the application, and the deadlock stopped the release
    /// - [boardsesh #3496](https://github.com/boardsesh/boardsesh/pull/3496): a backfill between two `ALTER TABLE`
    ///   statements held the first lock for two minutes, and the second `ALTER TABLE` deadlocked with a query
    /// - [Ekubo indexer #173](https://github.com/EkuboProtocol/indexer/pull/173): a deployment that locked about 20
    ///   tables one after the other deadlocked with the workers
    ///
    /// ## Other linters
    ///
    /// No other known linter compares migrations with the order in which the application locks.
    "inconsistent-lock-order", Transaction, Warning,
    {}
    statement = at_commit,
    migration = at_end,
}

/// A statement that ends a transaction: COMMIT, or any that runs outside of a block.
fn at_commit(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    report_upgrades(context, reporter);
    if context.code.is_some() {
        return;
    }
    let is_end = matches!(context.ast, Ast::Transaction(Transaction::Commit { .. } | Transaction::Prepare));
    if context.session.block.is_some() && !is_end {
        return;
    }
    let block = context.session.block.as_ref();
    let catalog = block.map_or(context.before, TransactionBlock::catalog_before);
    let routines = Routines::new(context.migrations, catalog, &context.settings.functions, context.reader);
    let next = (context.after, context.deployment());
    let setting = Setting::new(&routines, context.session, context.settings, context.target.version(), next);
    let ending = match block {
        Some(block) => of_block(block, context.earlier, context.migration, setting),
        None => of_statement(context, setting),
    };
    ending.report(reporter);
}

/// The transaction that the program around the migration commits.
fn at_end(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(block) = &context.session.block else { return };
    let catalog = block.catalog_before();
    let routines = Routines::new(context.migrations, catalog, &context.settings.functions, context.reader);
    let next = (context.after, context.migration.deployment(context.file));
    let setting = Setting::new(&routines, context.session, context.settings, context.settings.versions.to, next);
    of_block(block, context.ran, context.migration, setting).report(reporter);
}

/// A transaction block at its end. `ran`: the statements of the migration.
fn of_block<'a>(
    block: &TransactionBlock,
    ran: &[Earlier],
    migration: &'a Migration<'a>,
    setting: Setting<'a>,
) -> Ending<'a> {
    Ending {
        locks: migration::of_block(block, setting.deployment),
        partly_changed: migration::partly_changed(block),
        is_alone: false,
        work: block.work.iter().copied().collect(),
        with_code: ran.iter().filter(|one| one.code.is_some()).map(|one| one.outer).collect(),
        split: split(block, migration),
        database: migration.database,
        assumed: Assumption::of_transaction(migration).filter(|_| !block.explicit),
        setting,
    }
}

/// A statement that is a transaction of its own.
fn of_statement<'a>(context: &RuleContext<'a>, setting: Setting<'a>) -> Ending<'a> {
    let place = Place { file: context.file, range: context.statement.range };
    let runs_code = context.inner_statements > 0;
    Ending {
        locks: migration::of_statement(context.whole, place, context.before, setting.deployment),
        partly_changed: migration::partly_changed_by(context.whole),
        // A change of many rows takes locks on rows until it ends.
        is_alone: context.inner_statements < 2 && context.whole.data_changes.is_empty(),
        work: context.whole.long_work().map(|range| LongWork { place, range }).collect(),
        with_code: runs_code.then_some(place.range.start).into_iter().collect(),
        split: Split::Transaction,
        database: context.migration.database,
        assumed: None,
        setting,
    }
}

/// How the work of a transaction can be divided.
fn split(block: &TransactionBlock, migration: &Migration<'_>) -> Split {
    match () {
        () if block.explicit => Split::Transaction,
        () if migration.runner.one_transaction => Split::Release,
        () => Split::Migration,
    }
}

/// Locks on tables of which the transaction has changed some rows before, and which nothing has kept writers from
/// since.
fn report_upgrades(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(block) = &context.session.block else { return };
    for lock in context.effects.locks.iter().filter(|lock| is_strong(lock)) {
        let mut changes = block.changes.of(lock.relation.oid).filter(|change| change.kind != DataChangeKind::Insert);
        let Some(change) =
            changes.next().filter(|first| first.rows.is_few() && changes.all(|change| change.rows.is_few()))
        else {
            continue;
        };
        let is_old = !context.before.relation(lock.relation.oid).birth.is_of(context.deployment());
        if !is_old || !is_upgrade(context, lock) {
            continue;
        }
        let name = &lock.relation.name;
        let message = format!(
            "this can deadlock: this statement waits for all transactions that use `{name}`, but one of them may be \
             waiting for a row that this transaction has changed"
        );
        let help = format!(
            "begin the transaction with LOCK TABLE {} IN {} MODE, or change the rows in a separate transaction",
            quote_identifier(name),
            lock.mode.sql()
        );
        let finding = reporter.report(lock.range, message).relation(&lock.relation);
        let finding = finding.assuming(Assumption::SameRows { table: name.clone() }).assuming(gives_up(lock.patience));
        finding.label_in(change.place.file, change.place.range, "rows are changed here").help(help).emit();
    }
}

/// Whether it makes writers wait, and has to wait for them.
fn is_strong(lock: &Lock) -> bool {
    let waits = lock.cause != LockCause::WithoutWaiting && !lock.is_nowait();
    lock.mode.blocks_writes() && waits && lock.relation.kind.is_table()
}
