//! The Model Context Protocol server: what pgvet knows, for a coding assistant.
//!
//! Each call of a tool is a run of the program itself, so that an assistant learns what CI would say, and so that a call
//! ends when its time is over. Nothing is written, and paths lead to files inside of one folder only.

#![forbid(unsafe_code)]

mod call;
mod shape;
mod tools;

use call::Calls;
use pgvet_workspace::Boundary;
use rmcp::ServiceExt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tools::Tools;

/// Options of a server: its program, its folder, and its time limit.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program that tools run: `pgvet`.
    pub program: PathBuf,
    /// The folder that tools may read.
    pub root: PathBuf,
    /// The longest that one call may take.
    pub time_limit: Duration,
}

/// Serves a client on standard input and output until it closes them.
pub fn serve(options: Options) -> io::Result<()> {
    let root = options.root.canonicalize()?;
    if !root.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, format!("`{}` is not a folder", root.display())));
    }
    let boundary = Boundary::within(&root);
    let calls = Calls::new(options.program, root, options.time_limit);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let service = Tools::new(calls, boundary).serve(rmcp::transport::stdio()).await.map_err(io::Error::other)?;
        service.waiting().await.map_err(io::Error::other)
    });
    // A read of standard input cannot be ended, and nobody will answer it.
    runtime.shutdown_background();
    served.map(drop)
}
