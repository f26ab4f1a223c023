//! Statements of the user's own, run by several clients while a migration runs: how long they take before, meanwhile
//! and after.

use crate::Error;
use crate::connection::Connection;
use crate::deadlock::Activity;
use crate::observation::{Latency, WorkloadTrace};
use crate::provider::ThinClone;
use crate::rank::rank;
use crate::script::{Variables, fill};
use crate::send::send;
use pgvet_model::application::{KnownStatement, KnownTransaction};
use pgvet_syntax::ast::{Ast, Transaction};
use pgvet_syntax::source::SourceFile;
use pgvet_syntax::statement::{Statement, parse_file};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// The statements that the clients run, repeatedly.
#[derive(Debug, Clone, Default)]
pub struct Workload {
    /// At least one.
    pub clients: usize,
    statements: Vec<Query>,
}

/// One statement of a workload.
#[derive(Debug, Clone)]
struct Query {
    sql: String,
    /// `file:line`.
    place: String,
    /// Whether it is BEGIN, COMMIT or similar, which is sent but whose times are not reported.
    control: bool,
    /// Whether a transaction block is open after it; `None` where it changes nothing of that.
    opens: Option<bool>,
    ast: Option<Arc<Ast>>,
}

/// A client rests between two statements, so that the clients alone do not keep the server busy.
const PAUSE: Duration = Duration::from_millis(1);
/// Minimum time for which the clients run alone, before the migration and after it.
const ALONE: Duration = Duration::from_secs(1);
/// Maximum time to wait until each statement was run before the migration.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum time to wait at the end for running statements, before they are cancelled.
const LAST_MOMENTS: Duration = Duration::from_secs(5);

impl Workload {
    /// Reads the statements of a file.
    pub fn read(source: SourceFile, clients: usize, variables: &Variables) -> Result<Self, Error> {
        let file = parse_file(source);
        let path = &file.source.path;
        let mut statements = Vec::new();
        for statement in &file.statements {
            let line = file.source.position(statement.range.start).line;
            let place = format!("{path}:{line}");
            let control = is_control(statement).map_err(|message| Error::new(format!("{place}: {message}")))?;
            let opens = match statement.ast() {
                Some(Ast::Transaction(Transaction::Begin)) => Some(true),
                Some(Ast::Transaction(Transaction::Commit { chain } | Transaction::Rollback { chain })) => Some(*chain),
                _ => None,
            };
            let sql = fill(&file.source.text, statement, variables, path)?;
            statements.push(Query { sql, place, control, opens, ast: statement.parsed.clone().ok() });
        }
        if statements.is_empty() {
            return Err(Error::new(format!("`{path}` has no statement to run")));
        }
        Ok(Self { clients: clients.max(1), statements })
    }
}

impl Workload {
    /// The transactions of the clients, for rules that compare migrations with the application.
    pub fn transactions(&self) -> Vec<KnownTransaction> {
        let (mut found, mut open): (Vec<KnownTransaction>, bool) = (Vec::new(), false);
        for query in &self.statements {
            if let Some(opens) = query.opens {
                open = opens;
                if opens {
                    found.push(KnownTransaction::new(Vec::new(), None));
                }
            }
            let Some(ast) = query.ast.as_ref().filter(|_| !query.control) else { continue };
            let (place, sql) = (query.place.as_str().into(), query.sql.as_str().into());
            let statement = KnownStatement { place, sql, ast: Arc::clone(ast) };
            match found.last_mut().filter(|_| open) {
                Some(transaction) => transaction.statements.push(statement),
                None => found.push(KnownTransaction::new(vec![statement], None)),
            }
        }
        found.retain(|transaction| !transaction.statements.is_empty());
        found
    }
}

fn is_control(statement: &Statement) -> Result<bool, String> {
    match statement.parsed.as_deref() {
        Ok(Ast::Copy(_)) => Err("COPY cannot be part of a workload".to_owned()),
        Ok(Ast::Transaction(Transaction::Prepare)) => {
            Err("PREPARE TRANSACTION cannot be part of a workload".to_owned())
        }
        Ok(Ast::CreateOther(other)) if other.tag.ends_with(" SUBSCRIPTION") => {
            Err(format!("{} cannot be part of a workload", other.tag))
        }
        Ok(ast) => Ok(matches!(ast, Ast::Transaction(_) | Ast::Set(_))),
        Err(error) => Err(error.message.clone()),
    }
}

/// A statement that was run once.
#[derive(Debug)]
struct Run {
    query: usize,
    started: Instant,
    ended: Instant,
    error: Option<String>,
}

/// The clients of one migration. They end with this value.
pub(crate) struct Clients {
    workload: Workload,
    stop: Rc<Cell<bool>>,
    /// Statements that still run are cancelled.
    cancelling: Rc<Cell<bool>>,
    runs: Rc<RefCell<Vec<Run>>>,
    working: Vec<(Rc<Connection>, JoinHandle<()>)>,
    /// When the migration began.
    began: Instant,
}

impl Clients {
    /// Starts them, and returns when it is known how long each statement usually takes. Statements that take longer than
    /// `limit` are cancelled.
    pub(crate) async fn start(
        clone: &ThinClone,
        major: u8,
        workload: &Workload,
        limit: Option<Duration>,
        activity: &Rc<Activity>,
    ) -> Result<Self, Error> {
        let mut clients = Self {
            workload: workload.clone(),
            stop: Rc::default(),
            cancelling: Rc::default(),
            runs: Rc::default(),
            working: Vec::new(),
            began: Instant::now(),
        };
        for number in 1..=workload.clients {
            let connection = Connection::open_ending_with_client(&clone.database, "workload", major).await?;
            let connection = Rc::new(connection);
            let client = Client {
                connection: Rc::clone(&connection),
                queries: workload.statements.clone(),
                limit,
                stop: Rc::clone(&clients.stop),
                cancelling: Rc::clone(&clients.cancelling),
                runs: Rc::clone(&clients.runs),
                activity: Rc::clone(activity),
                name: format!("client {number}"),
            };
            clients.working.push((connection, tokio::task::spawn_local(client.work())));
        }
        clients.warm_up().await?;
        clients.began = Instant::now();
        Ok(clients)
    }

    async fn warm_up(&self) -> Result<(), Error> {
        let started = Instant::now();
        loop {
            tokio::time::sleep(PAUSE * 10).await;
            let runs = self.runs.borrow();
            if let Some((run, error)) = runs.iter().find_map(|run| Some((run, run.error.as_ref()?))) {
                let place = &self.workload.statements[run.query].place;
                return Err(Error::new(format!("the workload fails before the migration: {place}: {error}")));
            }
            let was_run = |query| runs.iter().any(|run| run.query == query);
            let all_run = (0..self.workload.statements.len()).all(was_run);
            if started.elapsed() >= ALONE && (all_run || started.elapsed() >= PATIENCE) {
                return Ok(());
            }
        }
    }

    /// The migration has ended: lets them run alone again for a while, and tells how long each statement took.
    pub(crate) async fn finish(mut self) -> Vec<WorkloadTrace> {
        let ended = Instant::now();
        tokio::time::sleep(ALONE).await;
        self.stop.set(true);
        let end = tokio::time::Instant::now() + LAST_MOMENTS;
        for (connection, mut task) in std::mem::take(&mut self.working) {
            // A client that panicked has nothing more to say.
            if tokio::time::timeout_at(end, &mut task).await.is_err() {
                self.cancelling.set(true);
                connection.cancel().await;
                let _ = tokio::time::timeout(LAST_MOMENTS, &mut task).await;
                task.abort();
            }
        }
        let runs = self.runs.take();
        let queries = self.workload.statements.iter().enumerate().filter(|(_, query)| !query.control);
        queries
            .map(|(at, query)| summary(query, runs.iter().filter(|run| run.query == at), self.began, ended))
            .collect()
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.stop.set(true);
        self.working.iter().for_each(|(_, task)| task.abort());
    }
}

/// One of them.
struct Client {
    connection: Rc<Connection>,
    queries: Vec<Query>,
    limit: Option<Duration>,
    stop: Rc<Cell<bool>>,
    cancelling: Rc<Cell<bool>>,
    runs: Rc<RefCell<Vec<Run>>>,
    activity: Rc<Activity>,
    /// In the report of a deadlock.
    name: String,
}

impl Client {
    async fn work(self) {
        let pid = self.connection.pid;
        while !self.stop.get() {
            let mut in_block = false;
            for (at, query) in self.queries.iter().enumerate() {
                if !in_block {
                    self.activity.begin(pid, &self.name);
                }
                in_block = query.opens.unwrap_or(in_block);
                if !query.control {
                    self.activity.run(pid, Some(&query.place), &query.sql);
                }
                let sent = send(&self.connection, &query.sql, None, self.limit).await;
                let error = sent.result.err().inspect(|error| self.activity.note(pid, error));
                let error = error.map(|error| self.why(&error, sent.timed_out));
                let failed = error.is_some();
                self.runs.borrow_mut().push(Run { query: at, started: sent.span.sent, ended: sent.span.done, error });
                tokio::time::sleep(PAUSE).await;
                if failed {
                    // The rest of its transaction would only be refused. Where there is none, the server only warns.
                    if self.connection.run("ROLLBACK").await.is_err() {
                        return;
                    }
                    break;
                }
            }
        }
    }

    fn why(&self, error: &tokio_postgres::Error, timed_out: bool) -> String {
        // The statement's own timeout has the same code.
        let cancelled = error.code() == Some(&tokio_postgres::error::SqlState::QUERY_CANCELED);
        if timed_out {
            "it took longer than --statement-timeout".to_owned()
        } else if cancelled && self.cancelling.get() {
            format!("it was cancelled, because it still ran {} s after the migration", (ALONE + LAST_MOMENTS).as_secs())
        } else {
            Error::from_postgres(error).message
        }
    }
}

/// Summarizes the runs of a query. One that overlaps the migration, even in part, is a run meanwhile.
fn summary<'a>(query: &Query, runs: impl Iterator<Item = &'a Run>, began: Instant, ended: Instant) -> WorkloadTrace {
    let mut times: [Vec<Duration>; 4] = Default::default();
    let mut error = None;
    for run in runs {
        let phase = if let Some(message) = &run.error {
            error.get_or_insert_with(|| message.clone());
            3
        } else if run.ended < began {
            0
        } else if run.started <= ended {
            1
        } else {
            2
        };
        times[phase].push(run.ended - run.started);
    }
    let [before, during, after, refused] = times.map(latency);
    WorkloadTrace { place: query.place.clone(), sql: query.sql.clone(), before, during, after, refused, error }
}

fn latency(mut times: Vec<Duration>) -> Latency {
    let mut at = |percent| rank(&mut times, percent);
    Latency { median: at(50), p95: at(95), longest: at(100), runs: times.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Workload, Error> {
        let source = SourceFile::new("w.sql".to_owned(), text.to_owned());
        Workload::read(source, 2, &Variables::from([("id".to_owned(), "7".to_owned())]))
    }

    #[test]
    fn statements_are_read_with_their_values_or_refused_with_their_place() {
        let workload = read("BEGIN;\nSELECT :id;\nCOMMIT;").unwrap();
        let queries: Vec<_> = workload.statements.iter().map(|query| (query.sql.as_str(), query.control)).collect();
        assert_eq!(queries, [("BEGIN", true), ("SELECT 7", false), ("COMMIT", true)]);
        let workload = read("SELECT 1; BEGIN; SELECT 2; SELECT 3; COMMIT; SELECT 4").unwrap();
        let counts: Vec<usize> = workload.transactions().iter().map(|one| one.statements.len()).collect();
        assert_eq!(counts, [1, 2, 1]);
        for (text, expected) in [
            ("SELECT 1;\nSELEKT", "w.sql:2: syntax error"),
            ("-- nothing", "`w.sql` has no statement to run"),
            ("COPY t FROM stdin;\n\\.\n", "w.sql:1: COPY cannot be part"),
            ("DROP SUBSCRIPTION s", "w.sql:1: DROP SUBSCRIPTION cannot be part"),
            ("SELECT ${x}", "which has no value"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn what_overlaps_the_migration_is_meanwhile() {
        let zero = Instant::now();
        let at = |milliseconds| zero + Duration::from_millis(milliseconds);
        let run = |from, to| Run { query: 0, started: at(from), ended: at(to), error: None };
        let failed = Run { error: Some("no column".to_owned()), ..run(310, 320) };
        let runs = [run(0, 1), run(90, 210), run(150, 152), run(199, 260), run(300, 303), failed];
        let query = Query { sql: String::new(), place: String::new(), control: false, opens: None, ast: None };
        let trace = summary(&query, runs.iter(), at(100), at(200));
        let milliseconds = |latency: Latency| (latency.runs, latency.longest.as_millis());
        assert_eq!([trace.before, trace.during, trace.after].map(milliseconds), [(1, 1), (3, 120), (1, 3)]);
        assert_eq!((milliseconds(trace.refused), trace.error.as_deref()), ((1, 10), Some("no column")));
    }
}
