//! Tables that anybody can reach through an HTTP interface such as `PostgREST`'s.

use pgvet_model::catalog::{Catalog, Policy, Relation};
use pgvet_syntax::ast::{Expr, ExprKind};
use smol_str::SmolStr;

/// The roles that requests of users have: those of Supabase, and those of `PostgREST`'s own documentation.
const API_ROLES: [&str; 5] = ["anon", "authenticated", "web_anon", "anonymous", "webuser"];

/// Whether this is the role of requests from outside.
pub(super) fn is_api_role(role: &str) -> bool {
    API_ROLES.contains(&role)
}

/// The roles of an HTTP interface that may use a table, by what migrations granted or by what they grant to all tables
/// of its schema.
pub(super) fn reaching<'c>(catalog: &'c Catalog, table: &Relation) -> Vec<&'c SmolStr> {
    let mut roles: Vec<&SmolStr> = Vec::new();
    for given in catalog.privileges(table.oid) {
        if is_api_role(&given.grantee) && !roles.contains(&&given.grantee) {
            roles.push(&given.grantee);
        }
    }
    roles
}

/// Whether policies of other tables in the schema show that users reach it through an HTTP interface.
pub(super) fn is_exposed_schema(catalog: &Catalog, schema: &str) -> bool {
    let mut tables = catalog.row_secured().filter(|table| table.schema == schema);
    tables.any(|table| table.policies.iter().any(|policy| is_for_users(policy)))
}

/// A policy for a role of the interface, or one that asks who the user is (`auth.uid()`).
fn is_for_users(policy: &Policy) -> bool {
    let asks = |expr: &Expr| {
        let mut found = false;
        expr.visit(&mut |part| {
            if let pgvet_syntax::ast::Part::Expr(Expr { kind: ExprKind::Call(call), .. }) = part {
                found |= call.schema.as_ref().is_some_and(|schema| schema == "auth")
                    && matches!(call.name.as_str(), "uid" | "jwt" | "role" | "email");
            }
        });
        found
    };
    policy.roles.iter().any(|role| is_api_role(role)) || policy.using.iter().chain(&policy.check).any(|expr| asks(expr))
}
