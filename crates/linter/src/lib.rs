//! The linter: rules over the effects of statements in migrations, and fixes for their findings.
//!
//! No input or output, no threads, no global state. See ARCHITECTURE.md for the way a statement takes.

#![forbid(unsafe_code)]

pub mod assumption;
pub mod cause;
pub mod check;
mod comment;
pub mod confidence;
pub mod declared;
pub mod diagnostic;
pub mod fix;
mod guard;
pub mod meta;
pub mod passes;
pub mod phase;
pub mod refusal;
pub mod report;
pub mod repository;
pub mod resume;
pub mod rewrite;
pub mod row_counts;
pub mod rule;
pub mod rules;
pub mod settings;
pub mod severity;
mod suppression;
