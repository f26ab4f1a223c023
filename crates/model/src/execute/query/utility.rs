//! Statements around a query: SELECT itself, EXPLAIN, PREPARE, DECLARE.

use super::{Depth, Env};
use crate::execute::{Executor, Run};
use crate::expression::table_taken_for_one_row;
use pgvet_syntax::ast::{Ast, Explain, ExprKind, IntoClause, Prepare, Query, QueryBody};
use std::sync::Arc;

impl Executor<'_> {
    /// SELECT as a statement.
    pub(crate) fn select_statement(&mut self, query: &Query) -> Run {
        if let Some(into) = into_clause(query) {
            return self.select_into(query, into);
        }
        self.run_query(query)?;
        self.run_set_configs(query);
        Ok(())
    }

    /// A query of PL/pgSQL with INTO, which stops after the first row, or the second of STRICT.
    ///
    /// Source: PostgreSQL 18, `src/pl/plpgsql/src/pl_exec.c`, `exec_stmt_execsql`.
    pub(crate) fn select_into_variables(&mut self, query: &Query) -> Run {
        let is_distinct = matches!(&query.body, QueryBody::Select(select) if select.distinct.is_some());
        let all = is_distinct || !query.order_by.is_empty();
        self.query_rows(query, &Env::new(Depth::Run), all)?;
        self.run_set_configs(query);
        if let Some(oid) = table_taken_for_one_row(query).and_then(|table| self.find(table))
            && !self.catalog.relation(oid).taken_for_one_row
        {
            self.catalog.relation_mut(oid).taken_for_one_row = true;
        }
        Ok(())
    }

    fn run_set_configs(&mut self, query: &Query) {
        let QueryBody::Select(select) = &query.body else { return };
        for target in &select.targets {
            match &target.value.kind {
                ExprKind::Call(call) if call.name == "set_config" => self.run_set_config(call),
                _ => {}
            }
        }
    }

    /// INSERT, UPDATE, DELETE and MERGE as statements, and queries inside other statements.
    pub(crate) fn read_statement(&mut self, ast: &Ast, depth: Depth) -> Run {
        let env = Env::new(depth);
        match ast {
            Ast::Select(query) | Ast::DeclareCursor(query) => self.query(query, &env),
            Ast::Insert(insert) => self.insert_rows(insert, &env),
            Ast::Update(update) => self.update_rows(update, &env),
            Ast::Delete(delete) => self.delete_rows(delete, &env),
            Ast::Merge(merge) => self.merge_rows(merge, &env),
            Ast::CreateTableAs(create) => create.query.as_ref().map_or(Ok(()), |query| self.query(query, &env)),
            _ => Ok(()),
        }
    }

    pub(crate) fn explain(&mut self, explain: &Explain) -> Run {
        if explain.analyze {
            self.statement(&explain.statement)
        } else {
            self.read_statement(&explain.statement, Depth::Plan)
        }
    }

    /// Source: PostgreSQL 18, `src/backend/commands/prepare.c`, `PrepareQuery`.
    pub(crate) fn prepare(&mut self, prepare: &Prepare) -> Run {
        self.read_statement(&prepare.statement, Depth::Rewrite)?;
        self.session.prepared.insert(prepare.name.text.clone(), Arc::new(prepare.clone()));
        Ok(())
    }
}

/// The INTO of SELECT INTO, which is in the first SELECT.
fn into_clause(query: &Query) -> Option<&IntoClause> {
    match &query.body {
        QueryBody::Select(select) => select.into.as_ref(),
        QueryBody::SetOperation { left, .. } => into_clause(left),
        QueryBody::Values(_) => None,
    }
}
