//! The engine of pgvet: from the text of migrations to what they do and what is wrong with them.
//!
//! No input or output, no threads, no global state. See ARCHITECTURE.md for the way a statement takes.

#![forbid(unsafe_code)]

pub mod ast;
pub mod builtin;
pub mod catalog;
pub mod check;
pub mod checkpoint;
pub mod confidence;
pub mod declared;
pub mod deployment;
pub mod diagnostic;
pub mod effect;
mod execute;
pub mod expression;
pub mod fix;
mod guard;
pub mod incident;
pub mod lexer;
mod passes;
pub mod plpgsql;
pub mod predict;
mod replay;
pub mod report;
pub mod resume;
pub mod rewrite;
pub mod routine;
pub mod rule;
pub mod rules;
pub mod runner;
pub mod session;
pub mod settings;
pub mod source;
pub mod statement;
pub mod statistics;
mod suppression;
pub mod version;
