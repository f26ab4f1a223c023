//! The PL/pgSQL reader.
//!
//! Follows the grammar of PostgreSQL 18 `src/pl/plpgsql/src/pl_gram.y`: structure is read here, and embedded SQL is cut
//! out by tokens as PL/pgSQL does it, to be parsed by PostgreSQL's own grammar ([`SqlParser`]).
//! Reading never fails as a whole; what could not be read is in [`Body::errors`].

mod body_text;
mod constant;
mod reader;
mod refusal;
mod sql_text;
pub mod texts;
mod tree;
mod walk;

#[cfg(test)]
mod tests;

pub use body_text::BodyText;
pub use constant::Specifier;
pub use constant::{ConstantSql, HOLE, Hole, HoleKind, constant_sql};
pub use reader::read;
pub use refusal::{BodyResult, refusal, refusal_of_block};
pub use sql_text::{SqlParser, SqlText};
pub use tree::*;
pub use walk::{Context, Visitor, walk};
