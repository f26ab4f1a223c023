//! A migration that can deadlock with the application, because the two lock in different orders.

use super::lock_order::application::{Origin, Sequence, Setting, Source};
use super::lock_order::cycle::{self, Cycle, Requested, Step};
use super::lock_order::migration::{self, Taken};
use super::mixed_ddl_and_bulk_dml::is_upgrade;
use crate::assumption::Assumption;
use crate::cause::{Cause, TransactionId};
use crate::report::Reporter;
use crate::rule::{Earlier, MigrationContext, RuleContext, declare_rule};
use crate::rules::text::qualified;
use indexmap::IndexMap;
use pgvet_model::catalog::{Catalog, Oid, RelationKind};
use pgvet_model::effect::{DataChangeKind, Lock, LockCause, RelationName};
use pgvet_model::migration::Migration;
use pgvet_model::place::Place;
use pgvet_model::routine::Routines;
use pgvet_model::session::Session;
use pgvet_syntax::ast::{Ast, Transaction};
use pgvet_syntax::lexer::quote_identifier;
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

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
    /// - foreign keys: an INSERT locks its table, and then the referenced table
    /// - triggers: the statement that fires a trigger locks its table, and then the tables that the trigger uses
    /// - views: a query locks the view, and then the tables that the view reads, in the order in which the view names
    ///   them
    /// - functions: the statements in their bodies, in the order of the text
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
    /// - tables that the migration created
    /// - locks that do not conflict with the locks of the application
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
    /// - Only a DELETE locks in the opposite order.
    /// - The deadlock is about rows of a table, and the migration changes only some of these rows.
    /// - Only an INSERT into or UPDATE of a lookup table locks in the opposite order. The rows of a lookup table are
    ///   inserted by migrations.
    /// - The migration takes the two locks one right after the other, and only foreign keys or views show the opposite
    ///   order. In a transaction, this means that between the two locks, the migration runs no query, reads and writes
    ///   at most a few rows, and waits for no other table.
    /// - `lock_timeout` is shorter than the default of `deadlock_timeout` (1 s), so the migration usually gives up
    ///   first.
    ///
    /// If several partitions of two tables can deadlock in the same way, this is one finding, which gives the number of
    /// the other partitions.
    ///
    /// pgvet assumes that a function runs its statements in the order of its text. For each transaction of a migration,
    /// it follows at most 500 calls of functions and triggers in the statements of the application. pgvet does not
    /// compare two migrations with each other, because migration tools run one migration at a time.
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

/// A transaction that ends, and what is known at its beginning.
struct Ending<'a> {
    locks: Vec<Taken>,
    /// Tables of which it changes a part of the rows.
    partly_changed: FxHashSet<Oid>,
    /// Whether it is one statement outside a transaction block, which takes its locks right after each other.
    is_alone: bool,
    /// Whether its statements do more than change the catalog and a few rows.
    works: bool,
    setting: Setting<'a>,
    /// The catalog after the migration.
    after: &'a Catalog,
    transaction: TransactionId,
    assumed: Option<Assumption>,
}

/// A lock of the migration, by its position, and the statements of the application that can deadlock with it.
#[derive(Clone, Copy)]
struct Deadlock<'s> {
    wanted: usize,
    cycle: Cycle,
    sequence: &'s Sequence,
}

/// A statement that ends a transaction: COMMIT, or any that runs outside of a block.
fn at_commit(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    report_upgrades(context, reporter);
    let is_end = matches!(context.ast, Ast::Transaction(Transaction::Commit { .. } | Transaction::Prepare));
    let (catalog, locks, partly_changed) = match &context.session.block {
        Some(block) if is_end => {
            let locks = migration::of_block(block, context.deployment());
            (block.catalog_before(), locks, migration::partly_changed(block))
        }
        Some(_) => return,
        None => {
            let place = Place { file: context.file, range: context.statement.range };
            let locks = migration::of_statement(context.whole, place, context.before, context.deployment());
            (context.before, locks, migration::partly_changed_by(context.whole))
        }
    };
    // A change of many rows takes locks on rows until it ends.
    let is_alone = !is_end && context.inner_statements < 2 && context.whole.data_changes.is_empty();
    if context.code.is_some() {
        return;
    }
    let works = context.session.block.as_ref().is_none_or(|block| block.worked || runs_queries(context.earlier));
    let routines = Routines::new(context.migrations, catalog, &context.settings.functions, context.reader);
    let next = (context.after, context.deployment());
    let setting = Setting::new(&routines, context.session, context.settings, context.target.version(), next);
    let transaction = TransactionId::of(context.session, context.outer());
    let assumed = assumed(context.session, context.migration);
    Ending { locks, partly_changed, is_alone, works, setting, after: context.after, transaction, assumed }
        .report(reporter);
}

/// The transaction that the program around the migration commits.
fn at_end(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(block) = &context.session.block else { return };
    let catalog = block.catalog_before();
    let routines = Routines::new(context.migrations, catalog, &context.settings.functions, context.reader);
    let next = (context.after, context.deployment());
    let setting = Setting::new(&routines, context.session, context.settings, context.settings.versions.to, next);
    let locks = migration::of_block(block, context.deployment());
    let (transaction, assumed) = (TransactionId::Block(block.number), assumed(context.session, context.migration));
    let partly_changed = migration::partly_changed(block);
    let (is_alone, works) = (false, block.worked || runs_queries(context.ran));
    Ending { locks, partly_changed, is_alone, works, setting, after: context.after, transaction, assumed }
        .report(reporter);
}

/// Whether statements run queries or code, which may take any time: `SELECT pg_sleep(10)`.
fn runs_queries(ran: &[Earlier]) -> bool {
    ran.iter().any(|one| matches!(&*one.ast, Ast::Select(_) | Ast::Call(_) | Ast::Execute(_) | Ast::Do(_)))
}

/// The default of `deadlock_timeout`, in milliseconds: a session waits for this time before it looks for a deadlock.
///
/// Source: PostgreSQL 18 documentation, 19.12.
const DEADLOCK_TIMEOUT: u64 = 1_000;

/// What is assumed about a lock for which the migration waits no longer than this.
fn gives_up(patience: Option<u64>) -> Option<Assumption> {
    let milliseconds = patience.filter(|milliseconds| *milliseconds < DEADLOCK_TIMEOUT)?;
    Some(Assumption::DeadlockBeforeTimeout { milliseconds })
}

/// What is assumed about the transaction of the migration.
fn assumed(session: &Session, migration: &Migration<'_>) -> Option<Assumption> {
    session.block.as_ref().filter(|block| !block.explicit)?;
    Assumption::of_transaction(migration)
}

impl Ending<'_> {
    fn report(&self, reporter: &mut Reporter<'_>) {
        let steps: Vec<Step> = self.locks.iter().map(|taken| taken.placed.step.clone()).collect();
        let relations: FxHashSet<Oid> = steps.iter().map(|step| step.relation).collect();
        let upgraded = upgraded(&steps);
        if relations.len() < 2 && upgraded.is_empty() {
            return;
        }
        let sequences = self.setting.sequences(&steps);
        let mut seen = FxHashSet::default();
        let mut deadlocks: IndexMap<[Oid; 2], Vec<Deadlock<'_>>> = IndexMap::new();
        for wanted in 1..steps.len() {
            let is_nowait = self.locks[wanted].placed.patience == Some(0);
            if is_nowait || self.is_reported_elsewhere(wanted) || seen.contains(&steps[wanted].relation) {
                continue;
            }
            let used = sequences.iter().filter(|sequence| self.is_used(sequence));
            let found = used.filter_map(|sequence| {
                let cycle = cycle::at(&steps, wanted, &sequence.steps)?;
                Some(Deadlock { wanted, cycle, sequence })
            });
            if let Some(deadlock) = self.surest(found) {
                seen.insert(steps[wanted].relation);
                let pair = [deadlock.cycle.held, wanted].map(|at| self.root(steps[at].relation));
                deadlocks.entry(pair).or_default().push(deadlock);
            }
        }
        for of_pair in deadlocks.values() {
            self.report_pair(of_pair, &sequences, reporter);
        }
    }

    /// The partitioned table or parent at the top, or the relation itself.
    fn root(&self, relation: Oid) -> Oid {
        let parent = self.setting.catalog.get_relation(relation).and_then(|relation| relation.parents.first());
        parent.map_or(relation, |parent| self.root(*parent))
    }

    /// The first deadlock without evidence against it, or else the first.
    fn surest<'s>(&self, deadlocks: impl Iterator<Item = Deadlock<'s>>) -> Option<Deadlock<'s>> {
        let mut first = None;
        for deadlock in deadlocks {
            if self.doubts(&deadlock).is_empty() {
                return Some(deadlock);
            }
            first.get_or_insert(deadlock);
        }
        first
    }

    /// Reports the surest deadlock of two tables; those of their partitions are counted.
    fn report_pair(&self, of_pair: &[Deadlock<'_>], all: &[Sequence], reporter: &mut Reporter<'_>) {
        if let Some(deadlock) = self.surest(of_pair.iter().copied()) {
            self.report_deadlock(&deadlock, of_pair.len() - 1, all, reporter);
        }
    }

    /// Whether the migration leaves the table whose changes would deadlock: what it drops is not used any more.
    fn is_used(&self, sequence: &Sequence) -> bool {
        match sequence.source {
            Source::Write(relation, _) | Source::View(relation) => self.after.get_relation(relation).is_some(),
            Source::Query { .. } | Source::Function(_) => true,
        }
    }

    /// Whether the transaction has changed all rows of the same table before, which `mixed-ddl-and-bulk-dml` reports.
    fn is_reported_elsewhere(&self, wanted: usize) -> bool {
        let wants = &self.locks[wanted];
        let is_same = |taken: &&Taken| taken.placed.step.relation == wants.placed.step.relation;
        let mut earlier = self.locks[..wanted].iter().filter(is_same);
        wants.mode().is_some() && earlier.any(|taken| taken.mode().is_none())
    }

    /// `others`: how many partitions of the same two tables can deadlock as well.
    fn report_deadlock(&self, deadlock: &Deadlock<'_>, others: usize, all: &[Sequence], reporter: &mut Reporter<'_>) {
        let Deadlock { wanted, cycle, sequence } = *deadlock;
        let (held, wants) = (&self.locks[cycle.held], &self.locks[wanted]);
        let subject = self.subject(&sequence.source);
        let message = format!(
            "this can deadlock with {subject}: this transaction holds {} and now needs {}, but the {} {}",
            self.lock(&held.placed.step),
            self.lock(&wants.placed.step),
            noun(&sequence.source),
            self.order(sequence, &cycle)
        );
        let mut finding = reporter.report(wants.range(), message).caused_by(Cause::Transaction(self.transaction));
        for step in [&wants.placed.step, &held.placed.step] {
            finding = finding.relation(&RelationName::existing(self.setting.catalog.relation(step.relation)));
        }
        if held.range() != wants.range() {
            let label = format!("the transaction takes {} here, until it ends", self.lock(&held.placed.step));
            finding = finding.label_in(held.place.file, held.range(), label);
        }
        for (at, words) in [(cycle.other_held, "takes"), (cycle.other_wanted, "then waits for")] {
            let origin = &sequence.origins[at];
            let who = origin.query.as_ref().map_or_else(|| subject.clone(), |place| format!("the query at `{place}`"));
            let label = format!("{who} {words} {}{}", self.lock(&sequence.steps[at]), why(&sequence.source, origin));
            finding = match origin.place {
                Some(place) => finding.label_in(place.file, place.range, label),
                None => finding.label_in(wants.place.file, wants.range(), label),
            };
        }
        if others > 0 {
            let also = if others == 1 { "another partition".to_owned() } else { format!("{others} other partitions") };
            let label = format!("{also} of these tables can deadlock in the same way");
            finding = finding.label_in(wants.place.file, wants.range(), label);
        }
        for doubt in self.doubts(deadlock) {
            finding = finding.assuming(doubt);
        }
        finding
            .assuming(gives_up(wants.placed.patience))
            .assuming(self.assumed.clone())
            .help(self.help(wanted, held, all))
            .emit();
    }

    /// The evidence against a deadlock with the application.
    fn doubts(&self, deadlock: &Deadlock<'_>) -> Vec<Assumption> {
        let Deadlock { wanted, cycle, sequence } = *deadlock;
        let ours = [wanted, cycle.held].map(|at| &self.locks[at].placed.step);
        let mut doubts = Vec::new();
        let is_part =
            |step: &&&Step| matches!(step.lock, Requested::Rows(_)) && self.partly_changed.contains(&step.relation);
        if let Some(step) = ours.iter().find(is_part) {
            doubts.push(Assumption::SameRows { table: self.name(step.relation).into() });
        }
        let is_shown = [cycle.other_held, cycle.other_wanted].iter().any(|at| is_of_code(self, sequence, *at));
        if !is_shown && self.is_close(cycle.held, wanted) {
            doubts.push(Assumption::LocksBetween);
        }
        let Source::Write(table, kind) = sequence.source else { return doubts };
        let name = SmolStr::new(self.name(table));
        if kind == DataChangeKind::Delete {
            doubts.push(Assumption::DeletesRows { table: name });
        } else if self.setting.catalog.relation(table).birth.lookup_rows().is_some() {
            doubts.push(Assumption::WritesListedTable { table: name });
        }
        doubts
    }

    /// Whether the migration requests the second lock right after it has got the first: it neither reads or writes many
    /// rows in between, nor waits for another table.
    fn is_close(&self, held: usize, wanted: usize) -> bool {
        let ends = [held, wanted].map(|at| self.root(self.locks[at].placed.step.relation));
        let is_other = |taken: &Taken| taken.mode().is_some() && !ends.contains(&self.root(taken.placed.step.relation));
        let works = self.works || self.locks.iter().any(|taken| taken.mode().is_none());
        self.is_alone || !works && !self.locks[held + 1..wanted].iter().any(is_other)
    }

    /// The way out: the lock first, unless that deadlocks with other statements of the application.
    fn help(&self, wanted: usize, held: &Taken, all: &[Sequence]) -> String {
        let wants = &self.locks[wanted];
        let mut steps: Vec<Step> = self.locks.iter().map(|taken| taken.placed.step.clone()).collect();
        steps.insert(0, wants.placed.step.clone());
        let is_safe = || {
            let used = all.iter().filter(|sequence| self.is_used(sequence));
            let mut deadlocks = used.flat_map(|sequence| {
                let steps = &steps;
                (1..steps.len()).filter_map(move |wanted| cycle::at(steps, wanted, &sequence.steps))
            });
            deadlocks.next().is_none()
        };
        let retry = "Set lock_timeout in any case, and run the migration again if the timeout expires";
        let split = match () {
            () if held.place == wants.place => "",
            () if held.placed.step.relation == wants.placed.step.relation => {
                "use a separate transaction for each statement"
            }
            () => "use a separate transaction for each table",
        };
        let wanted = wants.placed.step.relation;
        match wants.mode().filter(|_| is_safe()) {
            // LOCK TABLE of a view also locks the tables that it reads.
            Some(_) if self.setting.catalog.relation(wanted).kind == RelationKind::View => {
                let split = if split.is_empty() { "run this while the application does not write" } else { split };
                format!("{split}. {retry}")
            }
            Some(mode) => {
                let or = if split.is_empty() { String::new() } else { format!(", or {split}") };
                let table = self.sql_name(wanted);
                format!("begin the transaction with LOCK TABLE {table} IN {} MODE{or}. {retry}", mode.sql())
            }
            None if split.is_empty() => format!("run this while the application does not write. {retry}"),
            None => format!(
                "{split}. LOCK TABLE at the beginning does not help, because the application's statements do not all \
                 lock these tables in the same order. {retry}"
            ),
        }
    }

    /// The statement of the application, in words.
    fn subject(&self, source: &Source) -> String {
        match source {
            Source::Query { place, is_alone: true } => format!("the query at `{place}`"),
            Source::Query { place, is_alone: false } => format!("the transaction at `{place}`"),
            Source::Function(routine) => routine.name(),
            Source::View(view) => format!("a query of the view `{}`", self.name(*view)),
            Source::Write(table, kind) => {
                let words = match kind {
                    DataChangeKind::Insert => "an INSERT into",
                    DataChangeKind::Update => "an UPDATE of",
                    DataChangeKind::Delete => "a DELETE from",
                };
                format!("{words} `{}`", self.name(*table))
            }
        }
    }

    /// ``ACCESS EXCLUSIVE on `orders` ``.
    fn lock(&self, step: &Step) -> String {
        match step.lock {
            Requested::Relation(_) => format!("{} on `{}`", step.lock, self.name(step.relation)),
            Requested::Rows(_) => format!("{} in `{}`", step.lock, self.name(step.relation)),
        }
    }

    /// How the application locks first and then, and why if its statement does not show that.
    fn order(&self, sequence: &Sequence, cycle: &Cycle) -> String {
        let (first, second) = (&sequence.steps[cycle.other_held], &sequence.steps[cycle.other_wanted]);
        let why = |at: usize| match why(&sequence.source, &sequence.origins[at]) {
            "" if matches!(sequence.source, Source::Write(..)) && is_of_code(self, sequence, at) => " in a trigger",
            why => why,
        };
        let (why_first, why_second) = (why(cycle.other_held), why(cycle.other_wanted));
        let name = |step: &Step| self.name(step.relation);
        if first.relation == second.relation {
            return format!("takes {} on `{}` and then {}", first.lock, name(first), second.lock);
        }
        let rows = if matches!(second.lock, Requested::Rows(_)) { "rows of " } else { "" };
        if why_first == why_second && !why_first.is_empty() {
            format!("locks `{}` first and then {rows}`{}`, each{why_first}", name(first), name(second))
        } else {
            format!("locks `{}`{why_first} first and then {rows}`{}`{why_second}", name(first), name(second))
        }
    }

    fn name(&self, relation: Oid) -> &str {
        &self.setting.catalog.relation(relation).name
    }

    fn sql_name(&self, relation: Oid) -> String {
        let relation = self.setting.catalog.relation(relation);
        qualified(&relation.schema, &relation.name)
    }
}

/// Whether code of the application or of a trigger takes a lock, and not only a foreign key, a view or the changed table.
fn is_of_code(ending: &Ending<'_>, sequence: &Sequence, at: usize) -> bool {
    match sequence.source {
        Source::Query { .. } | Source::Function(_) => true,
        Source::View(_) => false,
        Source::Write(table, _) => {
            let is_own = ending.root(sequence.steps[at].relation) == ending.root(table);
            !is_own && sequence.origins[at].cause != LockCause::ForeignKey
        }
    }
}

/// Why the application takes a lock, if its statement does not show that.
fn why(source: &Source, origin: &Origin) -> &'static str {
    match (origin.cause, source) {
        (LockCause::ForeignKey, _) => " for a foreign key",
        (LockCause::Function, Source::Write(..)) => " in a trigger",
        (LockCause::Function, _) => " in a function or trigger",
        _ => "",
    }
}

/// The statement or transaction of the application, after it was named.
fn noun(source: &Source) -> &'static str {
    match source {
        Source::Query { is_alone: false, .. } => "other transaction",
        Source::Query { .. } | Source::View(_) => "query",
        Source::Function(_) => "function",
        Source::Write(_, DataChangeKind::Insert) => "INSERT",
        Source::Write(_, DataChangeKind::Update) => "UPDATE",
        Source::Write(_, DataChangeKind::Delete) => "DELETE",
    }
}

/// The relations on which the transaction takes more than one lock.
fn upgraded(steps: &[Step]) -> FxHashSet<Oid> {
    let mut count: FxHashMap<Oid, usize> = FxHashMap::default();
    let locks = steps.iter().filter(|step| matches!(step.lock, Requested::Relation(_)));
    locks.for_each(|step| *count.entry(step.relation).or_default() += 1);
    count.into_iter().filter(|(_, count)| *count > 1).map(|(relation, _)| relation).collect()
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
        let finding = reporter.report(lock.range, message).relation(&lock.relation).assuming(gives_up(lock.patience));
        finding.label_in(change.place.file, change.place.range, "rows are changed here").help(help).emit();
    }
}

/// Whether it makes writers wait, and has to wait for them.
fn is_strong(lock: &Lock) -> bool {
    let waits = lock.cause != LockCause::WithoutWaiting && !lock.is_nowait();
    lock.mode.blocks_writes() && waits && lock.relation.kind.is_table()
}
