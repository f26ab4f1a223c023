//! The schema of a database, in PostgreSQL's own words, as the migrations so far have made it.
//!
//! A [`Catalog`] is a persistent value: cloning costs a few reference counts, so a transaction's savepoints, a rule's
//! view of "before" and a second run for another major version are all plain clones.

mod constraint;
mod function;
mod index;
mod relation;
mod types;

pub use constraint::*;
pub use function::*;
pub use index::*;
pub use relation::*;
pub use types::*;

use imbl::{HashMap, OrdMap};
use smol_str::SmolStr;
use std::sync::Arc;

/// The identity of a relation, type or function. Built-in types have PostgreSQL's own; ours start at [`Oid::FIRST_USER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Oid(pub u32);

impl Oid {
    /// PostgreSQL's InvalidOid: unknown or absent.
    pub const INVALID: Self = Self(0);
    /// PostgreSQL's FirstNormalObjectId.
    pub const FIRST_USER: Self = Self(16384);

    pub fn is_valid(self) -> bool {
        self != Self::INVALID
    }

    pub fn is_builtin(self) -> bool {
        self.is_valid() && self < Self::FIRST_USER
    }
}

/// A qualified name: schema and name.
pub type QualifiedName = (SmolStr, SmolStr);

/// The schema of one database.
#[derive(Debug, Clone)]
pub struct Catalog {
    next_oid: u32,
    schemas: OrdMap<SmolStr, ()>,
    relations: HashMap<Oid, Arc<Relation>>,
    relation_names: HashMap<QualifiedName, Oid>,
    types: HashMap<Oid, Arc<TypeDef>>,
    type_names: HashMap<QualifiedName, Oid>,
    functions: HashMap<Oid, Arc<Function>>,
    function_names: HashMap<QualifiedName, Vec<Oid>>,
    publications: OrdMap<SmolStr, Arc<Publication>>,
    extensions: OrdMap<SmolStr, ()>,
    statistics: OrdMap<QualifiedName, Oid>,
    /// Objects were used that no statement created, so what is missing may exist all the same.
    incomplete: bool,
}
