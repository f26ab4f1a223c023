//! The smallest migrations that still show what the user names.
//!
//! [`reduce`] removes files, statements and parts of statements as long as an [`Oracle`] says that the rest still shows
//! it: a finding, a lock, an error of a server, the output of a query.

mod document;
mod edits;
mod grammar;
mod minimize;
mod oracle;
mod search;
mod size;
mod tree;

pub use document::Document;
pub use oracle::{
    DifferenceOracle, FindingOracle, LockOracle, Oracle, ServerOracle, Wanted, WantedError, WantedLock, WantedOutput,
};
pub use search::{Control, End, NoReduction, Progress, Reduction, reduce};
pub use size::Size;
pub use tree::{WrittenAgain, is_same_statement, written_again};
