//! The statements of a routine in the order of the text, each with what surrounds it.

use super::{Code, Dynamic, Routine, SqlRole};
use crate::builtin::oid;
use pgvet_syntax::ast::Ast;
use pgvet_syntax::plpgsql::texts;
use pgvet_syntax::plpgsql::{
    Block, Body, Branch, Context, Else, ExceptionSection, Handler, Loop, SqlText, Statement, StatementKind,
};
use pgvet_syntax::source::TextRange;

/// A statement, or the beginning of a block.
#[derive(Debug)]
pub struct Step<'a> {
    pub node: Node<'a>,
    /// Numbers of loops, iterations, subtransactions, handlers and branches around it.
    pub context: Context,
    /// The statements around it, outermost first.
    pub around: Vec<Around<'a>>,
    /// The SQL that it runs itself, as far as it could be parsed; expressions that call nothing are skipped.
    pub sql: Vec<Sql<'a>>,
}

/// The kinds of step.
#[derive(Debug, Clone, Copy)]
pub enum Node<'a> {
    /// The beginning of a block: its SQL is that of the declarations.
    Block(&'a Block),
    /// Any other statement of PL/pgSQL.
    Statement(&'a Statement),
    /// A statement of a function in SQL.
    Sql(TextRange),
}

/// Something that statements stand in.
#[derive(Debug, Clone, Copy)]
pub enum Around<'a> {
    Loop {
        statement: &'a Statement,
        a_loop: &'a Loop,
    },
    /// The statements of a block with EXCEPTION: a subtransaction.
    Exception {
        block: &'a Block,
        section: &'a ExceptionSection,
    },
    /// A handler: its subtransaction was rolled back.
    Handler {
        block: &'a Block,
        handler: &'a Handler,
    },
    /// A branch of IF or CASE.
    Branch(&'a Branch),
    Else(&'a Else),
}

/// SQL that a statement runs.
#[derive(Debug, Clone, Copy)]
pub struct Sql<'a> {
    pub ast: &'a Ast,
    pub role: SqlRole,
    /// Where it is in the file; for EXECUTE the expression.
    pub range: TextRange,
    /// The text of EXECUTE: ranges of `ast` are offsets in it.
    pub dynamic: Option<&'a Dynamic>,
    /// The code takes one row of the result, as with INTO. Of a query PostgreSQL computes no more then, and PL/pgSQL fails
    /// where a data change returns more.
    ///
    /// Source: PostgreSQL 18, `src/pl/plpgsql/src/pl_exec.c`, `exec_stmt_execsql`; `src/backend/executor/functions.c`.
    pub one_row: bool,
}

impl Sql<'_> {
    /// The place in the file of a range of [`Sql::ast`]; for EXECUTE the literal that holds it.
    pub fn place(&self, range: TextRange) -> TextRange {
        let Some(dynamic) = self.dynamic else { return range };
        let place = dynamic.constant.as_ref().map(|constant| constant.to_source(range)).unwrap_or_default();
        if place.is_empty() { self.range } else { place }
    }
}

impl Step<'_> {
    /// The innermost loop around it.
    pub fn innermost_loop(&self) -> Option<(&Statement, &Loop)> {
        self.around.iter().rev().find_map(|around| match around {
            Around::Loop { statement, a_loop } => Some((*statement, *a_loop)),
            _ => None,
        })
    }

    /// The whole of it.
    pub fn range(&self) -> TextRange {
        match self.node {
            Node::Block(block) => block.range,
            Node::Statement(statement) => statement.range,
            Node::Sql(range) => range,
        }
    }
}

impl Routine {
    /// Every statement, outer before inner, in the order of the text.
    pub fn steps(&self) -> Vec<Step<'_>> {
        let mut walk = Walk { routine: self, around: Vec::new(), steps: Vec::new() };
        match &self.code {
            Code::Plpgsql(Body { block, .. }) => walk.block(block, Context::default()),
            Code::Sql(statements) => walk.sql(statements),
        }
        walk.steps
    }

    /// The SQL of a statement, without that of the statements inside it.
    pub fn sql_of<'a>(&'a self, statement: &'a Statement) -> Vec<Sql<'a>> {
        let one_row = match &statement.kind {
            StatementKind::Sql(sql) => sql.into.is_some(),
            StatementKind::Execute(execute) => execute.into.is_some(),
            _ => false,
        };
        let mut found = self.parsed(texts::of_statement(statement));
        found.iter_mut().for_each(|sql| sql.one_row = one_row);
        found
    }

    /// Whether a function in SQL returns one row of its last statement.
    fn gives_one_row(&self) -> bool {
        self.function.as_ref().is_some_and(|function| !function.returns_set && function.returns.oid.0 != oid::VOID)
    }

    pub(super) fn parsed<'a>(&'a self, texts: Vec<(SqlRole, &'a SqlText)>) -> Vec<Sql<'a>> {
        let mut found = Vec::new();
        for (role, text) in texts {
            let sql = |ast, dynamic| Sql { ast, role, range: text.range, dynamic, one_row: false };
            match role {
                SqlRole::Dynamic => {
                    let Some(dynamic) = self.dynamic(text) else { continue };
                    found.extend(dynamic.statements.iter().map(|ast| sql(ast, Some(dynamic))));
                    found.extend(self.sql(text).map(|ast| Sql { role: SqlRole::Expression, ..sql(ast, None) }));
                }
                SqlRole::Statement | SqlRole::Expression => found.extend(self.sql(text).map(|ast| sql(ast, None))),
            }
        }
        found
    }
}

struct Walk<'a> {
    routine: &'a Routine,
    around: Vec<Around<'a>>,
    steps: Vec<Step<'a>>,
}

impl<'a> Walk<'a> {
    fn sql(&mut self, statements: &'a [(TextRange, Ast)]) {
        for (at, (range, ast)) in statements.iter().enumerate() {
            let one_row = at + 1 == statements.len() && self.routine.gives_one_row();
            let sql = Sql { ast, role: SqlRole::Statement, range: *range, dynamic: None, one_row };
            let context = Context::default();
            self.steps.push(Step { node: Node::Sql(*range), context, around: Vec::new(), sql: vec![sql] });
        }
    }

    fn step(&mut self, node: Node<'a>, context: Context, sql: Vec<Sql<'a>>) {
        self.steps.push(Step { node, context, around: self.around.clone(), sql });
    }

    fn block(&mut self, block: &'a Block, context: Context) {
        self.step(Node::Block(block), context, self.routine.parsed(texts::of_declarations(block)));
        let Some(section) = &block.exception else { return self.statements(&block.statements, context) };
        let inside = Context { subtransactions: context.subtransactions + 1, ..context };
        self.inside(Around::Exception { block, section }, &block.statements, inside);
        let handling = Context { handlers: context.handlers + 1, ..context };
        for handler in &section.handlers {
            self.inside(Around::Handler { block, handler }, &handler.statements, handling);
        }
    }

    fn inside(&mut self, around: Around<'a>, statements: &'a [Statement], context: Context) {
        self.around.push(around);
        self.statements(statements, context);
        self.around.pop();
    }

    fn statements(&mut self, statements: &'a [Statement], context: Context) {
        for statement in statements {
            if let StatementKind::Block(block) = &statement.kind {
                self.block(block, context);
                continue;
            }
            self.step(Node::Statement(statement), context, self.routine.sql_of(statement));
            match &statement.kind {
                StatementKind::If(conditional) => {
                    self.branches(&conditional.branches, conditional.otherwise.as_ref(), context);
                }
                StatementKind::Case(case) => self.branches(&case.branches, case.otherwise.as_ref(), context),
                StatementKind::Loop(a_loop) => {
                    self.inside(Around::Loop { statement, a_loop }, &a_loop.statements, context.in_loop(a_loop));
                }
                _ => {}
            }
        }
    }

    fn branches(&mut self, branches: &'a [Branch], otherwise: Option<&'a Else>, context: Context) {
        let context = Context { branches: context.branches + 1, ..context };
        for branch in branches {
            self.inside(Around::Branch(branch), &branch.statements, context);
        }
        if let Some(otherwise) = otherwise {
            self.inside(Around::Else(otherwise), &otherwise.statements, context);
        }
    }
}
