//! Runs the commands of one migration and measures each.

use crate::address::Address;
use crate::connection::Connection;
use crate::deadlock::Activity;
use crate::locks::{LockBook, Span, Surroundings};
use crate::observation::{
    Blocked, Failure, Growth, Held, LockTrace, MigrationTrace, Relation, StatementKind, StatementTrace,
    Subtransactions, TransactionTrace,
};
use crate::poll::{self, Watch, watch};
use crate::probe::{self, Snapshot, Statistics};
use crate::progress::Progress;
use crate::provider::{ServerInfo, ThinClone};
use crate::release::Waiters;
use crate::script::{Script, Step, StepKind};
use crate::secret::masked;
use crate::send::{Sent, send};
use crate::settings::Settings;
use crate::{Error, publisher};
use pgvet_syntax::ast::Ast;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How often the locks of a running statement are examined.
const POLL: Duration = Duration::from_millis(5);
/// The same for a statement whose locks cannot be asked for afterwards.
const POLL_OUTSIDE: Duration = Duration::from_millis(1);

/// SQLSTATEs with which PostgreSQL refuses to run something in a transaction block: `active_sql_transaction`,
/// `invalid_transaction_termination` (a procedure with COMMIT), `no_active_sql_transaction` (LOCK TABLE, without one).
const NOT_IN_BLOCK: [&str; 2] = ["25001", "2D000"];

/// Called with the number and text of each statement, and its progress.
pub(crate) type Tell<'a> = dyn FnMut(usize, &str, Option<&Progress>) + 'a;

/// The session of the migration in the report of a deadlock.
const MIGRATION: &str = "the migration";

/// A migration that is being measured.
pub(crate) struct Runner<'a> {
    clone: &'a ThinClone,
    server: &'a ServerInfo,
    migrator: Connection,
    observer: Connection,
    major: u8,
    settings: &'a Settings,
    activity: &'a Activity,
    /// Time that the migration has taken so far, without the observer's.
    clock: Duration,
    trace: MigrationTrace,
    book: LockBook,
    block: Option<Block>,
    /// The last look at the relations.
    last: Snapshot,
}

/// An open transaction block.
struct Block {
    number: usize,
    first_xid: i64,
    /// Relations that were there before it, so that others can see them.
    before: BTreeSet<u32>,
    /// Whether it has been probed, so that there are statistics to compare with.
    probed: bool,
}

/// Parallel workers report what they read when they end, and a session must not depend on what it has seen before.
fn reading_fresh_statistics(database: &Address, major: u8) -> Address {
    if major >= 15 { database.with_setting("stats_fetch_consistency=none") } else { database.clone() }
}

/// Why a migration was not run to its end by the tool itself.
enum Stop {
    /// PostgreSQL refused a statement; that is in the trace.
    Refused,
    Broken(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

impl<'a> Runner<'a> {
    pub(crate) async fn new(
        clone: &'a ThinClone,
        server: &'a ServerInfo,
        migration: usize,
        (settings, activity): (&'a Settings, &'a Activity),
        kept: Option<Connection>,
    ) -> Result<Self, Error> {
        let major = server.major;
        let database = reading_fresh_statistics(&clone.database, major);
        let migrator = match kept {
            Some(kept) => kept,
            None => Connection::open_ending_with_client(&database, "migration", major).await?,
        };
        let observer = Connection::open(&clone.observer, "observer").await?;
        Ok(Self {
            clone,
            server,
            migrator,
            observer,
            major,
            settings,
            activity,
            clock: Duration::ZERO,
            trace: MigrationTrace { migration, ..MigrationTrace::default() },
            book: LockBook::default(),
            block: None,
            last: Snapshot::default(),
        })
    }

    /// Runs all commands, up to the first that is refused. Returns the session, too.
    pub(crate) async fn run(
        mut self,
        script: &Script<'_>,
        tell: &mut Tell<'_>,
    ) -> Result<(MigrationTrace, Connection), Error> {
        self.trace.notes =
            script.skipped.iter().map(|command| format!("`{command}` is a command of psql and was not run")).collect();
        self.trace.rows = probe::rows(&self.migrator).await?;
        let sizes = self.sizes().await?;
        self.trace.bytes = probe::bytes(&sizes);
        let (wal, xid) = probe::cluster(&self.observer).await?;
        let temp = self.temp_bytes().await?;
        self.last = Snapshot::take(&self.migrator, self.statistics()).await?;
        for (at, step) in script.steps.iter().enumerate() {
            tell(at, &step.sql, None);
            let alone = step.kind == StepKind::Alone;
            match self.step(step, &mut |progress| tell(at, &step.sql, Some(progress))).await {
                Ok(()) => {}
                Err(Stop::Refused) if self.settings.keep_going && alone => {}
                Err(Stop::Refused) => break,
                Err(Stop::Broken(error)) => return Err(error),
            }
        }
        if self.block.is_some() {
            self.end_block("ROLLBACK").await.or_else(|stop| match stop {
                Stop::Refused => Ok(()),
                Stop::Broken(error) => Err(error),
            })?;
        }
        self.trace.duration = self.clock;
        let (wal_after, xid_after) = probe::cluster(&self.observer).await?;
        (self.trace.wal_bytes, self.trace.xids) = (wal_after - wal, xid_after - xid);
        if !self.settings.effects_only && (self.major >= 15 || self.may_have_left_dead_rows()) {
            probe::flush(&self.migrator, self.major).await?;
        }
        self.trace.temp_bytes = self.temp_bytes().await? - temp;
        self.trace.tables = probe::growth(&sizes, self.sizes().await?);
        for statement in &self.trace.statements {
            for (catalog, counts) in &statement.catalog_rows {
                self.trace.catalog_rows.entry(catalog.clone()).or_default().add(*counts);
            }
        }
        Ok((self.trace, self.migrator))
    }

    async fn sizes(&self) -> Result<BTreeMap<u32, Growth>, Error> {
        if self.settings.effects_only { Ok(BTreeMap::new()) } else { probe::sizes(&self.migrator).await }
    }

    /// Before 15 a flush takes its time, so it is skipped if it would change nothing.
    fn may_have_left_dead_rows(&self) -> bool {
        let left = |statement: &StatementTrace| !statement.changes.is_empty() || statement.failure.is_some();
        self.trace.statements.iter().any(left)
    }

    async fn temp_bytes(&self) -> Result<i64, Error> {
        let sql = "SELECT temp_bytes FROM pg_catalog.pg_stat_database WHERE datname = pg_catalog.current_database()";
        self.migrator.value(sql).await
    }

    async fn step(&mut self, step: &Step<'_>, tell: &mut dyn FnMut(&Progress)) -> Result<(), Stop> {
        if let Some(refusal) = publisher::refusal(step, &self.migrator, self.server).await? {
            self.trace.notes.push(refusal);
            return Ok(());
        }
        match step.kind {
            StepKind::Begin if self.block.is_none() => self.begin(&step.sql).await,
            StepKind::End { chain } if self.block.is_some() => {
                self.end_block(&step.sql).await?;
                if chain {
                    self.open_block().await?;
                }
                Ok(())
            }
            StepKind::Begin | StepKind::End { .. } | StepKind::Control => self.control(step).await,
            StepKind::Inside => self.inside(step, tell).await,
            StepKind::Alone => self.alone(step, tell).await,
        }
    }

    async fn begin(&mut self, sql: &str) -> Result<(), Stop> {
        self.open_block().await?;
        self.migrator.run(sql).await?;
        Ok(())
    }

    async fn open_block(&mut self) -> Result<(), Error> {
        let (_, first_xid) = probe::cluster(&self.observer).await?;
        let before = self.last.relations.keys().copied().collect();
        self.activity.begin(self.migrator.pid, MIGRATION);
        self.trace.transactions.push(TransactionTrace::default());
        self.block = Some(Block { number: self.trace.transactions.len() - 1, first_xid, before, probed: false });
        Ok(())
    }

    /// COMMIT or ROLLBACK of the open block.
    async fn end_block(&mut self, sql: &str) -> Result<(), Stop> {
        let Some(block) = self.block.take() else { return Ok(()) };
        let preparing = Instant::now();
        let waiters = self.waiters(&block).await?;
        self.book.probes += preparing.elapsed();
        let sent = send(&self.migrator, sql, None, self.settings.statement_timeout).await;
        self.book.released = waiters.finish().await;
        self.clock += sent.span.duration();
        self.book.after_transaction(sent.span, &mut self.trace.statements);
        if let Some(alone) = self.trace.statements.last_mut().filter(|statement| !statement.in_block) {
            alone.duration += sent.span.duration();
        }
        self.finish_transaction(block.number, block.first_xid).await?;
        self.last = Snapshot::take(&self.migrator, self.statistics()).await?;
        match sent.result {
            Ok(_) => Ok(()),
            Err(error) => {
                // A deferred constraint: the statement to blame is the last one.
                let failure = failure(&error, None, sent.timed_out);
                if let Some(last) = self.trace.statements.last_mut() {
                    last.failure = Some(failure);
                }
                Err(Stop::Refused)
            }
        }
    }

    /// Sessions that wait for what the block rewrote, whose locks go long before COMMIT answers.
    async fn waiters(&self, block: &Block) -> Result<Waiters, Error> {
        let trace = &self.trace.transactions[block.number];
        let rewritten: BTreeSet<u32> = trace
            .statements
            .iter()
            .flat_map(|at| self.trace.statements[*at].rewrites.iter().map(|relation| relation.oid))
            .collect();
        let tables = self.book.blocking().filter(|(oid, _)| block.before.contains(oid) && rewritten.contains(oid));
        let tables: Vec<_> = tables.filter_map(|(oid, mode)| Some((self.last.relation(oid)?.clone(), mode))).collect();
        Waiters::start(self.clone, &self.observer, tables).await
    }

    async fn finish_transaction(&mut self, number: usize, first_xid: i64) -> Result<(), Error> {
        let (_, xid) = probe::cluster(&self.observer).await?;
        let transaction = &mut self.trace.transactions[number];
        transaction.xids = xid - first_xid;
        transaction.blocked = blocked(&transaction.statements, &self.trace.statements);
        if self.major < 16 {
            let max = (transaction.xids - 1).max(0);
            let known = &mut self.trace.subtransactions;
            known.max = known.max.max(max);
            // Aborted ones count here and do not fill the cache, so more than 64 may still fit.
            known.overflowed = if known.max <= 64 { Some(false) } else { None };
        }
        Ok(())
    }

    /// Runs SET, SAVEPOINT and so on without measuring them, so that no query of pgvet comes before SET TRANSACTION.
    async fn control(&mut self, step: &Step<'_>) -> Result<(), Stop> {
        let sent = send(&self.migrator, &step.sql, None, self.settings.statement_timeout).await;
        let refused = sent.result.is_err();
        self.record(step, &sent);
        if refused { Err(Stop::Refused) } else { self.after_control(step, sent.span).await }
    }

    /// ROLLBACK TO gives locks back, and takes changes of the catalog back.
    async fn after_control(&mut self, step: &Step<'_>, span: Span) -> Result<(), Stop> {
        use pgvet_syntax::ast::Transaction;
        if matches!(step.ast(), Some(Ast::Transaction(Transaction::RollbackTo(_)))) {
            self.look(span, &[], None).await?;
            self.book.probes += span.done.elapsed();
        }
        Ok(())
    }

    /// Appends a statement to the trace.
    fn record(&mut self, step: &Step<'_>, sent: &Sent) -> usize {
        let range = step.statement.map(|statement| statement.range).unwrap_or_default();
        if let Err(error) = &sent.result {
            self.activity.note(self.migrator.pid, error);
        }
        self.trace.statements.push(StatementTrace {
            range,
            kind: step.ast().map(StatementKind::from).unwrap_or_default(),
            sql: masked(&step.sql),
            started: self.clock,
            duration: sent.span.duration(),
            in_block: self.block.is_some(),
            failure: sent.result.as_ref().err().map(|error| failure(error, Some(step), sent.timed_out)),
            ..StatementTrace::default()
        });
        self.clock += sent.span.duration();
        let at = self.trace.statements.len() - 1;
        if let Some(block) = &self.block {
            self.trace.transactions[block.number].statements.push(at);
        }
        at
    }

    async fn inside(&mut self, step: &Step<'_>, tell: &mut dyn FnMut(&Progress)) -> Result<(), Stop> {
        let looking = Instant::now();
        if self.block.as_ref().is_some_and(|block| !block.probed) {
            self.last = Snapshot::take(&self.migrator, self.statistics()).await?;
            self.block.iter_mut().for_each(|block| block.probed = true);
        }
        let (wal, _) = probe::cluster(&self.observer).await?;
        self.book.probes += looking.elapsed();
        self.activity.run(self.migrator.pid, None, &step.sql);
        let running = send(&self.migrator, &step.sql, step.copy_data, self.settings.statement_timeout);
        let (sent, samples) = watch(self.watch(POLL, tell), running).await;
        let at = self.record(step, &sent);
        self.trace.statements[at].wal_bytes = probe::cluster(&self.observer).await?.0 - wal;
        if sent.result.is_err() {
            return Err(Stop::Refused);
        }
        self.count_subtransactions().await?;
        self.look(sent.span, &samples, step.ast()).await?;
        self.book.probes += sent.span.done.elapsed();
        Ok(())
    }

    /// Chooses the statistics to read. Reads by parallel workers cannot be distinguished from those of a workload's
    /// clients.
    fn statistics(&self) -> Statistics {
        let alone = self.settings.workload.is_none();
        if alone { Statistics::Transaction } else { Statistics::TransactionWithoutWorkers }
    }

    fn watch<'w>(&'w self, interval: Duration, tell: &'w mut dyn FnMut(&Progress)) -> Watch<'w> {
        let progress = if self.settings.progress { Some(tell) } else { None };
        Watch { observer: &self.observer, pid: self.migrator.pid, interval, major: self.major, progress }
    }

    /// Looks at locks, relations and statistics after a statement in a block.
    async fn look(&mut self, span: Span, samples: &[poll::Sample], ast: Option<&Ast>) -> Result<(), Error> {
        let locks = probe::own_locks(&self.migrator).await?;
        let after = Snapshot::take(&self.migrator, self.statistics()).await?;
        let nothing = BTreeSet::new();
        let around = Surroundings {
            before: &self.last,
            after: &after,
            before_transaction: self.block.as_ref().map_or(&nothing, |block| &block.before),
        };
        self.book.after_statement(&locks, span, samples, &around, &mut self.trace.statements);
        if let Some(trace) = self.trace.statements.last_mut().filter(|_| ast.is_some()) {
            probe::differences(&self.last, &after, ast, trace);
        }
        self.last = after;
        Ok(())
    }

    async fn count_subtransactions(&mut self) -> Result<(), Error> {
        if self.major < 16 {
            return Ok(());
        }
        if let Some((count, overflowed)) = probe::subtransactions(&self.observer, self.migrator.pid).await? {
            let known = &mut self.trace.subtransactions;
            let overflowed = overflowed || known.overflowed == Some(true);
            *known = Subtransactions { max: known.max.max(count), overflowed: Some(overflowed) };
        }
        Ok(())
    }

    /// A statement in a transaction of its own: in a block of ours where PostgreSQL allows that, because then its
    /// locks can be asked for before they are released.
    async fn alone(&mut self, step: &Step<'_>, tell: &mut dyn FnMut(&Progress)) -> Result<(), Stop> {
        if matches!(step.ast(), Some(Ast::LockTable(_) | Ast::DeclareCursor(_))) {
            return self.bare(step, tell).await;
        }
        self.begin("BEGIN").await?;
        let result = self.inside(step, tell).await;
        let at = self.trace.statements.len() - 1;
        self.trace.statements[at].in_block = false;
        match result {
            Ok(()) => self.end_alone("COMMIT", at).await,
            Err(Stop::Refused) if self.must_run_bare(at) => {
                self.clock -= self.trace.statements.pop().map_or(Duration::ZERO, |statement| statement.duration);
                self.trace.transactions.pop();
                self.block = None;
                self.book = LockBook::default();
                self.migrator.run("ROLLBACK").await?;
                self.bare(step, tell).await
            }
            Err(stop) => {
                // Its own transaction is gone; the measures up to here stay.
                self.end_alone("ROLLBACK", at).await?;
                Err(stop)
            }
        }
    }

    /// Ends the block around a single statement, which owns all that the block used.
    async fn end_alone(&mut self, sql: &str, at: usize) -> Result<(), Stop> {
        let result = self.end_block(sql).await;
        self.trace.statements[at].xids = self.trace.transactions.last().map(|transaction| transaction.xids);
        result
    }

    fn must_run_bare(&self, at: usize) -> bool {
        let failure = self.trace.statements[at].failure.as_ref();
        failure.is_some_and(|failure| NOT_IN_BLOCK.contains(&failure.sqlstate.as_str()))
    }

    /// A statement that refuses to run in a block: its locks are sampled from another database.
    async fn bare(&mut self, step: &Step<'_>, tell: &mut dyn FnMut(&Progress)) -> Result<(), Stop> {
        probe::flush(&self.migrator, self.major).await?;
        let before = Snapshot::take(&self.migrator, Statistics::Cumulative).await?;
        let (wal, xid) = probe::cluster(&self.observer).await?;
        self.activity.begin(self.migrator.pid, MIGRATION);
        self.activity.run(self.migrator.pid, None, &step.sql);
        let running = send(&self.migrator, &step.sql, step.copy_data, self.settings.statement_timeout);
        let (sent, samples) = watch(self.watch(POLL_OUTSIDE, tell), running).await;
        let at = self.record(step, &sent);
        let (wal_after, xid_after) = probe::cluster(&self.observer).await?;
        probe::flush(&self.migrator, self.major).await?;
        let after = Snapshot::take(&self.migrator, Statistics::Cumulative).await?;
        let trace = &mut self.trace.statements[at];
        trace.sampled = true;
        trace.uncounted = self.settings.workload.is_some();
        trace.wal_bytes = wal_after - wal;
        trace.xids = Some(xid_after - xid);
        trace.locks = sampled_locks(&samples, sent.span, &before, &after, trace.started);
        probe::differences(&before, &after, step.ast(), trace);
        self.trace.transactions.push(TransactionTrace {
            statements: vec![at],
            xids: xid_after - xid,
            blocked: blocked(&[at], &self.trace.statements),
        });
        self.last = Snapshot::take(&self.migrator, self.statistics()).await?;
        if sent.result.is_err() { Err(Stop::Refused) } else { Ok(()) }
    }
}

fn sampled_locks(
    samples: &[poll::Sample],
    span: Span,
    before: &Snapshot,
    after: &Snapshot,
    started: Duration,
) -> Vec<LockTrace> {
    let held = poll::held(samples, span.sent, span.done);
    let lock = |((oid, mode), (first, held)): ((u32, _), (Instant, Held))| {
        let existed = before.relation(oid);
        Some(LockTrace {
            relation: existed.or_else(|| after.relation(oid))?.clone(),
            mode,
            existed: existed.is_some(),
            exposed: existed.is_some(),
            acquired: started + first.saturating_duration_since(span.sent),
            held,
        })
    };
    held.into_iter().filter_map(lock).collect()
}

/// The longest that each mode was held on each relation that others can see, where somebody would have to wait.
pub(crate) fn blocked(statements: &[usize], traces: &[StatementTrace]) -> Vec<Blocked> {
    let locks = statements.iter().flat_map(|at| &traces[*at].locks).filter(|lock| lock.exposed);
    let mut longest: BTreeMap<(&Relation, _), Held> = BTreeMap::new();
    for lock in locks {
        let held = longest.entry((&lock.relation, lock.mode)).or_default();
        if lock.held.best >= held.best {
            *held = lock.held;
        }
    }
    let blocked =
        longest.into_iter().map(|((relation, mode), held)| Blocked { relation: relation.clone(), mode, held });
    blocked.collect()
}

fn failure(error: &tokio_postgres::Error, step: Option<&Step<'_>>, timed_out: bool) -> Failure {
    use tokio_postgres::error::ErrorPosition;
    let Some(said) = error.as_db_error() else {
        let message = Error::from_postgres(error).message;
        let sqlstate = "08006".to_owned();
        return Failure { sqlstate, message, detail: None, hint: None, position: None, timed_out };
    };
    let position = match (said.position(), step) {
        (Some(ErrorPosition::Original(at)), Some(step)) if !step.filled => step.statement.map(|statement| {
            let characters = step.sql.char_indices().map(|(offset, _)| offset);
            statement.range.start + characters.take(*at as usize).last().unwrap_or(0) as u32
        }),
        _ => None,
    };
    Failure {
        sqlstate: said.code().code().to_owned(),
        message: said.message().to_owned(),
        detail: said.detail().map(str::to_owned),
        hint: said.hint().map(str::to_owned),
        position,
        timed_out,
    }
}
