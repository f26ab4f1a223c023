//! Private PostgreSQL servers: the programs of a major version, and a server that lives as long as a value.
//!
//! ```no_run
//! use pgvet_trace::server::{Binaries, Server};
//!
//! let server = Server::start(&Binaries::find(Some(18))?)?;
//! assert_eq!(server.query("postgres", "SELECT 1")?, [[Some("1".to_owned())]]);
//! # Ok::<(), pgvet_trace::Error>(())
//! ```

mod binaries;
mod cluster;
mod copier;
mod copy;
mod folder;
mod leftover;
mod network;
mod process;
pub mod testing;

pub use binaries::Binaries;
pub(crate) use cluster::SUPERUSER;
pub(crate) use copy::CopiedData;
pub use leftover::{Leftovers, remove_leftovers};
pub use process::{Options, Server};
