//! A run: a clone, the proxy before it, and the command.

use crate::command::{self, Place};
use crate::proxy::{Listener, Proxy, Shared};
use crate::recording::Recording;
use crate::session::Log;
use crate::upstream::Target;
use crate::value::hex;
use pgvet_model::migration::Migration;
use pgvet_schema::Schema;
use pgvet_trace::provider::{AnnouncedClone, CloneProvider, ServerInfo, ThinClone};
use pgvet_trace::{Error, Event, ForeignTables, RefusedStatement, Settings, apply, block_on, unless_interrupted};
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::process::Child;

/// The password in the address that the command gets, if nobody asks for it.
const PASSWORD: &str = "pgvet";

/// How long connections that the command has left open may take to end.
const PATIENCE: Duration = Duration::from_millis(500);
const INTERVAL: Duration = Duration::from_millis(10);

/// What to run, and what to keep of it.
pub struct Request<'a> {
    /// The program and its arguments, in which `{url}` and the other parts of the address are replaced.
    pub command: &'a [OsString],
    /// The folder in which it is run.
    pub folder: &'a Path,
    /// Further variables of its environment, as templates.
    pub variables: &'a [(String, String)],
    /// For which statements the values of parameters are kept.
    pub keep_values: Box<dyn Fn(&str) -> bool>,
    pub state: State<'a>,
    /// Whether the command may run with rights beyond its clone on a server that others use.
    pub allow_server_changes: bool,
}

/// What is in the database before the command runs, if it is not a clone that has its own tables.
#[derive(Debug, Default)]
pub struct State<'a> {
    /// A dump of the schema.
    pub schema: &'a [Migration<'a>],
    /// The migrations of an earlier capture.
    pub saved: &'a [Migration<'a>],
}

impl State<'_> {
    fn is_empty(&self) -> bool {
        self.schema.is_empty() && self.saved.is_empty()
    }
}

/// The state from which the command started.
#[derive(Debug, Default)]
pub enum Started {
    /// The migrations of the earlier capture were applied, if there were any.
    #[default]
    AsAsked,
    /// A migration of the earlier capture could not be applied, so none of them was.
    WithoutSaved(RefusedStatement),
    /// A clone, with this schema.
    Clone(Box<Schema>),
}

/// What came of a run.
#[derive(Debug)]
pub struct Captured {
    pub recording: Recording,
    pub status: ExitStatus,
    pub server: ServerInfo,
    /// The address that the command was told.
    pub place: Place,
    /// How many connections the command opened, and how many it left open.
    pub connections: usize,
    pub left_open: usize,
    /// How many it ended at once because they are not encrypted.
    pub refused_by_command: usize,
    /// The time of the command.
    pub took: Duration,
    pub started: Started,
}

/// Runs the command on a fresh clone, which is taken away afterwards whatever happens. Calls `tell` with the progress of
/// what is applied before it.
///
/// # Errors
/// No server could be started, the schema could not be applied, the command could not be started, or the user
/// interrupted it.
pub fn run(
    provider: &mut dyn CloneProvider,
    request: Request<'_>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Captured, Error> {
    block_on(async {
        let result = unless_interrupted(Box::pin(capture(provider, request, tell))).await;
        let result = result.map_err(|error| match provider.trouble() {
            Some(trouble) => error.with(&trouble),
            None => error,
        });
        let destroyed = provider.destroy().await;
        let captured = result?;
        destroyed.map(|()| captured)
    })
}

async fn capture(
    provider: &mut dyn CloneProvider,
    request: Request<'_>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Captured, Error> {
    let listener = Listener::open().await?;
    // The command needs time to come to its first connection, which waits for the server.
    let started = match provider.announced()?.filter(|_| request.state.is_empty()) {
        Some(clone) => Some(Running::start(&request, &listener, clone, None)?),
        None => None,
    };
    let server = provider.prepare().await?;
    if server.is_shared && !request.allow_server_changes {
        refuse_rights(&server)?;
    }
    let (clone, state) = database(provider, &server, &request, tell).await?;
    // A clone has data of others, which no other user of this machine may see.
    let password = server.has_schema.then(secret).transpose()?;
    let target = Target::new(&clone.database, password.clone())?;
    let running = if let Some(running) = started {
        running
    } else {
        let clone = AnnouncedClone { user: target.user.clone(), database: target.database.clone() };
        Running::start(&request, &listener, clone, password)?
    };
    let proxy = Proxy::new(listener, target, Log::new(request.keep_values));
    running.capture(proxy, server, state).await
}

/// Makes the database, in the state from which the command starts.
async fn database(
    provider: &mut dyn CloneProvider,
    server: &ServerInfo,
    request: &Request<'_>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(ThinClone, Started), Error> {
    let clone = provider.create().await?;
    if server.has_schema {
        if server.reaches_others && !request.allow_server_changes {
            let foreign = ForeignTables::of(&clone).await?;
            foreign.announcement().map_or(Ok(()), |text| Err(refused(text)))?;
        }
        let schema = Box::new(clone.schema().await?);
        return Ok((clone, Started::Clone(schema)));
    }
    restore_schema(&request.state, &clone, server, tell).await?;
    let Some(refused) = apply(request.state.saved, &clone, server, &Settings::default(), tell).await? else {
        return Ok((clone, Started::AsAsked));
    };
    provider.discard(clone).await?;
    let clone = provider.create().await?;
    restore_schema(&request.state, &clone, server, tell).await?;
    Ok((clone, Started::WithoutSaved(refused)))
}

/// Refuses a server that others use, if the user could change more of it than the clone: what a program sends is known only when
/// it has run.
fn refuse_rights(server: &ServerInfo) -> Result<(), Error> {
    let databases = server.owner_of_databases.as_ref();
    let databases = databases.map(|user| format!("`{user}` can drop and change other databases of this server"));
    let Some(rights) = server.announcements.first().cloned().or(databases) else { return Ok(()) };
    Err(refused(rights))
}

fn refused(rights: String) -> Error {
    Error::new(rights)
        .help("connect as a role that owns the clone and has no other rights, or add --allow-server-changes")
}

async fn restore_schema(
    state: &State<'_>,
    clone: &ThinClone,
    server: &ServerInfo,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(), Error> {
    match apply(state.schema, clone, server, &Settings::default(), tell).await? {
        None => Ok(()),
        Some(refused) => Err(Error {
            message: format!("the schema cannot be restored: {}: {}", refused.place(), refused.message),
            help: refused.hint,
        }),
    }
}

/// The command, which ends with this value.
struct Running {
    child: Child,
    place: Place,
    began: Instant,
}

impl Running {
    fn start(
        request: &Request<'_>,
        listener: &Listener,
        clone: AnnouncedClone,
        password: Option<String>,
    ) -> Result<Self, Error> {
        let AnnouncedClone { user, database } = clone;
        let password = password.unwrap_or_else(|| PASSWORD.to_owned());
        let place = Place { host: "127.0.0.1".to_owned(), port: listener.port, user, password, database };
        let child = command::start(request.command, request.folder, request.variables, &place)?;
        Ok(Self { child, place, began: Instant::now() })
    }

    /// Records what it sends, until it ends.
    async fn capture(mut self, proxy: Proxy, server: ServerInfo, started: Started) -> Result<Captured, Error> {
        let shared = proxy.shared();
        let serving = tokio::task::spawn_local(proxy.serve());
        let status = self.child.wait().await;
        let status = status.map_err(|error| Error::new(format!("cannot wait for the command: {error}")))?;
        let took = self.began.elapsed();
        let left_open = wait_for_the_last(&shared).await;
        serving.abort();
        let mut recording = std::mem::take(&mut shared.log.borrow_mut().recording);
        recording.mask();
        let (place, connections, refused_by_command) =
            (self.place, shared.accepted.get(), shared.refused_by_client.get());
        Ok(Captured { recording, status, server, place, connections, left_open, refused_by_command, took, started })
    }
}

/// A password that nobody can guess.
fn secret() -> Result<String, Error> {
    let mut bytes = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Error::new(format!("cannot make a password: {error}")))?;
    Ok(hex(&bytes))
}

/// Waits for connections that the command has left to programs that it started, or that are just being closed. Returns
/// how many are still open.
async fn wait_for_the_last(shared: &Rc<Shared>) -> usize {
    let asked = Instant::now();
    while shared.open.get() > 0 && asked.elapsed() < PATIENCE {
        tokio::time::sleep(INTERVAL).await;
    }
    shared.open.get()
}
