//! Loops that go from object to object of the database: a schema has hundreds of them, where a table has millions of rows.

use super::writes;
use crate::builtin;
use crate::catalog::SearchPath;
use crate::routine::{Routine, Routines, Sql};
use pgvet_syntax::ast::{Ast, Copy, ExprKind, Insert, InsertSource, ObjectName, Part, Query};
use pgvet_syntax::plpgsql::{Loop, LoopKind, Statement};
use smol_str::SmolStr;

/// Functions that give a row for each object.
///
/// Source: PostgreSQL 18 documentation, 9.30 "Event Trigger Functions".
const OF_OBJECTS: [&str; 2] = ["pg_event_trigger_ddl_commands", "pg_event_trigger_dropped_objects"];

/// Whether a statement alters, creates or drops an object whose name is known only at run time.
fn alters_objects(routine: &Routine, statements: &[Statement]) -> bool {
    statements.iter().any(|statement| {
        let alters = |sql: &Sql<'_>| sql.dynamic.is_some() && writes::changes_catalog(sql.ast);
        routine.sql_of(statement).iter().any(alters)
            || statement.inner().into_iter().any(|inner| alters_objects(routine, inner))
    })
}

impl Routines<'_> {
    /// Whether a loop goes through the system catalogs or through a table that the project fills from them, or alters
    /// another object in each round.
    pub(super) fn goes_through_objects(&self, routine: &Routine, a_loop: &Loop) -> bool {
        if alters_objects(routine, &a_loop.statements) {
            return true;
        }
        let LoopKind::Query { query, .. } = &a_loop.kind else { return false };
        let Some(Ast::Select(query)) = routine.sql(query) else { return false };
        let path = &routine.search_path;
        self.reads_only(query, path, &|name| self.is_catalog(name, path) || self.is_filled_from_catalogs(name, path))
    }

    /// Whether a query reads such relations and nothing else, and returns at most a row for each of theirs.
    fn reads_only(&self, query: &Query, path: &SearchPath, is_such: &dyn Fn(&ObjectName) -> bool) -> bool {
        let mut ctes: Vec<&SmolStr> = Vec::new();
        let mut read: Vec<&ObjectName> = Vec::new();
        let (mut makes_rows, mut makes_objects) = (false, false);
        query.visit(&mut |part| match part {
            Part::Query(query) => {
                ctes.extend(query.with.iter().flat_map(|with| &with.ctes).map(|cte| &cte.name.text));
                makes_rows |= query.with.as_ref().is_some_and(|with| with.recursive);
            }
            Part::Read(relation) => read.push(&relation.name),
            Part::Expr(expression) => {
                if let ExprKind::Call(call) = &expression.kind {
                    if OF_OBJECTS.contains(&call.name.as_str()) {
                        makes_objects = true;
                        return;
                    }
                    let known = builtin::functions(&call.name);
                    makes_rows |= known.is_empty() || known.iter().any(|function| function.returns_set);
                    makes_rows |= !self.catalog.functions_called(call, path).is_empty();
                }
            }
            _ => {}
        });
        read.retain(|name| name.schema.is_some() || !ctes.contains(&&name.name.text));
        !makes_rows && (makes_objects || !read.is_empty()) && read.into_iter().all(is_such)
    }

    /// Whether it is a relation of `pg_catalog` or `information_schema`.
    fn is_catalog(&self, name: &ObjectName, path: &SearchPath) -> bool {
        let schema = name.schema.as_ref().map_or("pg_catalog", |schema| schema.text.as_str());
        let hidden = name.schema.is_none() && self.catalog.find_relation(name, path).is_some();
        !hidden
            && builtin::system_relation(schema, &name.name.text).is_some()
            && !builtin::is_of_large_objects(&name.name.text)
    }

    /// Whether only functions fill a table, and only from the system catalogs. Rows that a statement has inserted, or
    /// that were there before, may be anything.
    fn is_filled_from_catalogs(&self, table: &ObjectName, path: &SearchPath) -> bool {
        let relation = self.catalog.find_relation(table, path).and_then(|oid| self.catalog.get_relation(oid));
        if relation.is_none_or(|relation| !relation.known || relation.birth.filled) {
            return false;
        }
        let mut filled = false;
        let mut functions = self.catalog.functions();
        let is_such = functions.all(|function| {
            let Some(routine) = self.function(function.oid) else { return true };
            let mut sql = routine.steps().into_iter().flat_map(|step| step.sql);
            sql.all(|sql| {
                let inserts = self.inserts(sql.ast, &table.name.text, &routine.search_path);
                filled |= inserts == Some(true);
                inserts != Some(false)
            })
        });
        is_such && filled
    }

    /// Whether a statement inserts into a table of this name, and then only from the system catalogs.
    fn inserts(&self, ast: &Ast, table: &str, path: &SearchPath) -> Option<bool> {
        if let Ast::Copy(copy) = ast
            && let Copy { from: true, table: Some(into), .. } = &**copy
        {
            return (into.name.text == table).then_some(false);
        }
        let mut found: Option<bool> = None;
        let from_catalogs = |insert: &Insert| match &insert.source {
            InsertSource::Query(query) => self.reads_only(query, path, &|name| self.is_catalog(name, path)),
            InsertSource::DefaultValues => false,
        };
        ast.visit(&mut |part| match part {
            Part::Insert(insert) if insert.table.name.name.text == table => {
                found = Some(found.unwrap_or(true) && from_catalogs(insert));
            }
            Part::Merge(merge) if merge.table.name.name.text == table => found = Some(false),
            _ => {}
        });
        found
    }
}
