//! Expressions: their types, how volatile they are, how values are coerced, what conditions imply, and what has no meaning.
//!
//! It follows PostgreSQL's parser and planner (`src/backend/parser/parse_coerce.c` and `parse_func.c`,
//! src/backend/optimizer/util/clauses.c and predtest.c) as far as the effects of DDL depend on them. Where something is
//! not known, the answer says so: [`Typed::unknown`], [`Coercion::Unknown`], [`TypeChange::Unknown`].

mod aggregate;
mod coercion;
mod common_type;
mod condition;
mod constant;
mod conversion;
mod evaluate;
mod facts;
mod format;
mod implication;
mod infer;
mod inline;
mod operator;
mod overload;
mod parameter;
mod partition;
mod query;
mod refusal;
mod resolve;
mod scope;
#[cfg(test)]
mod testing;
mod type_change;
mod typmod;
mod whole_table;

pub(crate) use aggregate::{aggregates, yields_one_row};
pub use coercion::{Coercion, Step};
pub use conversion::Refusals;
pub use evaluate::{Value, evaluate};
pub use implication::check_implies_not_null;
pub use infer::Typed;
pub use parameter::parameter_at;
pub use partition::partition_constraint;
pub use refusal::Refused;
pub use scope::{Scope, ScopeColumn, ScopeRelation};
pub use type_change::TypeChange;
pub use typmod::{
    encode as encode_typmod, format as format_builtin, is_no_op as typmod_change_is_no_op,
    numeric as precision_and_scale,
};
pub use whole_table::{returned_table, table_taken_for_one_row};

use crate::builtin::Extension;
use crate::catalog::{Domain, Function, Oid, SqlType, TypeDef};
use crate::version::Target;
use pgvet_syntax::ast::Query;
use smol_str::SmolStr;
use std::sync::Arc;

/// The part of the schema that expressions use. Names without schema are looked up along the search path; system
/// schemas are not queried.
pub trait Schema {
    /// A user-defined type.
    fn type_named(&self, schema: Option<&str>, name: &str) -> Option<Oid>;
    fn type_by_oid(&self, oid: Oid) -> Option<Arc<TypeDef>>;
    /// All user-defined functions of that name.
    fn functions_named(&self, schema: Option<&str>, name: &str) -> Vec<Arc<Function>>;
    /// A relation that a query may read.
    fn relation_named(&self, schema: Option<&str>, name: &str) -> Option<Oid>;
    /// The columns of a relation or composite type; `None` where they are not all known.
    fn columns(&self, relation: Oid) -> Option<Vec<(SmolStr, SqlType)>>;
    /// The query of a SQL function whose body is one SELECT and nothing else.
    fn sql_body(&self, function: &Function) -> Option<Arc<Query>>;
    /// The installed extensions.
    fn extensions(&self) -> &[&'static Extension];
}

/// Answers questions about expressions in one schema and one major version.
#[derive(Clone, Copy)]
pub struct Analyzer<'a> {
    pub schema: &'a dyn Schema,
    pub target: &'a Target,
}

/// The modifiers of a type are not what its type accepts, for example `varchar(0)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeModifierError;

impl<'a> Analyzer<'a> {
    pub fn new(schema: &'a dyn Schema, target: &'a Target) -> Self {
        Self { schema, target }
    }
}

fn domain_is_constrained(domain: &Domain) -> bool {
    domain.not_null || !domain.checks.is_empty()
}
