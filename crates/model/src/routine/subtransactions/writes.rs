//! Whether code can write, so that its transaction gets an XID.

use super::Counter;
use crate::builtin::{self, Volatility};
use crate::catalog::SearchPath;
use crate::routine::{Code, Node, Routine, Sql, SqlRole, Step};
use pgvet_syntax::ast::{Ast, Expr, ExprKind, FunctionCall, Part, QueryBody};
use pgvet_syntax::plpgsql::{DynamicQuery, Statement, StatementKind};

/// Built-in functions that take an XID.
///
/// `nextval` takes one for the WAL record of every 33rd value.
const WRITING: [&str; 16] = [
    "nextval",
    "setval",
    "pg_current_xact_id",
    "txid_current",
    "lo_creat",
    "lo_create",
    "lo_from_bytea",
    "lo_import",
    "lo_open",
    "lo_put",
    "lo_unlink",
    "lo_truncate",
    "lo_truncate64",
    "lowrite",
    "pg_logical_emit_message",
    "query_to_xml",
];

impl Counter<'_, '_> {
    /// Whether any of the statements, or a function that they call, may write.
    pub(super) fn may_write(&mut self, routine: &Routine, statements: &[Statement]) -> bool {
        statements.iter().any(|statement| {
            self.statement_writes(routine, statement)
                || statement.inner().into_iter().any(|inner| self.may_write(routine, inner))
        })
    }

    fn statement_writes(&mut self, routine: &Routine, statement: &Statement) -> bool {
        let sql = routine.sql_of(statement);
        // What EXECUTE runs is not known unless its text is. Mostly it reads what somebody wants to have.
        let is_unknown = |query: &DynamicQuery| {
            routine.dynamic(&query.expression).is_none_or(|dynamic| dynamic.statements.is_empty())
        };
        let (unknown, is_wanted) = match &statement.kind {
            StatementKind::Execute(execute) if execute.into.is_none() => (is_unknown(&execute.query), false),
            StatementKind::Perform(_) | StatementKind::Call(_) => (false, false),
            _ => (false, true),
        };
        unknown || sql.iter().any(|sql| self.sql_writes(sql, &routine.search_path, is_wanted))
    }

    fn sql_writes(&mut self, sql: &Sql<'_>, search_path: &SearchPath, is_wanted: bool) -> bool {
        let is_expression = sql.role == SqlRole::Expression;
        !is_expression && changes_catalog(sql.ast) || self.ast_writes(sql.ast, search_path, is_wanted || is_expression)
    }

    /// Whether a statement may write. Its result `is_wanted` unless the code throws it away, as PERFORM does.
    fn ast_writes(&mut self, ast: &Ast, search_path: &SearchPath, is_wanted: bool) -> bool {
        let mut writes = false;
        let mut calls: Vec<&FunctionCall> = Vec::new();
        if let Ast::Call(call) = ast {
            calls.push(&call.call);
        }
        ast.visit(&mut |part| match part {
            Part::Insert(_) | Part::Update(_) | Part::Delete(_) | Part::Merge(_) => writes = true,
            Part::Query(query) => writes |= !query.locking.is_empty(),
            Part::Expr(Expr { kind: ExprKind::Call(call), .. }) => calls.push(call),
            Part::Expr(_) | Part::Read(_) => {}
        });
        let is_for_effect =
            |call: &FunctionCall| !is_wanted && outermost(ast).any(|one| one.name_range == call.name_range);
        writes || calls.into_iter().any(|call| self.call_writes(call, search_path, is_for_effect(call)))
    }

    /// A function of an extension, or one that no migration shows, may do anything. Who throws its result away calls it for
    /// what it does; others mostly want to know something.
    fn call_writes(&mut self, call: &FunctionCall, search_path: &SearchPath, is_for_effect: bool) -> bool {
        let called = self.routines.catalog.functions_called(call, search_path);
        if called.is_empty() {
            let builtin = builtin::functions_called(call);
            return if builtin.is_empty() { is_for_effect } else { WRITING.contains(&call.name.as_str()) };
        }
        called.into_iter().any(|oid| {
            let Some(function) = self.routines.catalog.get_function(oid) else { return is_for_effect };
            // PostgreSQL lets no function write that is not volatile.
            if function.volatility != Volatility::Volatile || self.open.contains(&oid) {
                return false;
            }
            if let Some(known) = self.writing.get(&oid) {
                return *known;
            }
            let Some(routine) = self.routines.function(oid).filter(|_| self.open.len() < super::MAX_DEPTH) else {
                return is_for_effect;
            };
            self.open.push(oid);
            let writes = self.routine_writes(&routine);
            self.open.pop();
            self.writing.insert(oid, writes);
            writes
        })
    }

    fn routine_writes(&mut self, routine: &Routine) -> bool {
        match &routine.code {
            Code::Sql(statements) => statements.iter().enumerate().any(|(at, (_, ast))| {
                let is_result = at + 1 == statements.len();
                changes_catalog(ast) || self.ast_writes(ast, &routine.search_path, is_result)
            }),
            Code::Plpgsql(_) => routine.steps().iter().any(|step: &Step<'_>| match step.node {
                Node::Statement(statement) => self.statement_writes(routine, statement),
                _ => step.sql.iter().any(|sql| self.sql_writes(sql, &routine.search_path, true)),
            }),
        }
    }
}

/// The calls that are a statement, or a column of its result.
fn outermost(ast: &Ast) -> impl Iterator<Item = &FunctionCall> {
    let called = match ast {
        Ast::Call(call) => Some(&call.call),
        _ => None,
    };
    let targets = match ast {
        Ast::Select(query) => match &query.body {
            QueryBody::Select(select) => select.targets.as_slice(),
            _ => &[],
        },
        _ => &[],
    };
    called.into_iter().chain(targets.iter().filter_map(|target| match &target.value.kind {
        ExprKind::Call(call) => Some(&**call),
        _ => None,
    }))
}

/// Whether a statement does more than a query or a data change.
pub(super) fn changes_catalog(ast: &Ast) -> bool {
    match ast {
        Ast::Select(query) => matches!(&query.body, QueryBody::Select(select) if select.into.is_some()),
        Ast::Copy(copy) => copy.from,
        Ast::Insert(_)
        | Ast::Update(_)
        | Ast::Delete(_)
        | Ast::Merge(_)
        | Ast::Explain(_)
        | Ast::Prepare(_)
        | Ast::Execute(_)
        | Ast::DeclareCursor(_)
        | Ast::Transaction(_)
        | Ast::Set(_)
        | Ast::Discard(_)
        | Ast::Deallocate(_)
        | Ast::Call(_)
        | Ast::Do(_)
        | Ast::GrantRole(_)
        | Ast::CreateRole(_)
        | Ast::Other(_) => false,
        _ => true,
    }
}
