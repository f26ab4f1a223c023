//! Which statements belong to which migration.

use crate::recording::{Parameter, Recorded, Recording, Refused};
use crate::settings::SessionSettings;
use crate::shape::shape;
use crate::statement::{Role, Row, role};
use crate::tools::{self, Naming, Tables};
use pgvet_syntax::ast::{Ast, Transaction};
use pgvet_syntax::statement::{Statement, parse};
use smol_str::SmolStr;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::time::Duration;

/// A recording, cut into migrations.
#[derive(Debug, Default)]
pub struct Capture {
    /// The tool whose table names the migrations; `None` if no row entered a table that is known.
    pub tool: Option<SmolStr>,
    /// In the order in which they ran.
    pub migrations: Vec<Migration>,
    /// Statements after the last migration.
    pub after: Vec<Work>,
    pub counts: Counts,
}

impl Capture {
    /// The capture without a migration that did not come to its row.
    #[must_use]
    pub fn complete(&self) -> Self {
        let migrations = self.migrations.iter().filter(|migration| migration.is_complete()).cloned().collect();
        Self { tool: self.tool.clone(), migrations, after: Vec::new(), counts: self.counts }
    }
}

/// A migration and what it sent.
#[derive(Debug, Clone, Default)]
pub struct Migration {
    /// As the tool's table has it; empty for one that did not come to its row.
    pub name: String,
    pub naming: Option<Naming>,
    pub work: Vec<Work>,
    pub transaction: TransactionKind,
}

impl Migration {
    /// Whether its row entered the table of the tool.
    pub fn is_complete(&self) -> bool {
        self.naming.is_some()
    }
}

/// The transactions that a migration ran in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransactionKind {
    /// None, or several, or one for a part of it.
    #[default]
    Mixed,
    /// One for all of it.
    One,
    /// One for all of it and of other migrations.
    Shared,
}

/// A statement of a migration.
#[derive(Debug, Clone)]
pub struct Work {
    pub sql: String,
    pub parameters: Vec<Parameter>,
    pub session: u32,
    /// `None` if it ran on its own.
    pub transaction: Option<TransactionId>,
    /// Whether its transaction was rolled back.
    pub is_rolled_back: bool,
    /// Whether a savepoint before it was rolled back to.
    pub is_undone: bool,
    pub error: Option<Refused>,
    /// The settings of the session when it ran.
    pub settings: Rc<SessionSettings>,
    /// How often it was sent, with the same or other values.
    pub times: usize,
    /// The length of a text that was too long to be kept; 0 for one that is whole.
    pub cut_from: u64,
    /// All of them together.
    pub took: Duration,
    pub copied: u64,
}

/// A transaction of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TransactionId {
    /// By session and number.
    Explicit(u32, u32),
    /// Several statements in one text, by its place in the recording.
    Text(usize),
}

/// What was seen and is part of no migration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Texts that were sent.
    pub sent: usize,
    /// Statements about the tool's own tables.
    pub bookkeeping: usize,
    /// Queries to the system catalogs, and settings of the client.
    pub questions: usize,
    /// Settings of sessions, which are written where a migration runs under them.
    pub settings: usize,
    /// BEGIN, COMMIT, savepoints and so on.
    pub transactions: usize,
    /// Statements that differ from another one of the same migration in values alone.
    pub repeated: usize,
    /// Statements that the server refused although the migration went on.
    pub tolerated: usize,
    /// Statements that a rollback to a savepoint took back.
    pub undone: usize,
    /// Statements of transactions that were rolled back although the migration went on.
    pub attempts: usize,
    /// Requests that the server did not run because one before them failed.
    pub skipped: usize,
}

/// Cuts a recording. `tables` are those that rows of migrations are looked for in.
pub fn cut(recording: &Recording, tables: &Tables) -> Capture {
    let parsed: Vec<Vec<Statement>> = recording.statements.iter().map(|sent| parse(&sent.sql)).collect();
    let tool = tool(recording, &parsed, tables);
    let tables = match &tool {
        Some(tool) => tables.clone().of_tool(tool),
        None => tables.clone(),
    };
    let mut cutter = Cutter::new(recording, &tables);
    for (at, (sent, statements)) in recording.statements.iter().zip(&parsed).enumerate() {
        cutter.sent(at, sent, statements);
    }
    cutter.finish(tool)
}

/// The tool most of whose rows were written.
fn tool(recording: &Recording, parsed: &[Vec<Statement>], tables: &Tables) -> Option<SmolStr> {
    let mut counts: BTreeMap<SmolStr, usize> = BTreeMap::new();
    for (sent, statements) in recording.statements.iter().zip(parsed).filter(|(sent, _)| sent.error().is_none()) {
        for ast in statements.iter().filter_map(Statement::ast) {
            if let Role::Rows(rows) = role(ast, "", &sent.parameters, tables) {
                rows.into_iter().for_each(|row| *counts.entry(row.tool).or_default() += 1);
            }
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(tool, _)| tool)
}

/// A savepoint: its name, and the place in the recording from which on it counts.
type Savepoint = (SmolStr, usize);

/// The state of a session in the recording.
#[derive(Debug, Default)]
struct SessionState {
    settings: Rc<SessionSettings>,
    savepoints: Vec<Savepoint>,
}

struct Cutter<'a> {
    tables: &'a Tables,
    sessions: HashMap<u32, SessionState>,
    /// All work with its place in the recording.
    work: Vec<(usize, Work)>,
    /// Indexes of the work that belongs to no migration yet.
    pending: Vec<usize>,
    /// Indexes of work by migration.
    migrations: Vec<(Row, Vec<usize>)>,
    /// Transactions that held the row of a migration, by its index.
    rows: Vec<(TransactionId, usize)>,
    /// Transactions that BEGIN opened and no COMMIT ended, and texts that failed.
    rolled_back: BTreeSet<TransactionId>,
    counts: Counts,
}

impl<'a> Cutter<'a> {
    fn new(recording: &Recording, tables: &'a Tables) -> Self {
        let state = |session: &crate::recording::Session| {
            let settings = Rc::new(SessionSettings::at_start(&session.parameters));
            (session.number, SessionState { settings, savepoints: Vec::new() })
        };
        Self {
            tables,
            sessions: recording.sessions.iter().map(state).collect(),
            work: Vec::new(),
            pending: Vec::new(),
            migrations: Vec::new(),
            rows: Vec::new(),
            rolled_back: BTreeSet::new(),
            counts: Counts { sent: recording.statements.len(), ..Counts::default() },
        }
    }

    fn sent(&mut self, at: usize, sent: &Recorded, statements: &[Statement]) {
        if !sent.was_run() {
            self.counts.skipped += 1;
            return;
        }
        if statements.is_empty() {
            // A comment alone, with which drivers try a connection.
            self.counts.questions += 1;
        }
        if sent.cut_from > 0 {
            let transaction = sent.transaction.map(|number| TransactionId::Explicit(sent.session, number));
            let seen = Seen { at, sent, text: "", error: sent.error(), transaction, is_only: true };
            return self.statement(seen, Role::Work);
        }
        let controls = statements.iter().any(|one| matches!(one.ast(), Some(Ast::Transaction(_))));
        let transaction = match sent.transaction {
            Some(number) => Some(TransactionId::Explicit(sent.session, number)),
            None if statements.len() > 1 && !controls => Some(TransactionId::Text(at)),
            None => None,
        };
        if sent.error().is_some() && transaction.is_some_and(|id| matches!(id, TransactionId::Text(_))) {
            self.rolled_back.extend(transaction);
        }
        for (number, statement) in statements.iter().enumerate() {
            let text = &sent.sql[statement.range.as_usize()];
            let error = sent.error().filter(|_| number as u64 == sent.completed);
            if sent.error().is_some() && number as u64 > sent.completed {
                break;
            }
            let role = match statement.ast() {
                Some(ast) => role(ast, text, &sent.parameters, self.tables),
                None => Role::Work,
            };
            self.statement(Seen { at, sent, text, error, transaction, is_only: statements.len() == 1 }, role);
        }
    }

    fn statement(&mut self, seen: Seen<'_>, role: Role) {
        let state = self.sessions.entry(seen.sent.session).or_default();
        match role {
            Role::Rows(rows) if seen.error.is_none() => {
                self.counts.bookkeeping += 1;
                rows.into_iter().for_each(|row| self.row(row, seen.transaction));
            }
            Role::Rows(_) | Role::Bookkeeping => self.counts.bookkeeping += 1,
            Role::Question | Role::ClientSetting => self.counts.questions += 1,
            Role::Setting { .. } | Role::ResetAll if seen.error.is_some() => self.counts.questions += 1,
            Role::Setting { name, sql } => {
                self.counts.settings += 1;
                Rc::make_mut(&mut state.settings).set(name, sql);
            }
            Role::ResetAll => {
                self.counts.settings += 1;
                Rc::make_mut(&mut state.settings).reset();
            }
            Role::Transaction(control) => {
                self.counts.transactions += 1;
                self.control(&control, &seen);
            }
            Role::Work => {
                let work = Work {
                    sql: seen.text.to_owned(),
                    parameters: seen.sent.parameters.clone(),
                    session: seen.sent.session,
                    transaction: seen.transaction,
                    is_rolled_back: false,
                    is_undone: false,
                    error: seen.error.cloned(),
                    settings: Rc::clone(&state.settings),
                    times: 1,
                    cut_from: seen.sent.cut_from,
                    took: if seen.is_only { seen.sent.took } else { Duration::ZERO },
                    copied: seen.sent.copied,
                };
                self.pending.push(self.work.len());
                self.work.push((seen.at, work));
            }
        }
    }

    fn control(&mut self, control: &Transaction, seen: &Seen<'_>) {
        let Some(state) = self.sessions.get_mut(&seen.sent.session) else { return };
        match control {
            Transaction::Savepoint(name) => state.savepoints.push((name.text.clone(), seen.at)),
            Transaction::Release(name) => {
                if let Some(at) = state.savepoints.iter().rposition(|(known, _)| *known == name.text) {
                    state.savepoints.truncate(at);
                }
            }
            Transaction::RollbackTo(name) => {
                let Some(at) = state.savepoints.iter().rposition(|(known, _)| *known == name.text) else { return };
                state.savepoints.truncate(at + 1);
                let since = state.savepoints[at].1;
                let own = self.work.iter_mut().filter(|(at, work)| *at > since && work.session == seen.sent.session);
                own.for_each(|(_, work)| work.is_undone = true);
            }
            Transaction::Begin => {
                state.savepoints.clear();
                self.rolled_back.extend(seen.transaction);
            }
            Transaction::Commit { .. } => {
                state.savepoints.clear();
                if let Some(id) = seen.transaction.filter(|_| seen.error.is_none()) {
                    self.rolled_back.remove(&id);
                }
            }
            Transaction::Rollback { .. } => state.savepoints.clear(),
            Transaction::Prepare | Transaction::CommitPrepared | Transaction::RollbackPrepared => {}
        }
    }

    /// A row has entered the table.
    fn row(&mut self, row: Row, transaction: Option<TransactionId>) {
        let pending = std::mem::take(&mut self.pending);
        let at = match row.order {
            tools::Row::After => {
                let at = self.migration(row);
                self.migrations[at].1.extend(pending);
                at
            }
            tools::Row::Before => {
                match self.migrations.last_mut() {
                    Some((_, last)) => last.extend(pending),
                    // What ran before the first migration is the tool's own preparation.
                    None => self.pending = pending,
                }
                self.migration(row)
            }
        };
        self.rows.extend(transaction.map(|id| (id, at)));
    }

    /// The migration of a row: some tools write it before and after.
    fn migration(&mut self, row: Row) -> usize {
        let known = self.migrations.iter().position(|(known, _)| known.name == row.name);
        known.unwrap_or_else(|| {
            self.migrations.push((row, Vec::new()));
            self.migrations.len() - 1
        })
    }

    fn finish(mut self, tool: Option<SmolStr>) -> Capture {
        for (_, work) in &mut self.work {
            work.is_rolled_back = work.transaction.is_some_and(|id| self.rolled_back.contains(&id));
        }
        let pending = std::mem::take(&mut self.pending);
        let is_open = self.migrations.last().is_some_and(|(row, _)| row.order == tools::Row::Before);
        let has_failed = |indexes: &[usize]| {
            let mut pending = indexes.iter().map(|at| &self.work[*at].1);
            pending.any(|work| work.error.is_some() && (!work.is_undone || work.is_rolled_back))
        };
        let mut after = Vec::new();
        let mut unfinished = Vec::new();
        if is_open {
            self.migrations.last_mut().expect("it is open").1.extend(pending);
        } else if has_failed(&pending) || self.migrations.is_empty() {
            unfinished = pending;
        } else {
            after = pending;
        }
        let mut owners: HashMap<TransactionId, Vec<usize>> = HashMap::new();
        let owned = |(migration, (_, indexes)): (usize, &(Row, Vec<usize>))| -> Vec<(TransactionId, usize)> {
            indexes.iter().filter_map(|at| Some((self.work[*at].1.transaction?, migration))).collect()
        };
        let by_work: Vec<_> = self.migrations.iter().enumerate().flat_map(owned).collect();
        for (id, migration) in by_work.into_iter().chain(self.rows.iter().copied()) {
            let own = owners.entry(id).or_default();
            if !own.contains(&migration) {
                own.push(migration);
            }
        }
        let mut migrations = Vec::new();
        for (row, indexes) in std::mem::take(&mut self.migrations) {
            let work: Vec<Work> = indexes.iter().map(|at| self.work[*at].1.clone()).collect();
            // A transaction that was rolled back without the row is an attempt of the tool.
            let own = self.rows.iter().filter(|(_, migration)| *migration == migrations.len()).map(|(id, _)| *id);
            let own: Vec<TransactionId> = own.collect();
            let is_attempt = |work: &Work| work.is_rolled_back && work.transaction.is_some_and(|id| !own.contains(&id));
            let (attempts, work): (Vec<Work>, Vec<Work>) = work.into_iter().partition(is_attempt);
            self.counts.attempts += attempts.len();
            let transaction = kind(&work, |id| owners.get(&id).is_some_and(|own| own.len() > 1));
            self.counts.tolerated += work.iter().filter(|work| work.error.is_some()).count();
            self.counts.undone += work.iter().filter(|work| work.is_undone && work.error.is_none()).count();
            let work = self.fold(work);
            migrations.push(Migration { name: row.name, naming: Some(row.naming), work, transaction });
        }
        if !unfinished.is_empty() {
            let work: Vec<Work> = unfinished.iter().map(|at| self.work[*at].1.clone()).collect();
            let transaction = kind(&work, |_| false);
            let work = self.fold(work);
            migrations.push(Migration { name: String::new(), naming: None, work, transaction });
        }
        let after: Vec<Work> = after.iter().map(|at| self.work[*at].1.clone()).collect();
        Capture { tool, migrations, after, counts: self.counts }
    }

    /// Folds statements of one shape into the first of them.
    fn fold(&mut self, work: Vec<Work>) -> Vec<Work> {
        let mut folded: Vec<Work> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for one in work {
            if one.error.is_some() || !is_about_rows(&one.sql) {
                folded.push(one);
                continue;
            }
            match known.entry(shape(&one.sql)) {
                Entry::Occupied(first) => {
                    let first = &mut folded[*first.get()];
                    first.times += 1;
                    first.took += one.took;
                    self.counts.repeated += 1;
                }
                Entry::Vacant(entry) => {
                    entry.insert(folded.len());
                    folded.push(one);
                }
            }
        }
        folded
    }
}

/// A statement where it was seen.
struct Seen<'a> {
    at: usize,
    sent: &'a Recorded,
    text: &'a str,
    error: Option<&'a Refused>,
    transaction: Option<TransactionId>,
    /// Whether it was sent alone, so that the time is its own.
    is_only: bool,
}

fn kind(work: &[Work], is_shared: impl Fn(TransactionId) -> bool) -> TransactionKind {
    let Some(first) = work.first().and_then(|first| first.transaction) else { return TransactionKind::Mixed };
    if work.iter().any(|one| one.transaction != Some(first)) {
        return TransactionKind::Mixed;
    }
    if is_shared(first) { TransactionKind::Shared } else { TransactionKind::One }
}

/// Whether a statement reads or changes rows, as the body of a loop does.
fn is_about_rows(sql: &str) -> bool {
    let first = sql.trim_start().split(|one: char| !one.is_ascii_alphabetic()).next().unwrap_or_default();
    ["select", "insert", "update", "delete", "merge", "with"].iter().any(|word| first.eq_ignore_ascii_case(word))
}
