//! The records in `fixtures`, compared with the model and with servers.

#![expect(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

mod catalog_rows;
mod deparse;
mod fuzz_workspace;
mod generated;
mod language;
mod lock_truth;
mod plans;
mod reduce;
mod rows;
mod schemas;
mod scripts;
mod subtransactions;
mod tools;
mod trace_truth;
