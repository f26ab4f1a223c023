//! Functions, types and relations that exist although no statement of the project creates them: PostgreSQL's own, and
//! those of extensions whose objects are known.

use crate::builtin::{self, BuiltinTypeKind, Extension};
use crate::execute::Executor;

impl Executor<'_> {
    /// Whether there is a function of this name in one of the schemas.
    pub(super) fn has_function_named(&self, name: &str, is_meant: impl Fn(&str) -> bool) -> bool {
        let of_server = || {
            let mut functions = builtin::functions(name).iter();
            is_meant("pg_catalog") && functions.any(|function| function.majors.contain(self.target))
        };
        let is_named = |extension: &Extension| extension.functions.iter().any(|function| function.name == name);
        self.catalog.functions_with_name(name).any(|function| is_meant(&function.schema))
            || of_server()
            || self.is_of_extension(&is_meant, is_named)
    }

    /// Whether PostgreSQL itself or an extension has a type of this name, and of this kind if there is one.
    pub(super) fn has_own_type(
        &self,
        name: &str,
        kind: Option<BuiltinTypeKind>,
        is_meant: impl Fn(&str) -> bool,
    ) -> bool {
        let is_kind = |own: BuiltinTypeKind| kind.is_none_or(|kind| kind == own);
        let of_server = |schema: &&str| {
            let row = builtin::type_in(schema, name).filter(|row| is_kind(row.kind));
            is_meant(schema) && row.is_some_and(|row| row.majors.contain(self.target))
        };
        let is_named = |extension: &Extension| extension.types.iter().any(|row| row.name == name && is_kind(row.kind));
        SYSTEM_SCHEMAS.iter().any(of_server) || self.is_of_extension(&is_meant, is_named)
    }

    /// Whether PostgreSQL itself or an extension has a relation of this name.
    pub(super) fn has_own_relation(&self, name: &str, is_meant: impl Fn(&str) -> bool) -> bool {
        let of_server = |schema: &&str| is_meant(schema) && builtin::system_relation(schema, name).is_some();
        SYSTEM_SCHEMAS.iter().any(of_server)
            || self.is_of_extension(&is_meant, |extension| extension.relations.contains(&name))
    }

    fn is_of_extension(&self, is_meant: impl Fn(&str) -> bool, has: impl Fn(&Extension) -> bool) -> bool {
        let is_there = |name: &str| self.catalog.extension(name).is_some_and(|schema| is_meant(schema));
        self.catalog.known_extensions().iter().any(|extension| has(extension) && is_there(extension.name))
    }
}

const SYSTEM_SCHEMAS: [&str; 2] = ["pg_catalog", "information_schema"];
