//! Which statements belong to which migration.

mod fold;
mod session;

use crate::own;
use crate::recording::{Parameter, Recorded, Recording, Refused};
use crate::settings::SessionSettings;
use crate::statement::{Role, Row, role};
use crate::tools::{self, Naming, Tables};
use fold::fold;
use pgvet_syntax::ast::{Ast, Transaction};
use pgvet_syntax::statement::{Statement, parse};
use session::{Savepoint, SessionState};
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

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
    /// The capture of a run that went on from an earlier one: without a row or an error, its statements are those that
    /// the tool sends after the last migration.
    #[must_use]
    pub fn continued(mut self) -> Self {
        let is_after = |migration: &Migration| !migration.work.iter().any(|work| work.error.is_some());
        if self.tool.is_none() && self.migrations.iter().all(is_after) {
            self.after = self.migrations.drain(..).flat_map(|migration| migration.work).chain(self.after).collect();
        }
        self
    }

    /// The capture without a migration that did not come to its row.
    #[must_use]
    pub fn complete(&self) -> Self {
        let migrations = self.migrations.iter().filter(|migration| migration.is_complete).cloned().collect();
        Self { tool: self.tool.clone(), migrations, after: Vec::new(), counts: self.counts }
    }
}

/// A migration and what it sent.
#[derive(Debug, Clone, Default)]
pub struct Migration {
    /// As the tool's table has it; empty for one that did not come to its row.
    pub name: String,
    pub naming: Option<Naming>,
    /// Whether it ran to its end.
    pub is_complete: bool,
    pub work: Vec<Work>,
    pub transaction: TransactionKind,
    /// The statements about the tool's own tables that leave them as they are after the migration; empty if they cannot
    /// be sent again.
    pub own: Vec<String>,
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
    pub copied: u64,
}

/// A transaction of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TransactionId {
    /// By session and number.
    Explicit(u32, u32),
    /// Several statements in one text, by its place in the recording.
    Text(usize),
    /// One that began in a text after an earlier one had ended there, by the places of the text and of its BEGIN.
    Later(usize, usize),
}

/// What was seen and is part of no migration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Statements about the tool's own tables.
    pub bookkeeping: usize,
    /// Queries to the system catalogs, and settings of the client.
    pub questions: usize,
    /// Settings of sessions, which are written where a migration runs under them.
    pub settings: usize,
    /// BEGIN, COMMIT, savepoints and so on.
    pub transactions: usize,
    /// Statements that the server refused although the migration went on.
    pub tolerated: usize,
    /// Statements that a rollback to a savepoint undid.
    pub undone: usize,
    /// Statements of transactions that were rolled back although the migration went on.
    pub attempts: usize,
    /// Requests that the server did not run because one before them failed, or had not answered at the end.
    pub skipped: usize,
    /// Calls through the function call protocol, which carry no statement.
    pub function_calls: usize,
}

/// Cuts a recording. `tables` are those that rows of migrations are searched for in. Statements that differ only in their
/// values are folded into one.
pub fn cut(recording: &Recording, tables: &Tables) -> Capture {
    let mut capture = cut_without_folding(recording, tables);
    for migration in &mut capture.migrations {
        migration.work = fold(std::mem::take(&mut migration.work));
    }
    capture
}

/// Cuts a recording, with every statement that was sent.
pub fn cut_without_folding(recording: &Recording, tables: &Tables) -> Capture {
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

/// A statement about the tool's own tables.
struct Own {
    at: usize,
    session: u32,
    transaction: Option<TransactionId>,
    /// `None` if it cannot be sent again.
    sql: Option<String>,
    /// Whether a savepoint before it was rolled back to.
    is_undone: bool,
}

/// A migration by its row, with the indexes of its statements.
struct Cut {
    row: Row,
    work: Vec<usize>,
    own: Vec<usize>,
}

struct Cutter<'a> {
    tables: &'a Tables,
    sessions: HashMap<u32, SessionState>,
    /// All work with its place in the recording.
    work: Vec<(usize, Work)>,
    own: Vec<Own>,
    /// Indexes of the work that belongs to no migration yet.
    pending: Vec<usize>,
    /// The same for statements about the tool's own tables.
    pending_own: Vec<usize>,
    migrations: Vec<Cut>,
    /// Rows of migrations, by their index, with their transactions.
    rows: Vec<(Option<TransactionId>, usize)>,
    /// Transactions that BEGIN opened and no COMMIT ended, and texts that failed.
    rolled_back: BTreeSet<TransactionId>,
    counts: Counts,
}

impl<'a> Cutter<'a> {
    fn new(recording: &Recording, tables: &'a Tables) -> Self {
        let state = |session: &crate::recording::Session| {
            let settings = Rc::new(SessionSettings::at_start(&session.parameters));
            (session.number, SessionState { settings, ..SessionState::default() })
        };
        Self {
            tables,
            sessions: recording.sessions.iter().map(state).collect(),
            work: Vec::new(),
            own: Vec::new(),
            pending: Vec::new(),
            pending_own: Vec::new(),
            migrations: Vec::new(),
            rows: Vec::new(),
            rolled_back: BTreeSet::new(),
            counts: Counts { function_calls: recording.function_calls, ..Counts::default() },
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
            let seen = Seen { at, sent, text: "", error: sent.error(), transaction };
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
        let mut has_ended = false;
        for (number, statement) in statements.iter().enumerate() {
            let text = &sent.sql[statement.range.as_usize()];
            let error = sent.error().filter(|_| number as u64 == sent.completed);
            if sent.error().is_some() && number as u64 > sent.completed {
                break;
            }
            // The recording has one number for all transactions of a text.
            let transaction = match (self.sessions.get(&sent.session).and_then(|state| state.open), statement.ast()) {
                (None, Some(Ast::Transaction(Transaction::Begin))) if has_ended => {
                    Some(TransactionId::Later(at, number))
                }
                (open, _) if has_ended || matches!(open, Some(TransactionId::Later(..))) => open,
                _ => transaction,
            };
            has_ended |= matches!(statement.ast(), Some(Ast::Transaction(control)) if control.ends());
            let seen = Seen { at, sent, text, error, transaction };
            let role = match statement.ast() {
                Some(ast) => {
                    let role = role(ast, text, &sent.parameters, self.tables);
                    if matches!(role, Role::Rows(_) | Role::Bookkeeping) && error.is_none() && own::leaves_state(ast) {
                        self.own_statement(&seen);
                    }
                    role
                }
                None => Role::Work,
            };
            self.statement(seen, role);
        }
    }

    fn own_statement(&mut self, seen: &Seen<'_>) {
        self.pending_own.push(self.own.len());
        self.own.push(Own {
            at: seen.at,
            session: seen.sent.session,
            transaction: seen.transaction,
            sql: own::on_one_line(seen.text, &seen.sent.parameters),
            is_undone: false,
        });
    }

    fn statement(&mut self, seen: Seen<'_>, role: Role) {
        let state = self.sessions.entry(seen.sent.session).or_default();
        let transaction = seen.transaction.filter(|id| !matches!(id, TransactionId::Text(_)));
        if let (Some(_), Some(id)) = (seen.error, transaction) {
            if state.open == Some(id) {
                state.failed.get_or_insert(seen.at);
            } else {
                // No BEGIN opened it: the statements of a pipeline.
                self.rolled_back.insert(id);
            }
        }
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
                // A COMMIT that fails is a rollback; what else is refused changes nothing.
                if seen.error.is_none() || control.ends() {
                    self.control(&control, &seen);
                }
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
            Transaction::Savepoint(name) => {
                let settings = Rc::clone(&state.settings);
                state.savepoints.push(Savepoint { name: name.text.clone(), at: seen.at, settings });
            }
            Transaction::Release(name) => {
                if let Some(at) = state.savepoint(&name.text) {
                    state.savepoints.truncate(at);
                }
            }
            Transaction::RollbackTo(name) => {
                let Some(at) = state.savepoint(&name.text) else { return };
                state.savepoints.truncate(at + 1);
                let since = state.savepoints[at].at;
                state.settings = Rc::clone(&state.savepoints[at].settings);
                state.failed = state.failed.filter(|failed| *failed < since);
                let own = self.work.iter_mut().filter(|(at, work)| *at > since && work.session == seen.sent.session);
                own.for_each(|(_, work)| work.is_undone = true);
                let own = self.own.iter_mut().filter(|own| own.at > since && own.session == seen.sent.session);
                own.for_each(|own| own.is_undone = true);
            }
            Transaction::Begin => {
                state.end(true);
                state.open = seen.transaction;
                state.at_begin = Some(Rc::clone(&state.settings));
                self.rolled_back.extend(seen.transaction);
            }
            // Whether a prepared transaction is committed is not known: what it did may last.
            Transaction::Commit { .. } | Transaction::Prepare => {
                // An error makes COMMIT a rollback, and it can be that of COMMIT itself.
                let is_committed = state.failed.is_none();
                state.end(is_committed);
                if let Some(id) = seen.transaction.filter(|_| is_committed) {
                    self.rolled_back.remove(&id);
                }
            }
            Transaction::Rollback { .. } => state.end(false),
            Transaction::CommitPrepared | Transaction::RollbackPrepared => {}
        }
    }

    /// A row has entered the table.
    fn row(&mut self, row: Row, transaction: Option<TransactionId>) {
        let at = match row.order {
            tools::Row::After => {
                let (pending, own) = self.recorded_by(transaction);
                let at = self.migration(row);
                self.migrations[at].work.extend(pending);
                self.migrations[at].own.extend(own);
                at
            }
            tools::Row::Before => {
                let (pending, own) = (std::mem::take(&mut self.pending), std::mem::take(&mut self.pending_own));
                // What else the tool did in the transaction of the row belongs to the row.
                let last = own.last().copied();
                let is_of_row = |own: &usize| {
                    Some(*own) == last || (transaction.is_some() && self.own[*own].transaction == transaction)
                };
                let (mut of_row, mut before): (Vec<usize>, Vec<usize>) = own.into_iter().partition(is_of_row);
                if let Some(last) = self.migrations.last_mut() {
                    last.work.extend(pending);
                    last.own.extend(before);
                } else {
                    // What ran before the first migration is part of it.
                    self.pending = pending;
                    before.append(&mut of_row);
                    of_row = before;
                }
                let at = self.migration(row);
                self.migrations[at].own.extend(of_row);
                at
            }
        };
        self.rows.push((transaction, at));
    }

    /// Takes what a row in this transaction records. If the transaction has work, the row does not record transactions of
    /// other sessions that are still open: another program migrates at the same time.
    fn recorded_by(&mut self, transaction: Option<TransactionId>) -> (Vec<usize>, Vec<usize>) {
        let (pending, own) = (std::mem::take(&mut self.pending), std::mem::take(&mut self.pending_own));
        let of_work = |at: &usize| self.work[*at].1.transaction;
        if transaction.is_none() || !pending.iter().any(|at| of_work(at) == transaction) {
            return (pending, own);
        }
        let open: BTreeSet<TransactionId> = self.sessions.values().filter_map(|state| state.open).collect();
        let is_recorded = |id: Option<TransactionId>| id == transaction || id.is_none_or(|id| !open.contains(&id));
        let (pending, others): (Vec<usize>, Vec<usize>) = pending.into_iter().partition(|at| is_recorded(of_work(at)));
        let (own, own_of_others): (Vec<usize>, Vec<usize>) =
            own.into_iter().partition(|at| is_recorded(self.own[*at].transaction));
        (self.pending, self.pending_own) = (others, own_of_others);
        (pending, own)
    }

    /// The migration of a row: some tools write it before and after.
    fn migration(&mut self, row: Row) -> usize {
        let known = self.migrations.iter().position(|known| known.row.name == row.name);
        known.unwrap_or_else(|| {
            self.migrations.push(Cut { row, work: Vec::new(), own: Vec::new() });
            self.migrations.len() - 1
        })
    }

    fn finish(mut self, tool: Option<SmolStr>) -> Capture {
        for (_, work) in &mut self.work {
            work.is_rolled_back = work.transaction.is_some_and(|id| self.rolled_back.contains(&id));
        }
        let (mut unfinished, mut after) = (Vec::new(), Vec::new());
        let pending = std::mem::take(&mut self.pending);
        let is_open = self.migrations.last().is_some_and(|last| last.row.order == tools::Row::Before);
        if let Some(last) = self.migrations.last_mut() {
            last.own.append(&mut self.pending_own);
        }
        if is_open {
            self.migrations.last_mut().expect("it is open").work.extend(pending);
        } else if pending.iter().any(|at| self.has_failed(*at)) || self.migrations.is_empty() {
            unfinished = pending;
        } else {
            after = pending;
        }
        let committed = self.set_attempted_rows_apart();
        let owners = self.owners();
        let mut migrations = Vec::new();
        let last = self.migrations.len().saturating_sub(1);
        for (number, Cut { row, work: indexes, own }) in std::mem::take(&mut self.migrations).into_iter().enumerate() {
            // Where the row comes first, nothing but an error at the very end tells that the migration failed.
            let has_failed = is_open && number == last && indexes.last().is_some_and(|at| self.has_failed(*at));
            // What rolled the row back is a later migration, or this one.
            let is_recorded = committed.contains(&number) || number < last || !unfinished.is_empty();
            let is_complete = !has_failed && is_recorded;
            let mut work: Vec<Work> = indexes.iter().map(|at| self.work[*at].1.clone()).collect();
            if is_complete {
                self.set_ineffective_apart(number, &mut work);
            }
            let transaction = kind(&work, |id| owners.get(&id).is_some_and(|own| own.len() > 1));
            let own = self.own_again(&own);
            migrations.push(Migration {
                name: row.name,
                naming: Some(row.naming),
                is_complete,
                work,
                transaction,
                own,
            });
        }
        if !unfinished.is_empty() {
            let work: Vec<Work> = unfinished.iter().map(|at| self.work[*at].1.clone()).collect();
            let transaction = kind(&work, |_| false);
            migrations.push(Migration { work, transaction, ..Migration::default() });
        }
        let after: Vec<Work> = after.iter().map(|at| self.work[*at].1.clone()).collect();
        Capture { tool, migrations, after, counts: self.counts }
    }

    /// Removes rows that were rolled back if the migration has another row. Returns the migrations whose row was committed.
    fn set_attempted_rows_apart(&mut self) -> BTreeSet<usize> {
        let rolled_back = &self.rolled_back;
        let is_committed = |row: &(Option<TransactionId>, usize)| row.0.is_none_or(|id| !rolled_back.contains(&id));
        let committed = self.rows.iter().filter(|row| is_committed(row)).map(|row| row.1).collect::<BTreeSet<_>>();
        self.rows.retain(|row| is_committed(row) || !committed.contains(&row.1));
        committed
    }

    /// The statements about the tool's own tables that were committed; none if one of them cannot be sent again.
    fn own_again(&self, own: &[usize]) -> Vec<String> {
        let is_rolled_back = |own: &Own| own.transaction.is_some_and(|id| self.rolled_back.contains(&id));
        let own = own.iter().map(|at| &self.own[*at]).filter(|own| !own.is_undone && !is_rolled_back(own));
        own.map(|own| own.sql.clone()).collect::<Option<Vec<_>>>().unwrap_or_default()
    }

    /// Whether a statement failed and nothing shows that the migration went on in spite of it.
    fn has_failed(&self, at: usize) -> bool {
        let work = &self.work[at].1;
        work.error.is_some() && (!work.is_undone || work.is_rolled_back)
    }

    /// The migrations whose statements or rows each transaction held, by their index.
    fn owners(&self) -> HashMap<TransactionId, BTreeSet<usize>> {
        let mut owners: HashMap<TransactionId, BTreeSet<usize>> = HashMap::new();
        for (migration, cut) in self.migrations.iter().enumerate() {
            for id in cut.work.iter().filter_map(|at| self.work[*at].1.transaction) {
                owners.entry(id).or_default().insert(migration);
            }
        }
        for (transaction, migration) in &self.rows {
            if let Some(id) = transaction {
                owners.entry(*id).or_default().insert(*migration);
            }
        }
        owners
    }

    /// Removes attempts from the work of a migration that ran to its end, and counts what else had no effect. An attempt
    /// is a transaction that was rolled back without the row.
    fn set_ineffective_apart(&mut self, migration: usize, work: &mut Vec<Work>) {
        let holds_row = |id: TransactionId| self.rows.contains(&(Some(id), migration));
        let is_attempt = |work: &Work| work.is_rolled_back && work.transaction.is_some_and(|id| !holds_row(id));
        let all = work.len();
        work.retain(|work| !is_attempt(work));
        self.counts.attempts += all - work.len();
        self.counts.tolerated += work.iter().filter(|work| work.error.is_some()).count();
        self.counts.undone += work.iter().filter(|work| work.is_undone && work.error.is_none()).count();
    }
}

/// A statement where it was seen.
struct Seen<'a> {
    at: usize,
    sent: &'a Recorded,
    text: &'a str,
    error: Option<&'a Refused>,
    transaction: Option<TransactionId>,
}

fn kind(work: &[Work], is_shared: impl Fn(TransactionId) -> bool) -> TransactionKind {
    let Some(first) = work.first().and_then(|first| first.transaction) else { return TransactionKind::Mixed };
    if work.iter().any(|one| one.transaction != Some(first)) {
        return TransactionKind::Mixed;
    }
    if is_shared(first) { TransactionKind::Shared } else { TransactionKind::One }
}

#[cfg(test)]
mod tests;
