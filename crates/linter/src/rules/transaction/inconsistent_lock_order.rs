//! A migration and a function that lock the same tables in opposite order.

use super::mixed_ddl_and_bulk_dml::is_upgrade;
use crate::report::Reporter;
use crate::rule::{MigrationContext, RuleContext, declare_rule};
use crate::rules::deployment::names::Names;
use pgvet_model::catalog::{Catalog, Function, Oid, RelationKind};
use pgvet_model::deployment::Deployment;
use pgvet_model::effect::{DataChangeKind, Lock, LockCause};
use pgvet_model::routine::{Routine, Routines};
use pgvet_model::session::TransactionBlock;
use pgvet_syntax::ast::{Ast, FunctionBody, LockMode, Part, Transaction};
use pgvet_syntax::lexer::quote_identifier;
use pgvet_syntax::source::TextRange;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

declare_rule! {
    /// A migration that locks two tables in the opposite order to a function that writes to both, or that changes rows
    /// of a table and later takes a stronger lock on the same table.
    ///
    /// ## Why it matters
    ///
    /// While the migration holds the first table and waits for the second, a call of the function holds the second and
    /// waits for the first: neither can continue. After `deadlock_timeout` PostgreSQL cancels one of the two: the
    /// migration, or the transaction of a user.
    ///
    /// The same happens within one table: a session that waits for a row that the migration changed holds a lock on the
    /// table, and the migration waits for that lock when it alters the table later.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- history:
    /// CREATE TABLE accounts (id bigint PRIMARY KEY, total int);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, account bigint);
    /// CREATE FUNCTION place(wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     INSERT INTO orders (id, account) VALUES (1, wanted);
    ///     UPDATE accounts SET total = total + 1 WHERE id = wanted;
    /// END $$;
    /// -- migration: transaction
    /// ALTER TABLE accounts ADD COLUMN note text;
    /// ALTER TABLE orders ADD COLUMN note text;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- history:
    /// CREATE TABLE accounts (id bigint PRIMARY KEY, total int);
    /// CREATE TABLE orders (id bigint PRIMARY KEY, account bigint);
    /// CREATE FUNCTION place(wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     INSERT INTO orders (id, account) VALUES (1, wanted);
    ///     UPDATE accounts SET total = total + 1 WHERE id = wanted;
    /// END $$;
    /// -- migration: transaction
    /// ALTER TABLE orders ADD COLUMN note text;
    /// ALTER TABLE accounts ADD COLUMN note text;
    /// ```
    ///
    /// Or use a separate transaction for each table.
    ///
    /// ## When it is not reported
    ///
    /// - tables in separate transactions
    /// - tables that the migration created
    /// - locks that do not block writes
    /// - a change of all rows of a table before the table is altered, which `mixed-ddl-and-bulk-dml` reports
    /// - a trigger function on a table that the migration has already locked: no other session can be running it
    ///
    /// The statements of a function are compared in the order of its text. Two migrations are not compared with each
    /// other, because migration tools run one migration at a time.
    ///
    /// ## Other linters
    ///
    /// No other known linter compares migrations with functions.
    "inconsistent-lock-order", Transaction, Warning,
    { recommended: false }
    statement = at_commit,
    migration = at_end,
}

/// A table that nobody can write any more, and the place in the migration that locks it.
#[derive(Debug, Clone, Copy)]
struct Locked {
    table: Oid,
    range: TextRange,
    statement: TextRange,
}

/// A statement that ends a transaction: COMMIT, or any that runs outside of a block.
fn at_commit(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    report_upgrades(context, reporter);
    let is_end = matches!(context.ast, Ast::Transaction(Transaction::Commit { .. } | Transaction::Prepare));
    let (catalog, locked) = match &context.session.block {
        Some(block) if is_end => (block.catalog_before(), held(block)),
        Some(_) => return,
        None => (context.before, taken(&context.whole.locks, context.statement.range)),
    };
    let routines = Routines::new(context.migrations, catalog, &context.settings.functions, context.reader);
    report(&of_others(locked, catalog, context.deployment()), catalog, &routines, reporter);
}

/// Locks on tables of which the transaction has changed some rows before, and which nothing has kept writers from
/// since.
fn report_upgrades(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(block) = &context.session.block else { return };
    for lock in context.effects.locks.iter().filter(|lock| is_strong(lock.mode, lock.cause, lock.relation.kind)) {
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
            "this waits for every session that uses `{name}`, and the transaction has already changed rows of that \
             table: a session that waits for one of these rows deadlocks with the migration"
        );
        let help = format!(
            "begin the transaction with LOCK TABLE {} IN {} MODE, or change the rows in a separate transaction",
            quote_identifier(name),
            lock.mode.sql()
        );
        let finding = reporter.report(lock.range, message).relation(&lock.relation);
        finding.label_in(change.place.file, change.place.range, "rows are changed here").help(help).emit();
    }
}

/// The transaction that the program around the migration commits.
fn at_end(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(block) = &context.session.block else { return };
    let catalog = block.catalog_before();
    let routines = Routines::new(context.migrations, catalog, &context.settings.functions, context.reader);
    report(&of_others(held(block), catalog, context.deployment()), catalog, &routines, reporter);
}

fn held(block: &TransactionBlock) -> Vec<Locked> {
    let strong = block.locks.strong().filter(|held| is_strong(held.mode, held.cause, held.kind));
    strong.map(|held| Locked { table: held.relation, range: held.range, statement: held.place.range }).collect()
}

fn taken(locks: &[Lock], statement: TextRange) -> Vec<Locked> {
    let strong = locks.iter().filter(|lock| is_strong(lock.mode, lock.cause, lock.relation.kind));
    strong.map(|lock| Locked { table: lock.relation.oid, range: lock.range, statement }).collect()
}

/// Whether it makes writers wait, and has to wait for them.
fn is_strong(mode: LockMode, cause: LockCause, kind: RelationKind) -> bool {
    mode.blocks_writes() && cause != LockCause::WithoutWaiting && kind.is_table()
}

/// The tables that the migration did not create, each where it is locked first.
fn of_others(mut locked: Vec<Locked>, catalog: &Catalog, deployment: Option<Deployment>) -> Vec<Locked> {
    let mut seen = FxHashSet::default();
    locked.retain(|lock| {
        let is_old = catalog.get_relation(lock.table).is_some_and(|table| !table.birth.is_of(deployment));
        is_old && seen.insert(lock.table)
    });
    locked
}

/// A function that writes a table of which the migration locks another one first, which it writes later.
struct Crossing {
    /// The table that is locked first, as a place in the order of the locks.
    first: usize,
    routine: Rc<Routine>,
    /// Where it writes the one that is locked second.
    place: TextRange,
}

fn report(locked: &[Locked], catalog: &Catalog, routines: &Routines<'_>, reporter: &mut Reporter<'_>) {
    for (second, crossing) in crossings(locked, catalog, routines) {
        let (first, second) = (locked[crossing.first], locked[second]);
        let name = |locked: Locked| catalog.relation(locked.table).name.clone();
        let message = format!(
            "this transaction locks `{}` and then `{}`, but {} writes them in the opposite order: the migration and \
             the function can deadlock",
            name(first),
            name(second),
            crossing.routine.name()
        );
        let help = if first.statement == second.statement {
            format!(
                "lock `{}` first in the same transaction, with LOCK TABLE, in the mode that the statement needs",
                name(second)
            )
        } else {
            format!(
                "lock the tables in the order in which {} writes them, or use a separate transaction for each table",
                crossing.routine.name()
            )
        };
        let finding = reporter.report(second.range, message);
        let finding = if first.range == second.range { finding } else { finding.label(first.range, "locked here") };
        finding.label_in(crossing.routine.file, crossing.place, "written here first").help(help).emit();
    }
}

/// By the table that is locked second; of several functions the oldest.
fn crossings(locked: &[Locked], catalog: &Catalog, routines: &Routines<'_>) -> BTreeMap<usize, Crossing> {
    if locked.len() < 2 {
        return BTreeMap::new();
    }
    let order: FxHashMap<Oid, usize> = locked.iter().enumerate().map(|(at, locked)| (locked.table, at)).collect();
    let names: Names<'_> = locked.iter().map(|locked| catalog.relation(locked.table).name.as_str()).collect();
    let mut functions: Vec<&Arc<Function>> =
        catalog.functions().filter(|function| names_two(function, &names)).collect();
    functions.sort_unstable_by_key(|function| function.oid);
    let mut found: BTreeMap<usize, Crossing> = BTreeMap::new();
    for routine in functions.into_iter().filter_map(|function| routines.function(function.oid)) {
        let written = writes(&routine, catalog, &order);
        let empty_from = empty_from(&routine, routines, &order);
        for (at, (second, place)) in written.iter().enumerate() {
            let crosses = |first: &usize| first < second && *first < empty_from;
            let Some(first) = written[at..].iter().map(|(table, _)| *table).find(crosses) else { continue };
            let crossing = || Crossing { first, routine: Rc::clone(&routine), place: *place };
            found.entry(*second).or_insert_with(crossing);
        }
    }
    found
}

/// From which lock on nobody is inside a function: when all tables are locked whose triggers run it, for a statement
/// that fires one holds a lock on its table.
fn empty_from(routine: &Routine, routines: &Routines<'_>, order: &FxHashMap<Oid, usize>) -> usize {
    let triggers = routine.oid().map_or(&[][..], |oid| routines.triggers_of(oid));
    let entrances = triggers.iter().map(|used| match used.table.kind {
        RelationKind::Table => order.get(&used.table.oid).copied().unwrap_or(usize::MAX),
        // Rows of a partition can be written without a lock on the parent.
        _ => usize::MAX,
    });
    entrances.max().unwrap_or(usize::MAX)
}

/// Only code that names two of the tables is read.
fn names_two(function: &Function, names: &Names<'_>) -> bool {
    let FunctionBody::Source { text, .. } = &*function.body else {
        return matches!(&*function.body, FunctionBody::Atomic { .. });
    };
    let mut named = names.each_in(text);
    named.next().is_some_and(|first| named.any(|other| other != first))
}

/// The locked tables that the code writes, each where it does so first, in the order of its text.
fn writes(routine: &Routine, catalog: &Catalog, order: &FxHashMap<Oid, usize>) -> Vec<(usize, TextRange)> {
    let mut found: Vec<(usize, TextRange)> = Vec::new();
    let mut seen = FxHashSet::default();
    for step in routine.steps() {
        for sql in &step.sql {
            sql.ast.visit(&mut |part| {
                let table = match part {
                    Part::Insert(insert) => &insert.table.name,
                    Part::Update(update) => &update.table.name,
                    Part::Delete(delete) => &delete.table.name,
                    Part::Merge(merge) => &merge.table.name,
                    _ => return,
                };
                let written = catalog.find_relation(table, &routine.search_path);
                if let Some(at) = written.and_then(|oid| order.get(&oid)).filter(|at| seen.insert(**at)) {
                    found.push((*at, sql.place(table.range())));
                }
            });
        }
    }
    found
}
