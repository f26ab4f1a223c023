//! Runs migrations on real servers and measures what they do.
//!
//! The only crate that talks to PostgreSQL. [`server`] also serves the tests of other crates.

mod address;
mod canary;
mod compare;
mod connection;
mod error;
mod limit;
mod locks;
mod observation;
mod poll;
mod probe;
pub mod provider;
mod release;
mod repeat;
mod rows;
mod runner;
mod script;
mod send;
pub mod server;
mod snapshot;
mod trace;

pub use address::{Address, Verification};
pub use compare::{ModelDifference, compare};
pub use error::Error;
pub use limit::{Exceeded, Limit, exceeded, parse_duration};
pub use observation::*;
pub use rows::RowTarget;
pub use script::Variables;
pub use snapshot::snapshot;
pub use trace::{Event, Settings, run};
