//! What shows that large objects are used.

use crate::ast::{Ast, TypeName};
use crate::ast::{Expr, ExprKind, FunctionCall, Part};
use crate::catalog::{Catalog, Column, Oid, TypeKind};

/// Functions that make or fill large objects, or read them.
///
/// Source: PostgreSQL 18 documentation, 33.4.
const FUNCTIONS: [&str; 14] = [
    "lo_creat",
    "lo_create",
    "lo_export",
    "lo_from_bytea",
    "lo_get",
    "lo_import",
    "lo_lseek",
    "lo_lseek64",
    "lo_open",
    "lo_put",
    "lo_truncate",
    "lo_truncate64",
    "loread",
    "lowrite",
];

/// Words in the name of a column of type `oid` that say what in the catalogs it points at.
const CATALOG_WORDS: [&str; 25] = [
    "rel",
    "table",
    "type",
    "typ",
    "func",
    "proc",
    "schema",
    "namespace",
    "nsp",
    "index",
    "idx",
    "role",
    "user",
    "owner",
    "database",
    "dbid",
    "obj",
    "class",
    "partition",
    "constraint",
    "trigger",
    "view",
    "seq",
    "attr",
    "event",
];

/// `pg_type.oid` of `oid`.
const OID_TYPE: Oid = Oid(26);

/// The calls of functions for large objects in a statement.
pub(super) fn calls(ast: &Ast) -> Vec<&FunctionCall> {
    let mut found = Vec::new();
    ast.visit(&mut |part| {
        if let Part::Expr(Expr { kind: ExprKind::Call(call), .. }) = part {
            let of_system = call.schema.as_ref().is_none_or(|schema| schema == "pg_catalog");
            if of_system && FUNCTIONS.contains(&call.name.as_str()) {
                found.push(&**call);
            }
        }
    });
    found
}

/// Does a column of that name and type as written hold large objects?
pub(super) fn is_written_as_large_object(name: &str, type_name: &TypeName) -> bool {
    match type_name.name.as_str() {
        "lo" => !type_name.is_array,
        "oid" => !points_into_catalogs(name),
        _ => false,
    }
}

/// Does a column of the catalog hold large objects?
pub(super) fn is_large_object(catalog: &Catalog, column: &Column) -> bool {
    if column.sql_type.oid == OID_TYPE {
        return !points_into_catalogs(&column.name);
    }
    let definition = catalog.get_type(column.sql_type.oid);
    definition.is_some_and(|definition| {
        definition.name == "lo" && matches!(definition.kind, TypeKind::Assumed | TypeKind::Domain(_) | TypeKind::Base)
    })
}

fn points_into_catalogs(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "oid" || CATALOG_WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::points_into_catalogs;

    #[test]
    fn names_tell_what_an_oid_points_at() {
        for name in ["oid", "relid", "table_oid", "typoid", "objoid", "owner"] {
            assert!(points_into_catalogs(name), "{name}");
        }
        for name in ["content", "photo_oid", "loid", "data", "attachment"] {
            assert!(!points_into_catalogs(name), "{name}");
        }
    }
}
