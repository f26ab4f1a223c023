//! The model of statements: a catalog, a session and the effects of each statement, as PostgreSQL would have them.
//!
//! No input or output, no threads, no global state. See ARCHITECTURE.md for the way a statement takes.

#![forbid(unsafe_code)]

pub mod application;
pub mod builtin;
pub mod catalog;
pub mod checkpoint;
pub mod deployment;
pub mod effect;
pub mod execute;
pub mod expression;
pub mod incident;
pub mod memory;
pub mod migration;
pub mod place;
pub mod predict;
pub mod production;
pub mod replay;
pub mod routine;
pub mod runner;
pub mod session;
pub mod statistics;
pub mod throughput;
pub mod version;
