//! File IO around the engine: which files there are, in which order a migration tool runs them, and how.
//!
//! Nothing is printed here, and nothing is judged: see [`Project`].

mod against;
mod ahead;
mod apart;
mod atlas_sum;
mod baseline;
mod boundary;
mod cache;
mod check;
pub mod config;
mod dialect;
mod discovery;
mod drivers;
mod fingerprint;
mod fizz;
pub mod framework;
mod git;
mod history;
mod identity;
mod ignored;
pub mod inert;
mod init_scripts;
mod known_order;
mod layout;
mod manifest;
pub mod markup;
mod named;
mod nearby;
mod open;
mod order;
mod parallel;
mod placeholders;
mod plan;
mod prechecked;
mod problem;
mod program;
mod project;
mod psql_scripts;
mod purpose;
mod queries;
mod read;
mod reversal;
mod rollback_name;
mod roots;
mod skipped;
mod suppression;
mod texts;
mod write;

pub use against::{Applied, Observed};
pub use baseline::KnownFinding;
pub use boundary::Boundary;
pub use cache::Cache;
pub use check::Observe;
pub use fingerprint::fingerprints;
pub use git::{ChangeSelection, ChangedFiles, Revision};
pub use known_order::UnknownOrder;
pub use layout::captured;
pub use layout::{Layout, Reactions, Section, Sequence, Sign, Tool, WrittenFile, newer, sequence};
pub use open::{Histories, OpenFile, OpenStatement};
pub use plan::{Database, skipped_by_reason};
pub use prechecked::PrecheckedMigration;
pub use problem::Problem;
pub use project::{Project, ProjectFile, Request, Role};
pub use purpose::is_dump;
pub use read::{EncodingError, named_text, sql_to_run};
pub use reversal::{Reversal, migrations_folder};
pub use skipped::{SkipReason, Skipped};
pub use suppression::suppression;
pub use texts::Texts;
pub use write::{Change, create_files, create_report, write_changes};

use pgvet_syntax::statement::PARSE_STACK_BYTES;

/// Stack of every thread that touches syntax trees: what parsing needs, which may begin in the middle of a replay.
pub const STACK_SIZE: usize = PARSE_STACK_BYTES + (16 << 20);
