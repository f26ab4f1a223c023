//! The types of a catalog, none of which is found without its schema.

use pgvet_model::builtin::Extension;
use pgvet_model::catalog::{Catalog, Function, Oid, SqlType, TypeDef};
use pgvet_model::expression::Schema;
use pgvet_syntax::ast::Query;
use smol_str::SmolStr;
use std::sync::Arc;

pub(crate) struct Types<'a>(pub(crate) &'a Catalog);

impl Schema for Types<'_> {
    fn type_named(&self, schema: Option<&str>, name: &str) -> Option<Oid> {
        self.0.type_named(schema?, name)
    }

    fn type_by_oid(&self, oid: Oid) -> Option<Arc<TypeDef>> {
        self.0.get_type(oid).cloned()
    }

    fn functions_named(&self, _: Option<&str>, _: &str) -> Vec<Arc<Function>> {
        Vec::new()
    }

    fn relation_named(&self, _: Option<&str>, _: &str) -> Option<Oid> {
        None
    }

    fn columns(&self, _: Oid) -> Option<Vec<(SmolStr, SqlType)>> {
        None
    }

    fn sql_body(&self, _: &Function) -> Option<Arc<Query>> {
        None
    }

    fn extensions(&self) -> &[&'static Extension] {
        self.0.known_extensions()
    }
}
