//! Objects in an expression on which PostgreSQL records a dependency: those that are not its own.

use crate::builtin;
use crate::catalog::{Relation, SEQUENCE_FUNCTIONS, SqlType, TypeKind};
use crate::execute::Executor;
use pgvet_syntax::ast::{Expr, ExprKind, Literal, Name, ObjectName, string_literal};
use smol_str::SmolStr;
use std::collections::BTreeSet;

/// Distinct objects, by kind and name.
pub(super) type UserObjects = BTreeSet<(&'static str, SmolStr)>;

/// Collations that PostgreSQL knows by number; others, those of the operating system included, are depended on.
pub(super) fn is_pinned_collation(name: &str) -> bool {
    matches!(name, "default" | "C" | "POSIX" | "ucs_basic" | "unicode" | "pg_c_utf8" | "pg_unicode_fast")
}

impl Executor<'_> {
    /// How many objects of the user an expression depends on. `result` is the type of the column that it is for.
    ///
    /// Source: PostgreSQL 18, `src/backend/catalog/dependency.c`, `find_expr_references_walker`.
    pub(super) fn user_objects(&mut self, table: &Relation, expression: &Expr, result: Option<SqlType>) -> usize {
        let mut found = UserObjects::new();
        self.collect_user_objects(table, expression, result, &mut found);
        found.len()
    }

    pub(super) fn collect_user_objects(
        &mut self,
        table: &Relation,
        expression: &Expr,
        result: Option<SqlType>,
        found: &mut UserObjects,
    ) {
        if let Some(result) = result {
            self.collect_coerced(expression, result, found);
        }
        let mut parts = Vec::new();
        expression.walk(&mut |part| parts.push(part));
        for part in parts {
            match &part.kind {
                ExprKind::Call(call) => {
                    let builtin = !builtin::functions(&call.name).is_empty();
                    let called = self.called_functions(call);
                    if !called.is_empty() || !builtin {
                        found.insert(("function", call.name.clone()));
                    } else if SEQUENCE_FUNCTIONS.contains(&call.name.as_str()) {
                        let named = call.arguments.first().and_then(|argument| string_literal(&argument.value));
                        found.extend(named.and_then(|name| self.relation_of_text(name)).map(|name| ("relation", name)));
                    }
                }
                ExprKind::Cast { target, operand } => {
                    let sql_type = self.resolve_type(target);
                    if !sql_type.oid.is_builtin() {
                        found.insert(("type", target.name.clone()));
                    } else if target.name == "regclass" {
                        let named = string_literal(operand).and_then(|name| self.relation_of_text(name));
                        found.extend(named.map(|name| ("relation", name)));
                    }
                }
                ExprKind::Operator { operator, operands, .. } => {
                    if builtin::operators(operator).is_empty() {
                        found.insert(("operator", operator.clone()));
                    }
                    let has_text =
                        operands.iter().any(|operand| matches!(operand.kind, ExprKind::Literal(Literal::String(_))));
                    let column = operands.iter().filter_map(Expr::as_column).find_map(|name| table.column(name));
                    if let Some(column) = column.filter(|_| has_text) {
                        self.collect_type_of_constant(column.sql_type, found);
                    }
                }
                ExprKind::Collate { collation, .. } if !is_pinned_collation(collation) => {
                    found.insert(("collation", collation.clone()));
                }
                _ => {}
            }
        }
    }

    /// A constant becomes one of the column's type; anything else is only wrapped for a domain.
    fn collect_coerced(&self, expression: &Expr, result: SqlType, found: &mut UserObjects) {
        let is_constant = string_literal(expression).is_some() || matches!(expression.kind, ExprKind::Literal(_));
        if self.is_domain(result) {
            found.extend(self.type_name(result));
        } else if is_constant {
            self.collect_type_of_constant(result, found);
        }
    }

    fn collect_type_of_constant(&self, sql_type: SqlType, found: &mut UserObjects) {
        if !sql_type.oid.is_builtin() && !self.is_domain(sql_type) {
            found.extend(self.type_name(sql_type));
        }
    }

    fn type_name(&self, sql_type: SqlType) -> Option<(&'static str, SmolStr)> {
        let definition = self.catalog.get_type(sql_type.oid);
        match definition.map(|definition| &definition.kind) {
            // Arrays of a type depend on the array type, which has no name that anybody writes.
            Some(TypeKind::Array { .. }) => definition.map(|definition| ("array type", definition.name.clone())),
            _ => Some(("type", definition.map_or_else(SmolStr::default, |definition| definition.name.clone()))),
        }
    }

    /// The name of a relation of the project that a text such as `public.s` stands for.
    fn relation_of_text(&self, text: &str) -> Option<SmolStr> {
        let (schema, name) = text.rsplit_once('.').map_or((None, text), |(schema, name)| (Some(schema), name));
        let as_name = |text: &str| Name::new(text.trim_matches('"'), pgvet_syntax::source::TextRange::default());
        let name = ObjectName { schema: schema.map(as_name), name: as_name(name) };
        self.find(&name).map(|_| name.name.text)
    }
}
