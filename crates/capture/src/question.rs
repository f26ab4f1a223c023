//! Queries with which tools and drivers look around: they read the system catalogs or nothing.

use crate::tools::Tables;
use pgvet_model::builtin::{self, Volatility};
use pgvet_syntax::ast::{Ast, ExprKind, FunctionCall, Part, QueryBody, RelationRef};
use std::collections::BTreeSet;

/// Functions of PostgreSQL that are volatile although they leave everything as it is, and locks by which tools keep
/// each other out.
const HARMLESS: &[&str] = &[
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_advisory_unlock",
    "pg_advisory_unlock_all",
    "pg_advisory_unlock_shared",
    "pg_advisory_xact_lock",
    "pg_advisory_xact_lock_shared",
    "pg_sequence_last_value",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
    "pg_try_advisory_xact_lock",
    "pg_try_advisory_xact_lock_shared",
    "random",
    "clock_timestamp",
    "timeofday",
    "gen_random_uuid",
];

/// Whether a query reads nothing but system catalogs and the tables of the migration tool, and calls nothing that could
/// change anything.
pub(crate) fn is_question(ast: &Ast, tables: &Tables) -> bool {
    let mut with: BTreeSet<&str> = BTreeSet::new();
    let mut read: Vec<&RelationRef> = Vec::new();
    let mut changes = false;
    ast.visit(&mut |part| match part {
        Part::Query(query) => {
            changes |= matches!(&query.body, QueryBody::Select(select) if select.into.iter().next().is_some());
            with.extend(query.with.iter().flat_map(|with| with.ctes.iter().map(|cte| cte.name.text.as_str())));
        }
        Part::Read(relation) => read.push(relation),
        Part::Insert(_) | Part::Update(_) | Part::Delete(_) | Part::Merge(_) => changes = true,
        Part::Expr(value) => {
            if let ExprKind::Call(call) = &value.kind {
                changes |= !is_harmless(call);
            }
        }
    });
    let is_known = |relation: &&RelationRef| {
        let name = relation.name.name.text.as_str();
        let schema = relation.name.schema.as_ref().map(|schema| schema.text.as_str());
        match schema {
            Some(schema @ ("pg_catalog" | "information_schema")) => {
                schema == "information_schema" || builtin::system_relation(schema, name).is_some()
            }
            Some(_) => tables.is_own(name),
            None => {
                with.contains(name) || builtin::system_relation("pg_catalog", name).is_some() || tables.is_own(name)
            }
        }
    };
    !changes && read.iter().all(is_known)
}

fn is_harmless(call: &FunctionCall) -> bool {
    let is_builtin = call.schema.as_ref().is_none_or(|schema| schema == "pg_catalog" || schema == "information_schema");
    let is_stable = |found: &[builtin::BuiltinFunction]| {
        !found.is_empty() && found.iter().all(|one| one.volatility != Volatility::Volatile)
    };
    let name = call.name.as_str();
    is_builtin && (HARMLESS.contains(&name) || name == "_pg_expandarray" || is_stable(builtin::functions(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_syntax::statement::parse;

    fn is_asked(sql: &str) -> bool {
        is_question(parse(sql)[0].ast().unwrap(), &Tables::with(None))
    }

    #[test]
    fn tools_look_around_in_the_catalogs() {
        for sql in [
            "SELECT 1",
            "SELECT version()",
            "SELECT c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE pg_catalog.pg_table_is_visible(c.oid)",
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()",
            "WITH t AS (SELECT oid FROM pg_class) SELECT * FROM t",
            "SELECT pg_try_advisory_lock(42)",
            "SELECT COALESCE(pg_sequence_last_value(c.oid::regclass), 1) FROM pg_class c",
            "SELECT app, name FROM django_migrations",
        ] {
            assert!(is_asked(sql), "{sql}");
        }
    }

    #[test]
    fn what_reads_or_changes_more_is_work() {
        for sql in [
            "SELECT id FROM orders",
            "SELECT app.migrate()",
            "SELECT create_hypertable('t', 'at')",
            "SELECT setval('s', 7)",
            "SELECT relname FROM pg_class, orders",
            "WITH gone AS (DELETE FROM orders RETURNING id) SELECT count(*) FROM gone",
            "SELECT pg_terminate_backend(1)",
        ] {
            assert!(!is_asked(sql), "{sql}");
        }
    }
}
