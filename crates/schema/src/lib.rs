//! The schema of a database as data: read from the catalog of a replay or of a server, written as SQL, compared.
//!
//! No input or output. What a side does not know is said in the value itself ([`Known::Unknown`]), and never compared
//! as if it were absent.

#![forbid(unsafe_code)]

mod alike;
mod compare;
mod diagram;
mod facets;
mod from_catalog;
mod judge;
mod kind;
pub mod narrow;
mod object;
mod sql;
#[cfg(test)]
mod testing;
mod text;
mod words;

pub use compare::{Action, Change, Comparison, NotCompared, Property, compare};
pub use diagram::mermaid;
pub use facets::COLUMN_ORDER;
pub use from_catalog::read;
pub use judge::{Drift, Severity, Sort, judge};
pub use kind::Kind;
pub use object::*;
pub use sql::{Script, alteration, difference, script};
pub use text::lines;
