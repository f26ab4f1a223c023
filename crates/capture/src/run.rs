//! A run: a clone, the proxy before it, and the command.

use crate::command::{self, Place};
use crate::proxy::{Proxy, Shared, Target};
use crate::recording::Recording;
use crate::session::Log;
use pgvet_trace::provider::{CloneProvider, ServerInfo};
use pgvet_trace::{Address, Error, block_on, unless_interrupted};
use std::ffi::OsString;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long connections that the command has left open may take to end.
const PATIENCE: Duration = Duration::from_millis(500);
const INTERVAL: Duration = Duration::from_millis(10);

/// What to run, and what to keep of it.
pub struct Request<'a> {
    /// The program and its arguments, in which `{url}` and the other parts of the address are replaced.
    pub command: &'a [OsString],
    /// Further variables of its environment, as templates.
    pub variables: &'a [(String, String)],
    /// The password in the address that the command gets.
    pub password: &'a str,
    /// For which statements the values of parameters are kept.
    pub keep_values: Box<dyn Fn(&str) -> bool>,
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
    /// The time of the command.
    pub took: Duration,
}

/// Runs the command on a fresh clone, which is taken away afterwards whatever happens.
///
/// # Errors
/// No server could be started, the command could not be started, or the user interrupted it.
pub fn run(provider: &mut dyn CloneProvider, request: Request<'_>) -> Result<Captured, Error> {
    block_on(async {
        let result = unless_interrupted(Box::pin(capture(provider, request))).await;
        let result = result.map_err(|error| match provider.trouble() {
            Some(trouble) => error.with(&trouble),
            None => error,
        });
        let destroyed = provider.destroy().await;
        let captured = result?;
        destroyed.map(|()| captured)
    })
}

async fn capture(provider: &mut dyn CloneProvider, request: Request<'_>) -> Result<Captured, Error> {
    let server = provider.prepare().await?;
    let clone = provider.create().await?;
    let captured = on(&clone.database, server, request).await?;
    provider.discard(clone).await?;
    Ok(captured)
}

/// Runs the command on a database that is there.
async fn on(address: &Address, server: ServerInfo, request: Request<'_>) -> Result<Captured, Error> {
    let target = Target::new(address)?;
    let (user, database) = (target.user.clone(), target.database.clone());
    let proxy = Proxy::listen(target, Log::new(request.keep_values)).await?;
    let place =
        Place { host: "127.0.0.1".to_owned(), port: proxy.port, user, password: request.password.to_owned(), database };
    let shared = proxy.shared();
    let serving = tokio::task::spawn_local(proxy.serve());
    let started = Instant::now();
    let mut child = command::start(request.command, request.variables, &place)?;
    let status = child.wait().await.map_err(|error| Error::new(format!("cannot wait for the command: {error}")))?;
    let took = started.elapsed();
    let left_open = wait_for_the_last(&shared).await;
    serving.abort();
    let recording = std::mem::take(&mut shared.log.borrow_mut().recording);
    Ok(Captured { recording, status, server, place, connections: shared.accepted.get(), left_open, took })
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
