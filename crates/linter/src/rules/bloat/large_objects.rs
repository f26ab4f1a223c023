//! Evidence that large objects are used.

use crate::assumption::Assumption;
use pgvet_model::catalog::{Catalog, Column, Oid, Relation, TypeKind};
use pgvet_syntax::ast::{Ast, Expr, ExprKind, FunctionCall, Part};

/// Functions that create, fill or read large objects.
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

/// Whether a column refers to large objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refers {
    /// Its type has no other purpose.
    Surely,
    /// It is an `oid`, which can refer to any system object.
    Perhaps,
}

impl Refers {
    /// What the type of a column says, or the type of a domain.
    pub(super) fn of_column(catalog: &Catalog, column: &Column) -> Option<Self> {
        let mut oid = column.sql_type.oid;
        // A domain over a domain is newer than that.
        loop {
            if oid == OID_TYPE {
                return Some(Self::Perhaps);
            }
            let definition = catalog.get_type(oid)?;
            match &definition.kind {
                TypeKind::Assumed | TypeKind::Domain(_) | TypeKind::Base if definition.name == "lo" => {
                    return Some(Self::Surely);
                }
                TypeKind::Domain(domain) if domain.base.oid != oid => oid = domain.base.oid,
                _ => return None,
            }
        }
    }

    /// The columns of a table that may refer to large objects, or only those that certainly do if there are any.
    pub(super) fn columns<'c>(catalog: &Catalog, relation: &'c Relation) -> Vec<(&'c str, Self)> {
        let large = |column: &'c Column| Some((column.name.as_str(), Self::of_column(catalog, column)?));
        let mut columns: Vec<(&str, Self)> = relation.columns.iter().filter_map(large).collect();
        if columns.iter().any(|(_, refers)| *refers == Self::Surely) {
            columns.retain(|(_, refers)| *refers == Self::Surely);
        }
        columns
    }

    /// The assumption of a finding about such a column.
    pub(super) fn assumption(self, column: &str) -> Option<Assumption> {
        (self == Self::Perhaps).then(|| Assumption::HoldsLargeObjects { column: column.into() })
    }
}
