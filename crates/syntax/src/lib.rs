//! The syntax of migrations: from text to typed statements, as psql and PostgreSQL would read it.
//!
//! No input or output, no threads, no global state. See ARCHITECTURE.md for the way a statement takes.

#![forbid(unsafe_code)]

pub mod ast;
pub mod deparse;
pub mod lexer;
pub mod plpgsql;
pub mod source;
pub mod statement;
