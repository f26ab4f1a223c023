//! Runs migrations on real servers and measures what they do.
//!
//! The crate that talks to PostgreSQL. [`server`] also serves the tests of other crates.

mod address;
mod calibrate;
mod canary;
mod compare;
mod connection;
mod error;
mod extrapolate;
mod limit;

mod locks;
mod observation;
mod observed;
mod poll;
mod precheck;
mod probe;
mod progress;
pub mod provider;
mod publisher;
mod rank;
mod refusal;
mod release;
mod repeat;
mod resources;
mod rows;
mod runner;
mod runtime;
mod schema;
mod script;
mod secret;
mod seen;
mod send;
pub mod server;
mod settings;
mod shared;
mod snapshot;
mod trace;
mod workload;

pub use address::{Address, Verification};
pub use calibrate::{LEAST_ROWS, LEAST_TIME, calibrate};
pub use compare::{ModelDifference, compare};
pub use error::Error;
pub use extrapolate::{Extrapolation, extrapolate};
pub use limit::{Exceeded, exceeded};
pub use observation::*;
pub use observed::Observations;
pub use precheck::{Answer, precheck};
pub use progress::Progress;
pub use refusal::{Refusals, Refused};
pub use resources::Limits;
pub use rows::RowTarget;
pub use runtime::{block_on, interruption, unless_interrupted};
pub use schema::schema;
pub use script::Variables;
pub use secret::masked;
pub use settings::Settings;
pub use snapshot::snapshot;
pub use trace::{Event, run};
pub use workload::Workload;
