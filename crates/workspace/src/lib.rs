//! File IO around the engine: which files there are, in which order a migration tool runs them, and how.
//!
//! Nothing is printed here, and nothing is judged: see [`Project`].

mod baseline;
mod cache;
pub mod config;
mod discovery;
mod fingerprint;
mod git;
mod identity;
mod layout;
mod open;
mod order;
mod parallel;
mod placeholders;
mod plan;
mod project;
mod read;
mod roots;
mod texts;
mod write;

pub use baseline::KnownFinding;
pub use cache::Cache;
pub use discovery::Problem;
pub use fingerprint::fingerprints;
pub use git::ChangeSelection;
pub use layout::{Layout, Section, Sequence, Sign, Tool, WrittenFile, newer, sequence};
pub use open::{Histories, OpenFile, OpenStatement};
pub use plan::Database;
pub use project::{Project, ProjectFile, Request, Role};
pub use read::EncodingError;
pub use texts::Texts;
pub use write::{Change, create_files, write_changes};

/// Stack of every thread that touches syntax trees: an expression may be nested some ten thousand levels deep.
pub const STACK_SIZE: usize = 64 << 20;
