//! One connection of the command: which request each answer of the server belongs to.
//!
//! Source: PostgreSQL 18 documentation, 54.2, "Message Flow". The server answers requests in order. After an error in the
//! extended protocol it ignores all of them up to the next Sync.

use crate::recording::{Outcome, Parameter, Recorded, Recording, Refused, Session};
use crate::value::{self, Format};
use crate::wire::{Message, long, short, string};
use bytes::BytesMut;
use pgvet_syntax::lexer::quote_identifier;
use postgres_protocol::message::backend;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Instant;

/// Decides for which statements the values of parameters are kept.
pub(crate) type KeepValues = dyn Fn(&str) -> bool;

/// What is shared by all connections of a run.
pub(crate) struct Log {
    pub(crate) recording: Recording,
    pub(crate) started: Instant,
    pub(crate) keep_values: Box<KeepValues>,
}

impl Log {
    pub(crate) fn new(keep_values: Box<KeepValues>) -> Self {
        Self { recording: Recording::default(), started: Instant::now(), keep_values }
    }

    /// Begins the record of a connection.
    pub(crate) fn session(&mut self, parameters: Vec<(String, String)>) -> SessionLog {
        let number = self.recording.sessions.len() as u32 + 1;
        self.recording.sessions.push(Session { number, parameters });
        SessionLog { number, ..SessionLog::default() }
    }
}

/// A request that is not answered yet.
#[derive(Debug)]
enum Request {
    /// A simple query, with the index of its record.
    Query(usize),
    Parse(Text),
    Bind,
    /// With the name of a statement; `None` for a portal.
    Describe(Option<String>),
    Close,
    /// An execution, with the index of its record; `None` if it only fetches more rows of the one before.
    Execute(Option<usize>),
    Sync,
    FunctionCall,
}

/// A statement that was sent to be prepared.
#[derive(Debug, Clone, Default)]
struct Text {
    name: String,
    sql: Rc<str>,
    types: Vec<u32>,
    cut_from: u64,
}

/// A prepared statement with values.
#[derive(Debug, Clone, Default)]
struct Portal {
    sql: Rc<str>,
    cut_from: u64,
    parameters: Vec<Parameter>,
    was_executed: bool,
}

/// The state of a connection.
#[derive(Debug, Default)]
pub(crate) struct SessionLog {
    number: u32,
    requests: VecDeque<Request>,
    prepared: HashMap<String, Text>,
    portals: HashMap<String, Portal>,
    /// Whether the server reads the data of a COPY.
    is_copying: bool,
    /// The number of the transaction that is open, and of the last one.
    transaction: Option<u32>,
    transactions: u32,
    /// Records that were answered since the last `ReadyForQuery`.
    batch: Vec<usize>,
}

/// The types of messages of the client whose content is of interest.
pub(crate) fn is_wanted_from_client(tag: u8) -> bool {
    matches!(tag, b'Q' | b'P' | b'B' | b'E' | b'D' | b'C' | b'S' | b'F')
}

/// The same for messages of the server.
pub(crate) fn is_wanted_from_server(tag: u8) -> bool {
    matches!(tag, b'C' | b'E' | b'Z' | b't')
}

impl SessionLog {
    /// Notes a message that the client is about to send.
    pub(crate) fn sent(&mut self, log: &mut Log, message: Message<'_>) {
        let mut body = message.body;
        match message.tag {
            b'Q' => {
                let at = self.record(log, &string(&mut body), Vec::new());
                log.recording.statements[at].cut_from = message.cut_from();
                self.requests.push_back(Request::Query(at));
            }
            b'P' => {
                let (name, sql) = (string(&mut body), Rc::from(string(&mut body)));
                let count = short(&mut body);
                let types = (0..count).map_while(|_| long(&mut body)).map(i32::cast_unsigned).collect();
                let text = Text { name: name.clone(), sql, types, cut_from: message.cut_from() };
                self.prepared.insert(name, text.clone());
                self.requests.push_back(Request::Parse(text));
            }
            b'B' => {
                self.bind(log, body);
                self.requests.push_back(Request::Bind);
            }
            b'D' => {
                let name = body.strip_prefix(b"S").map(|mut name| string(&mut name));
                self.requests.push_back(Request::Describe(name));
            }
            b'C' => {
                let name = string(&mut body.get(1..).unwrap_or_default());
                match body.first() {
                    Some(b'S') => drop(self.prepared.remove(&name)),
                    _ => drop(self.portals.remove(&name)),
                }
                self.requests.push_back(Request::Close);
            }
            b'E' => self.execute(log, &string(&mut body)),
            // While the server reads data it ignores Sync.
            b'S' if self.is_copying => {}
            b'S' => self.requests.push_back(Request::Sync),
            // CopyDone and CopyFail.
            b'c' | b'f' => self.is_copying = false,
            b'F' => {
                log.recording.function_calls += 1;
                self.requests.push_back(Request::FunctionCall);
            }
            b'd' => {
                if let Some(Request::Query(at) | Request::Execute(Some(at))) = self.requests.front() {
                    log.recording.statements[*at].copied += message.length as u64;
                }
            }
            _ => {}
        }
    }

    fn bind(&mut self, log: &Log, mut body: &[u8]) {
        let (portal, statement) = (string(&mut body), string(&mut body));
        // SQL can prepare a statement that the protocol then runs.
        let prepared_by_sql =
            || Text { sql: format!("EXECUTE {}", quote_identifier(&statement)).into(), ..Text::default() };
        let text = self.prepared.get(&statement).cloned().unwrap_or_else(prepared_by_sql);
        let keep = (log.keep_values)(&text.sql);
        let formats: Vec<usize> = (0..short(&mut body)).map(|_| short(&mut body)).collect();
        let mut parameters = Vec::new();
        for at in 0..short(&mut body) {
            let Some(length) = long(&mut body) else { break };
            let oid = text.types.get(at).copied().unwrap_or(0);
            let format = match formats.as_slice() {
                [] => Format::Text,
                [one] => Format::of(*one),
                each => Format::of(each.get(at).copied().unwrap_or(0)),
            };
            let length = usize::try_from(length).ok();
            let value = body.get(..length.unwrap_or(0)).unwrap_or_default();
            body = body.get(length.unwrap_or(0)..).unwrap_or_default();
            let value = length.filter(|_| keep).and_then(|_| value::shown(value, oid, format));
            parameters.push(Parameter { oid, length, value });
        }
        self.portals.insert(portal, Portal { sql: text.sql, cut_from: text.cut_from, parameters, was_executed: false });
    }

    fn execute(&mut self, log: &mut Log, portal: &str) {
        let known = self.portals.get_mut(portal).filter(|portal| !portal.was_executed);
        let at = known.map(|portal| {
            portal.was_executed = true;
            (Rc::clone(&portal.sql), portal.parameters.clone(), portal.cut_from)
        });
        let at = at.map(|(sql, parameters, cut_from)| {
            let at = self.record(log, &sql, parameters);
            log.recording.statements[at].cut_from = cut_from;
            at
        });
        self.requests.push_back(Request::Execute(at));
    }

    fn record(&mut self, log: &mut Log, sql: &str, parameters: Vec<Parameter>) -> usize {
        let at = log.recording.statements.len();
        log.recording.statements.push(Recorded {
            session: self.number,
            sql: sql.to_owned(),
            parameters,
            started: log.started.elapsed(),
            ..Recorded::default()
        });
        at
    }

    /// Notes a message that the server has sent.
    pub(crate) fn answered(&mut self, log: &mut Log, message: Message<'_>) {
        match message.tag {
            // ParseComplete, BindComplete, CloseComplete: each answers its own request.
            b'1' | b'2' | b'3' => drop(self.requests.pop_front()),
            b't' => self.learn_types(message),
            // RowDescription and NoData end the answer to Describe.
            b'T' | b'n' if matches!(self.requests.front(), Some(Request::Describe(_))) => {
                drop(self.requests.pop_front());
            }
            // CopyInResponse
            b'G' => self.copy_begins(),
            // CommandComplete, EmptyQueryResponse, PortalSuspended.
            b'C' | b'I' | b's' => self.completed(log, message),
            b'V' => drop(self.requests.pop_front()),
            b'E' => self.failed(log, message),
            b'Z' => self.ready(log, message),
            _ => {}
        }
    }

    /// The server ignores the Sync with which a client has sent COPY.
    ///
    /// Source: PostgreSQL 18 documentation, 54.2.6, "COPY Operations".
    fn copy_begins(&mut self) {
        self.is_copying = true;
        while let Some(Request::Sync) = self.requests.get(1) {
            self.requests.remove(1);
        }
    }

    fn learn_types(&mut self, message: Message<'_>) {
        let mut body = message.body;
        let Some(Request::Describe(Some(name))) = self.requests.front() else { return };
        let Some(text) = self.prepared.get_mut(name) else { return };
        let count = short(&mut body);
        text.types = (0..count).map_while(|_| long(&mut body)).map(i32::cast_unsigned).collect();
    }

    fn completed(&mut self, log: &mut Log, message: Message<'_>) {
        let at = match self.requests.front() {
            Some(Request::Execute(at)) => {
                let at = *at;
                self.requests.pop_front();
                self.batch.extend(at);
                at
            }
            Some(Request::Query(at)) => Some(*at),
            _ => None,
        };
        let Some(at) = at else { return };
        finish(log, at, Outcome::Done);
        let statement = &mut log.recording.statements[at];
        statement.completed += 1;
        let tag = if message.tag == b'C' { string(&mut &*message.body) } else { String::new() };
        if matches!(&*tag, "BEGIN" | "START TRANSACTION") && self.transaction.is_none() {
            self.transactions += 1;
            self.transaction = Some(self.transactions);
        }
        statement.transaction = statement.transaction.or(self.transaction);
        // ROLLBACK TO has the same tag as ROLLBACK; ReadyForQuery tells the end of a transaction.
        if tag == "COMMIT" {
            self.transaction = None;
        }
    }

    fn failed(&mut self, log: &mut Log, message: Message<'_>) {
        self.is_copying = false;
        let refused = refused(message);
        match self.requests.front() {
            Some(Request::Query(at)) => {
                let at = *at;
                self.fail(log, at, refused);
            }
            Some(Request::Sync | Request::FunctionCall) | None => {}
            Some(_) => self.fail_batch(log, refused),
        }
    }

    /// The first of the requests before the next Sync has failed, so the others are not run.
    fn fail_batch(&mut self, log: &mut Log, refused: Refused) {
        let when_prepared = !matches!(self.requests.front(), Some(Request::Execute(_)));
        let refused = Refused { when_prepared, ..refused };
        let mut refused = Some(refused);
        let mut unparsed = None;
        while let Some(request) = self.requests.front() {
            match request {
                Request::Sync | Request::Query(_) => break,
                Request::Execute(Some(at)) => {
                    let at = *at;
                    self.batch.push(at);
                    match refused.take() {
                        Some(refused) => self.fail(log, at, refused),
                        None => finish(log, at, Outcome::Skipped),
                    }
                }
                Request::Parse(text) => {
                    self.prepared.remove(&text.name);
                    unparsed.get_or_insert_with(|| Rc::clone(&text.sql));
                }
                _ => {}
            }
            self.requests.pop_front();
        }
        // It was to be prepared and not yet to be executed.
        if let (Some(refused), Some(sql)) = (refused, unparsed) {
            let at = self.record(log, &sql, Vec::new());
            self.fail(log, at, refused);
        }
    }

    fn fail(&mut self, log: &mut Log, at: usize, refused: Refused) {
        finish(log, at, Outcome::Failed(refused));
        let statement = &mut log.recording.statements[at];
        statement.transaction = statement.transaction.or(self.transaction);
    }

    fn ready(&mut self, log: &mut Log, message: Message<'_>) {
        while let Some(request) = self.requests.pop_front() {
            match request {
                Request::Query(at) => {
                    self.batch.push(at);
                    if log.recording.statements[at].outcome == Outcome::Unanswered {
                        finish(log, at, Outcome::Done);
                    }
                    break;
                }
                Request::Sync | Request::FunctionCall => break,
                _ => {}
            }
        }
        let is_idle = message.body.first() == Some(&b'I');
        if is_idle {
            self.transaction = None;
        } else if self.transaction.is_none() {
            // BEGIN was one of several statements of one text.
            self.transactions += 1;
            self.transaction = Some(self.transactions);
        }
        let is_alone = |at: &&usize| log.recording.statements[**at].transaction.is_none();
        if is_idle && self.batch.iter().filter(is_alone).count() > 1 {
            // Several executions before one Sync are one transaction.
            self.transactions += 1;
            let together = Some(self.transactions);
            self.batch.iter().for_each(|at| {
                let statement = &mut log.recording.statements[*at];
                statement.transaction = statement.transaction.or(together);
            });
        }
        for at in self.batch.drain(..) {
            let statement = &mut log.recording.statements[at];
            statement.transaction = statement.transaction.or(self.transaction);
        }
    }
}

fn finish(log: &mut Log, at: usize, outcome: Outcome) {
    let now = log.started.elapsed();
    let statement = &mut log.recording.statements[at];
    statement.took = now.saturating_sub(statement.started);
    if statement.error().is_none() {
        statement.outcome = outcome;
    }
}

/// The error that a message holds.
fn refused(message: Message<'_>) -> Refused {
    let mut bytes = BytesMut::with_capacity(message.body.len() + 5);
    bytes.extend_from_slice(&[message.tag]);
    bytes.extend_from_slice(&(message.body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(message.body);
    let mut found = Refused::default();
    if let Ok(Some(backend::Message::ErrorResponse(body))) = backend::Message::parse(&mut bytes) {
        use tokio_postgres::fallible_iterator::FallibleIterator;
        let mut fields = body.fields();
        while let Ok(Some(field)) = fields.next() {
            let text = || String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'C' => found.code = text(),
                b'M' => found.message = text(),
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
