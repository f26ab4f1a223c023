//! From a type as written to a type.

use super::{Analyzer, typmod};
use crate::builtin;
use crate::catalog::{Oid, SqlType};
use pgvet_syntax::ast::TypeName;

impl Analyzer<'_> {
    /// The type that a name means; [`SqlType::UNKNOWN`] where it is not known or PostgreSQL would refuse it.
    pub fn resolve_type(&self, name: &TypeName) -> SqlType {
        if let Some(column) = &name.percent_type {
            return self.column_type(name, column);
        }
        let Some(element) = self.type_oid(name.schema.as_deref(), &name.name) else { return SqlType::UNKNOWN };
        let Ok(typmod) = typmod::encode(self.base_of_array(element).0, &name.modifiers, self.target) else {
            return SqlType::UNKNOWN;
        };
        if !name.is_array {
            return SqlType { oid: element, typmod };
        }
        // An array of arrays is an array: `_int4[]` is `_int4`.
        let array = if self.facts(element).is_some_and(|facts| facts.element.is_some()) {
            Some(element)
        } else {
            self.array_type(element)
        };
        array.map_or(SqlType::UNKNOWN, |oid| SqlType { oid, typmod })
    }

    fn base_of_array(&self, oid: Oid) -> Oid {
        self.facts(oid).and_then(|facts| facts.element).unwrap_or(oid)
    }

    /// The oid of a type by name: `pg_catalog` before the search path, as PostgreSQL has it unless told otherwise.
    pub(super) fn type_oid(&self, schema: Option<&str>, name: &str) -> Option<Oid> {
        let builtin = match schema {
            None => builtin::type_in("pg_catalog", name),
            Some(schema) => builtin::type_in(schema, name),
        };
        match builtin {
            // A type that the version lacks is as good as none.
            Some(row) if row.majors.contain(self.target) => Some(Oid(row.oid)),
            _ => self.schema.type_named(schema, name),
        }
    }

    /// `table.column%TYPE`; PostgreSQL keeps the type and drops the modifier.
    fn column_type(&self, name: &TypeName, column: &str) -> SqlType {
        let columns = self
            .schema
            .relation_named(name.schema.as_deref(), &name.name)
            .and_then(|relation| self.schema.columns(relation))
            .unwrap_or_default();
        columns
            .iter()
            .find(|(candidate, _)| candidate == column)
            .map_or(SqlType::UNKNOWN, |(_, sql_type)| SqlType::new(sql_type.oid))
    }
}
