//! Code that a statement runs: DO blocks and functions of the project, in place.
//!
//! Statements of the body run one after the other on the same catalog; their effects belong to the statement that runs
//! the code. A condition that the catalog decides (`IF NOT EXISTS (SELECT ... FROM pg_type ...)`) is decided; of others
//! every branch is taken to run, and a refusal in such a branch is taken for a sign that it would not.

mod branch;
mod catalog_condition;

use super::{Executor, Run, fail};
use crate::ast::{Ast, Do, FunctionBody};
use crate::catalog::{Function, Oid};
use crate::effect::{Effects, Failure};
use crate::plpgsql::{
    self, Block, BodyText, ConditionKind, Conditional, ConstantSql, Handler, Loop, LoopKind, QuerySource, SqlParser,
    SqlText, Statement, StatementKind,
};
use crate::source::TextRange;
use branch::Certainty;
use smol_str::SmolStr;
use std::sync::Arc;

/// Calls are followed this deep.
const MAX_DEPTH: u8 = 8;

/// A body that is being run.
struct Frame<'a> {
    body: BodyText<'a>,
    parser: SqlParser,
    /// Variables whose text is known.
    variables: Vec<(SmolStr, String)>,
    certainty: Certainty,
}

/// How a list of statements ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    /// RETURN, EXIT or CONTINUE, certainly.
    Left,
}

/// Where effects of a body are shown.
enum Shown {
    /// The body stands in the file: ranges shift by this much.
    Shifted(u32),
    /// The body stands elsewhere: at the call.
    At(TextRange),
}

impl Executor<'_> {
    /// DO.
    pub(super) fn run_do(&mut self, statement: &Do) -> Run {
        if statement.language != "plpgsql" {
            self.unknown(format!("a DO block in language {}", statement.language));
            return Ok(());
        }
        let FunctionBody::Source { text, range } = &statement.body else { return Ok(()) };
        let shown = if text.len() == (range.end - range.start) as usize {
            Shown::Shifted(range.start)
        } else {
            Shown::At(statement.keyword)
        };
        self.run_body(text, &shown)
    }

    /// Runs the body of a function of the project that a statement calls at `range`.
    pub(crate) fn call_function(&mut self, oid: Oid, range: TextRange) -> Run {
        let Some(function) = self.catalog.get_function(oid).cloned() else { return Ok(()) };
        if self.depth >= MAX_DEPTH {
            self.unknown(format!("calls nest deeper than {MAX_DEPTH} at {}()", function.name));
            return Ok(());
        }
        self.depth += 1;
        let result = self.call_body(&function, range);
        self.depth -= 1;
        result
    }

    fn call_body(&mut self, function: &Arc<Function>, range: TextRange) -> Run {
        match &*function.body {
            FunctionBody::Source { text, .. } if function.language == "plpgsql" => {
                self.run_body(text, &Shown::At(range))
            }
            FunctionBody::Source { text, .. } if function.language == "sql" => {
                let Ok(statements) = crate::ast::from_pg::parse_sql(text) else { return Ok(()) };
                self.shown(&Shown::At(range), |executor| executor.run_all(&statements))
            }
            FunctionBody::Atomic(statements) => self.shown(&Shown::At(range), |executor| executor.run_all(statements)),
            _ => {
                self.unknown(format!("calls {}(), which is written in {}", function.name, function.language));
                Ok(())
            }
        }
    }

    fn run_all(&mut self, statements: &[Ast]) -> Run {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn run_body(&mut self, text: &str, shown: &Shown) -> Run {
        let body = BodyText::verbatim(text, TextRange::new(0, text.len() as u32));
        let tree = plpgsql::read(&body);
        if !tree.errors.is_empty() {
            self.unknown("part of a PL/pgSQL body could not be read");
        }
        let mut frame =
            Frame { parser: SqlParser::new(text), body, variables: Vec::new(), certainty: Certainty::Certain };
        self.shown(shown, |executor| executor.block(&tree.block, &mut frame).map(|_| ()))
    }

    /// Runs something and moves the ranges of its effects to where they are shown.
    fn shown(&mut self, shown: &Shown, run: impl FnOnce(&mut Self) -> Run) -> Run {
        let outer = std::mem::take(&mut self.effects);
        // What is refused in a transaction block is refused in code as well, wherever that runs.
        let in_block = std::mem::replace(&mut self.in_block, true);
        let result = run(self);
        self.in_block = in_block;
        let mut inner = std::mem::replace(&mut self.effects, outer);
        let place = |range: TextRange| match shown {
            Shown::Shifted(by) => range.shifted(*by),
            Shown::At(range) => *range,
        };
        inner.move_ranges(place);
        self.effects.absorb(inner);
        result.map_err(|failure| Failure { range: place(failure.range), ..failure })
    }

    fn block(&mut self, block: &Block, frame: &mut Frame<'_>) -> Run<Flow> {
        for declaration in &block.declarations {
            if let plpgsql::DeclarationKind::Variable(variable) = &declaration.kind {
                if let Some(default) = &variable.default {
                    self.assign(&declaration.name.text, default, frame);
                }
            }
        }
        let Some(section) = &block.exception else { return self.statements(&block.statements, frame) };
        let (catalog, session) = (self.catalog.clone(), self.session.clone());
        match self.statements(&block.statements, frame) {
            Ok(flow) => Ok(flow),
            Err(failure) => {
                self.catalog = catalog;
                self.session = session;
                match section.handlers.iter().find(|handler| catches(handler, failure.sqlstate)) {
                    Some(handler) => self.statements(&handler.statements, frame),
                    None => Err(failure),
                }
            }
        }
    }

    fn statements(&mut self, statements: &[Statement], frame: &mut Frame<'_>) -> Run<Flow> {
        for statement in statements {
            if self.body_statement(statement, frame)? == Flow::Left {
                return Ok(Flow::Left);
            }
        }
        Ok(Flow::Next)
    }

    fn body_statement(&mut self, statement: &Statement, frame: &mut Frame<'_>) -> Run<Flow> {
        match &statement.kind {
            StatementKind::Block(block) => return self.block(block, frame),
            StatementKind::If(conditional) => return self.conditional(conditional, frame),
            StatementKind::Case(case) => {
                let branches = case.branches.iter().map(|branch| branch.statements.as_slice());
                let otherwise = case.otherwise.iter().map(|otherwise| otherwise.statements.as_slice());
                for statements in branches.chain(otherwise) {
                    self.perhaps(statements, frame);
                }
            }
            StatementKind::Loop(a_loop) => self.run_loop(a_loop, frame)?,
            StatementKind::Assign(assign) => {
                if let [name] = assign.target.names.as_slice() {
                    self.assign(name, &assign.value, frame);
                }
                self.body_expression(&assign.value, frame)?;
            }
            StatementKind::Return(value) => {
                if let Some(value) = value {
                    self.body_expression(value, frame)?;
                }
                return Ok(Flow::Left);
            }
            StatementKind::Exit(exit) | StatementKind::Continue(exit) if exit.when.is_none() => return Ok(Flow::Left),
            StatementKind::Raise(raise) if raise.level == plpgsql::RaiseLevel::Exception => {
                return fail("P0001", "the code raises an exception", statement.keyword);
            }
            StatementKind::ReturnQuery(QuerySource::Static(sql)) => self.body_sql(sql, frame)?,
            StatementKind::ReturnQuery(QuerySource::Dynamic(query)) => self.dynamic(&query.expression, frame)?,
            StatementKind::Execute(execute) => self.dynamic(&execute.query.expression, frame)?,
            StatementKind::Perform(sql) | StatementKind::Call(sql) => self.body_sql(sql, frame)?,
            StatementKind::Sql(sql) => self.body_sql(&sql.text, frame)?,
            _ => {}
        }
        Ok(Flow::Next)
    }

    fn conditional(&mut self, conditional: &Conditional, frame: &mut Frame<'_>) -> Run<Flow> {
        for branch in &conditional.branches {
            let condition = frame.parser.expression(&branch.condition).ok();
            match condition.and_then(|condition| self.decide(&condition, &frame.variables)) {
                Some(true) => return self.statements(&branch.statements, frame),
                Some(false) => {}
                None => {
                    self.body_expression(&branch.condition, frame)?;
                    self.perhaps(&branch.statements, frame);
                    frame.certainty = Certainty::Possible;
                }
            }
        }
        match &conditional.otherwise {
            Some(otherwise) if frame.certainty == Certainty::Certain => self.statements(&otherwise.statements, frame),
            Some(otherwise) => {
                self.perhaps(&otherwise.statements, frame);
                Ok(Flow::Next)
            }
            None => Ok(Flow::Next),
        }
    }

    /// Statements that may or may not run: what they do counts, a refusal does not.
    fn perhaps(&mut self, statements: &[Statement], frame: &mut Frame<'_>) {
        let (catalog, session, certainty) = (self.catalog.clone(), self.session.clone(), frame.certainty);
        if self.statements(statements, frame).is_err() {
            self.catalog = catalog;
            self.session = session;
        }
        frame.certainty = certainty;
    }

    fn run_loop(&mut self, a_loop: &Loop, frame: &mut Frame<'_>) -> Run {
        match &a_loop.kind {
            LoopKind::Query { query, .. } => self.body_sql(query, frame)?,
            LoopKind::Dynamic { query, .. } => self.dynamic(&query.expression, frame)?,
            LoopKind::Endless => {
                return self.statements(&a_loop.statements, frame).map(|_| ());
            }
            _ => {}
        }
        self.perhaps(&a_loop.statements, frame);
        Ok(())
    }

    /// A statement of SQL in the body.
    fn body_sql(&mut self, sql: &SqlText, frame: &mut Frame<'_>) -> Run {
        match frame.parser.statement(sql) {
            Ok(ast) => self.statement(&ast),
            Err(_) => {
                self.unknown("a statement in a PL/pgSQL body could not be read");
                Ok(())
            }
        }
    }

    /// An expression matters for the functions that it calls and the tables that it reads.
    fn body_expression(&mut self, sql: &SqlText, frame: &mut Frame<'_>) -> Run {
        if !sql.text.contains('(') {
            return Ok(());
        }
        match frame.parser.query(sql) {
            Ok(query) => self.run_query(&query),
            Err(_) => Ok(()),
        }
    }

    fn assign(&mut self, name: &SmolStr, value: &SqlText, frame: &mut Frame<'_>) {
        frame.variables.retain(|(existing, _)| existing != name);
        if let Some(constant) = value.constant(frame.body.source()).filter(ConstantSql::is_complete) {
            frame.variables.push((name.clone(), constant.text));
        }
    }

    /// EXECUTE: of a constant, or of a variable that holds one.
    fn dynamic(&mut self, expression: &SqlText, frame: &mut Frame<'_>) -> Run {
        let variable = || {
            let name = crate::lexer::identifier(expression.text.trim());
            frame.variables.iter().find(|(known, _)| *known == name).map(|(_, text)| text.clone())
        };
        let constant = expression.constant(frame.body.source());
        let text = match &constant {
            Some(constant) if constant.is_complete() => Some(constant.text.clone()),
            _ => variable(),
        };
        let Some(text) = text else {
            self.unknown("dynamic SQL whose text only run time knows");
            return Ok(());
        };
        let Ok(statements) = crate::ast::from_pg::parse_sql(&text) else {
            return fail("42601", "syntax error in dynamic SQL", expression.range);
        };
        self.shown(&Shown::At(expression.range), |executor| executor.run_all(&statements))
    }
}

/// Does a handler catch this SQLSTATE?
fn catches(handler: &Handler, sqlstate: &str) -> bool {
    handler.conditions.iter().any(|condition| match &condition.kind {
        ConditionKind::Others => true,
        ConditionKind::SqlState(state) => state == sqlstate,
        ConditionKind::Name(name) => branch::condition_sqlstates(name).is_some_and(|state| {
            // A class name such as `integrity_constraint_violation` catches its whole class.
            if state.ends_with("000") { sqlstate.starts_with(&state[..2]) } else { state == sqlstate }
        }),
    })
}

impl Effects {
    /// Moves every range.
    fn move_ranges(&mut self, place: impl Fn(TextRange) -> TextRange) {
        self.locks.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.rewrites.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.scans.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.index_builds.iter_mut().for_each(|effect| effect.range = place(effect.range));
        self.data_changes.iter_mut().for_each(|effect| effect.range = place(effect.range));
    }

    /// Adds the effects of code that the statement runs.
    fn absorb(&mut self, inner: Self) {
        for lock in inner.locks {
            if !self.locks.iter().any(|held| held.relation.oid == lock.relation.oid && held.mode >= lock.mode) {
                self.locks.push(lock);
            }
        }
        self.rewrites.extend(inner.rewrites);
        self.scans.extend(inner.scans);
        self.index_builds.extend(inner.index_builds);
        self.creates.extend(inner.creates);
        self.drops.extend(inner.drops);
        self.truncates.extend(inner.truncates);
        self.data_changes.extend(inner.data_changes);
        for reason in inner.unknown {
            if !self.unknown.contains(&reason) {
                self.unknown.push(reason);
            }
        }
        self.waits_for_transactions |= inner.waits_for_transactions;
    }
}
