//! Where a trace runs. One provider, one file.

mod scratch;

pub use scratch::{Scratch, ScratchOptions};

use crate::Error;
use std::future::Future;
use std::pin::Pin;
use tokio_postgres::Config;

/// What an asynchronous method of a trait object returns.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + 'a>>;

/// Makes databases that a migration may damage, and takes them away again.
pub trait CloneProvider {
    fn name(&self) -> &'static str;

    /// Reaches the server, or starts it.
    fn prepare(&mut self) -> Answer<'_, ServerInfo>;

    /// A fresh clone.
    fn create(&mut self) -> Answer<'_, ThinClone>;

    /// Takes one clone away, to make room.
    fn discard(&mut self, clone: ThinClone) -> Answer<'_, ()>;

    /// Takes away every clone that was made, also after errors and interruptions.
    fn destroy(&mut self) -> Answer<'_, ()>;
}

/// What server a provider works on.
#[derive(Debug, Clone)]
pub struct ServerInfo {
    pub major: u8,
    pub version: String,
    /// What figures do not mean on clones of this provider, for the report.
    pub notes: Vec<String>,
}

/// A database to run migrations on.
#[derive(Debug, Clone)]
pub struct ThinClone {
    /// How the migration connects.
    pub database: Config,
    /// How the observer connects: to another database of the same server.
    pub observer: Config,
}
