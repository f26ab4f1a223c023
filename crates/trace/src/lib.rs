//! Runs migrations on real servers and measures what they do.
//!
//! The only crate that talks to PostgreSQL. [`server`] also serves the tests of other crates.

mod error;
pub mod server;

pub use error::Error;
