//! The language server: what `pgvet check` says, while the migration is being written.
//!
//! The types of the protocol live only here. One thread reads messages, one writes them, and one does everything else,
//! except that the migrations before a file are read and replayed on a thread of their own.

mod actions;
mod analysis;
mod client;
mod completion;
mod diagnostics;
mod document;
mod hover;
mod inlay;
mod loader;
mod markup;
mod position;
mod requests;
mod server;
mod symbols;
mod transport;
mod uri;

use std::io;

/// Serves a client on standard input and output until it says `exit` or disconnects. Returns whether it was told to
/// shut down first.
///
/// The thread must have the stack that parsing needs: [`pgvet_workspace::STACK_SIZE`].
pub fn serve() -> io::Result<bool> {
    let (inbox, outbox, threads) = transport::start(io::stdin(), io::stdout())?;
    let ended = server::Server::new(outbox).run(&inbox);
    threads.finish();
    Ok(ended)
}
