//! Code that a statement runs: DO blocks and functions of the project, in place.
//!
//! Statements of the body run one after the other on the same catalog; their effects belong to the statement that runs
//! the code. A condition that the catalog decides (`IF NOT EXISTS (SELECT ... FROM pg_type ...)`) is decided; of others
//! every branch is assumed to run, and a refusal in such a branch is treated as a sign that it would not.

mod alternative;
mod code;
mod condition;
mod conditions;
mod dynamic;
mod emptiness;
mod environment;
mod handlers;
mod inserts;
mod listed;
mod loops;
mod own_objects;
mod path;
mod repeat;
mod rows;
mod strings;
mod system_catalog;
#[cfg(test)]
mod tests;
mod text;
mod value;
mod variables;

use super::executed::{CodeKind, FunctionText, InFile};
use super::{Executor, Run};
use crate::builtin::Volatility;
use crate::catalog::{Function, Oid};
use crate::effect::{Failure, Limit, UnknownReason};
use alternative::Alternative;
pub(crate) use code::Bodies;
use code::Code;
pub(crate) use dynamic::may_be;
pub(super) use dynamic::may_change;
pub(crate) use environment::{Environment, UnsetSettings};
use handlers::may_raise;
pub(crate) use path::Path;
use pgvet_syntax::ast::{Ast, Do, FunctionBody, QueryBody};
use pgvet_syntax::plpgsql::texts::{self, SqlRole};
use pgvet_syntax::plpgsql::{
    self, Block, Context, CursorDeclaration, DeclarationKind, OpenSource, QuerySource, SqlText, Statement,
    StatementKind, Target, Visitor, walk,
};
use pgvet_syntax::source::TextRange;
pub(crate) use repeat::Repeat;
use smol_str::{SmolStr, ToSmolStr};
use std::sync::Arc;
pub(crate) use value::Value;
pub(crate) use variables::Variables;
use variables::{assigned, target_name};

/// The constant arguments of a call: name, if given by name, and value.
pub(crate) type Arguments = Vec<(Option<SmolStr>, Option<Value>)>;

/// Calls are followed this deep.
const MAX_DEPTH: u8 = 8;

/// Maximum number of calls of one statement that are followed: functions that call others ten times each cause many.
const MAX_CALLS: u32 = 500;

/// How a list of statements ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    /// It may have left them, so that what follows may not run.
    Perhaps,
    Exit,
    Continue,
    Return,
}

impl Executor<'_> {
    /// DO.
    pub(super) fn run_do(&mut self, statement: &Do) -> Run {
        if statement.language != "plpgsql" {
            let reason = UnknownReason::Language { function: None, language: statement.language.clone() };
            self.skip_code(reason, statement.keyword, true);
            return Ok(());
        }
        let FunctionBody::Source { text, range } = &statement.body else { return Ok(()) };
        let shown = if text.len() == (range.end - range.start) as usize {
            InFile::Shifted(range.start)
        } else {
            InFile::At(statement.keyword)
        };
        if !self.recorder.is_in_code() {
            return self.run_body(&Code::read(text), shown, CodeKind::Block);
        }
        // The text of each level is in that of all levels around it.
        self.deeper(statement.keyword, |executor| executor.run_body(&Code::read(text), shown, CodeKind::Block))
    }

    /// Runs the body of a function of the project that a statement calls at `range`.
    pub(crate) fn call_function(&mut self, oid: Oid, arguments: &Arguments, range: TextRange) -> Run {
        let Some(function) = self.catalog.get_function(oid).cloned() else { return Ok(()) };
        let parameters = self.parameters_of(&function, arguments);
        self.call_with(&function, parameters, range)
    }

    /// Runs the body of a function with these variables.
    pub(in crate::execute) fn call_with(
        &mut self,
        function: &Arc<Function>,
        parameters: Variables,
        range: TextRange,
    ) -> Run {
        let call = (function.oid, parameters.clone());
        // What a function does that calls itself in the same way is what it does anyway.
        if self.running.contains(&call) {
            return Ok(());
        }
        self.within_calls(range, |executor| {
            let outer = std::mem::replace(&mut executor.variables, parameters);
            executor.running.push(call);
            let result = executor.call_body(function, range);
            executor.running.pop();
            executor.variables = outer;
            result
        })
    }

    /// Runs a function that is called at `range`, within the bounds of what is followed.
    fn within_calls(&mut self, range: TextRange, run: impl FnOnce(&mut Self) -> Run) -> Run {
        if self.calls >= MAX_CALLS {
            self.skip_code(UnknownReason::Limit(Limit::Calls(MAX_CALLS)), range, true);
            return Ok(());
        }
        self.calls += 1;
        self.deeper(range, run)
    }

    /// Runs code that other code runs at `range`, unless it nests too deep.
    fn deeper(&mut self, range: TextRange, run: impl FnOnce(&mut Self) -> Run) -> Run {
        if self.depth >= MAX_DEPTH {
            self.skip_code(UnknownReason::Limit(Limit::CallDepth(MAX_DEPTH)), range, true);
            return Ok(());
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    /// The parameters of a function with the values that a call gives them.
    fn parameters_of(&self, function: &Function, arguments: &Arguments) -> Variables {
        let mut variables = Variables::default();
        let mut position = 0;
        for (at, parameter) in function.parameters.iter().enumerate() {
            let mut value = None;
            if parameter.mode.is_input() {
                let named = |(name, _): &&(Option<SmolStr>, Option<Value>)| name.is_some() && *name == parameter.name;
                let given = arguments.get(position).filter(|(name, _)| name.is_none());
                value = match given.or_else(|| arguments.iter().find(named)) {
                    _ if parameter.mode == pgvet_syntax::ast::ParameterMode::Variadic => None,
                    Some((_, value)) => value.clone(),
                    None => parameter.default.as_ref().and_then(|default| self.value(default)),
                };
                position += 1;
            }
            variables.set(format!("${}", at + 1).to_smolstr(), value.clone());
            if let Some(name) = &parameter.name {
                variables.set(name.clone(), value);
            }
        }
        variables
    }

    fn call_body(&mut self, function: &Arc<Function>, range: TextRange) -> Run {
        let shown = InFile::At(range);
        match &*function.body {
            FunctionBody::Source { text, .. } if function.language == "plpgsql" => {
                let code = self.bodies.code(&function.body, text);
                self.run_body(&code, shown, CodeKind::Function(function_text(function, text)))
            }
            FunctionBody::Source { text, .. } if function.language == "sql" => {
                let Some(code) = self.bodies.sql(&function.body, text) else {
                    self.skip_code(UnknownReason::Unparsed, range, function.volatility == Volatility::Volatile);
                    return Ok(());
                };
                let kind = CodeKind::Function(function_text(function, text));
                self.shown(&code.text, shown, kind, |executor| executor.run_all(&code.statements))
            }
            FunctionBody::Atomic { statements, text, .. } => {
                let code = if text.is_empty() { None } else { self.bodies.sql(&function.body, text) };
                let Some(code) = code else {
                    return self.shown(&Arc::from(""), shown, CodeKind::Function(None), |executor| {
                        statements.iter().try_for_each(|statement| executor.statement(statement))
                    });
                };
                let kind = CodeKind::Function(function_text(function, text));
                self.shown(&code.text, shown, kind, |executor| executor.run_all(&code.statements))
            }
            _ => {
                let (name, language) = (Some(function.display_name()), function.language.clone());
                let may_change = function.volatility == Volatility::Volatile;
                self.skip_code(UnknownReason::Language { function: name, language }, range, may_change);
                Ok(())
            }
        }
    }

    fn run_all(&mut self, statements: &[(SqlText, Arc<Ast>)]) -> Run {
        statements.iter().try_for_each(|(sql, statement)| self.run_in_code(statement, sql))
    }

    fn run_body(&mut self, code: &Code, shown: InFile, kind: CodeKind) -> Run {
        self.shown(&code.text, shown, kind, |executor| {
            for range in &code.unparsed {
                executor.skip_code(UnknownReason::Unparsed, *range, true);
            }
            executor.block(&code.block, code).map(|_| ())
        })
    }

    /// Runs something of a text and moves the ranges of its effects to where they are shown.
    fn shown(&mut self, text: &Arc<str>, shown: InFile, kind: CodeKind, run: impl FnOnce(&mut Self) -> Run) -> Run {
        let outer = std::mem::take(&mut self.effects);
        let running = self.running.iter().map(|(oid, _)| *oid).collect();
        let outer_text = self.recorder.enter(text, shown, kind, running);
        // What is refused in a transaction block is refused in code as well, wherever that runs.
        let in_block = std::mem::replace(&mut self.in_block, true);
        let (text_at, depth) = (self.text_at, self.path.depth());
        self.text_at = match shown {
            InFile::Shifted(by) => text_at.map(|at| at + by),
            InFile::At(_) => None,
        };
        self.doubt_strings(text);
        let result = run(self);
        self.path.end_body(depth);
        (self.in_block, self.text_at) = (in_block, text_at);
        let mut inner = std::mem::replace(&mut self.effects, outer);
        inner.move_ranges(|range| shown.range(range));
        self.recorder.leave(outer_text, |range| shown.range(range));
        self.effects.absorb(inner);
        result.map_err(|failure| Failure { range: shown.range(failure.range), ..failure })
    }

    fn block(&mut self, block: &Block, code: &Code) -> Run<Flow> {
        for declaration in &block.declarations {
            let value = match &declaration.kind {
                DeclarationKind::Variable(variable) => match &variable.default {
                    Some(default) => {
                        let value = self.text_value(default, code);
                        self.body_expression(default, code)?;
                        value
                    }
                    None => Some(Value::Null),
                },
                DeclarationKind::Alias(target) => self.variables.get(&target_name(target)).cloned(),
                DeclarationKind::Cursor(_) => None,
            };
            self.variables.set(declaration.name.text.clone(), value);
        }
        match &block.exception {
            Some(section) => self.protected(&block.statements, section, code),
            None => self.statements(&block.statements, code),
        }
    }

    fn statements(&mut self, statements: &[Statement], code: &Code) -> Run<Flow> {
        for (at, statement) in statements.iter().enumerate() {
            let before = self.catalog.has_doubts().then(|| (self.catalog.clone(), self.session.clone()));
            let flow = match (self.body_statement(statement, code), before) {
                (Err(failure), Some((catalog, session))) if self.is_doubtful(&failure) => {
                    self.note_unknown(UnknownReason::Doubt);
                    self.doubt_refused();
                    (self.catalog, self.session) = (catalog, session);
                    Flow::Next
                }
                (flow, _) => flow?,
            };
            self.may_have_raised |= may_raise(statement);
            match flow {
                Flow::Next => {}
                Flow::Perhaps => {
                    self.rest(&statements[at + 1..], code);
                    return Ok(Flow::Perhaps);
                }
                left => return Ok(left),
            }
        }
        Ok(Flow::Next)
    }

    fn body_statement(&mut self, statement: &Statement, code: &Code) -> Run<Flow> {
        self.own_expressions(statement, code)?;
        match &statement.kind {
            StatementKind::Block(block) => {
                let flow = self.block(block, code);
                // The names may be those of outer variables.
                self.variables.forget(block.declarations.iter().map(|declaration| declaration.name.text.clone()));
                return flow;
            }
            StatementKind::If(conditional) => {
                let empty = self.empty_after(conditional, code);
                let flow = self.guarded(|executor| executor.conditional(conditional, code))?;
                self.note_found_empty(empty);
                return Ok(flow);
            }
            StatementKind::Case(case) => {
                let branches = case.branches.iter().map(|branch| Alternative::new(&branch.statements));
                let otherwise = case.otherwise.iter().map(|otherwise| Alternative::new(&otherwise.statements));
                return Ok(self.guarded(|executor| executor.one_of(branches.chain(otherwise), code)));
            }
            StatementKind::Loop(a_loop) => return self.run_loop(a_loop, code),
            StatementKind::Assign(assign) => {
                let value = self.text_value(&assign.value, code);
                self.body_expression(&assign.value, code)?;
                self.variables.set(target_name(&assign.target), value);
            }
            StatementKind::Return(value) => {
                if let Some(value) = value {
                    self.body_expression(value, code)?;
                }
                return Ok(Flow::Return);
            }
            StatementKind::Exit(exit) => return Ok(self.leaves(exit, Flow::Exit, code)),
            StatementKind::Continue(exit) => return Ok(self.leaves(exit, Flow::Continue, code)),
            StatementKind::Raise(raise) if raise.level == plpgsql::RaiseLevel::Exception => {
                return Err(self.raised(raise, statement.keyword, code));
            }
            StatementKind::ReturnQuery(QuerySource::Static(sql)) => self.body_sql(sql, code)?,
            StatementKind::ReturnQuery(QuerySource::Dynamic(query)) => self.dynamic(&query.expression, true, code)?,
            StatementKind::Execute(execute) => {
                let row = self.row_of_text(&execute.query.expression, code);
                self.dynamic(&execute.query.expression, execute.into.is_some(), code)?;
                match (&execute.into, row) {
                    (Some(into), Some(row)) => self.bind(&into.targets, row),
                    (into, _) => self.forget_into(into.as_ref()),
                }
            }
            StatementKind::Perform(sql) => {
                let found = self.found(sql, code);
                self.body_sql(sql, code)?;
                if let Some(ast) = code.statement(sql) {
                    self.note_missing_functions(&ast);
                }
                self.variables.set(SmolStr::new_static("found"), found);
            }
            StatementKind::Commit(_) | StatementKind::Rollback(_) => self.end_transaction_in_code(),
            StatementKind::Call(sql) => self.body_sql(sql, code)?,
            StatementKind::Sql(sql) => self.embedded(sql, code)?,
            StatementKind::Open(open) => match &open.source {
                OpenSource::Unbound(QuerySource::Static(sql)) => self.body_sql(sql, code)?,
                OpenSource::Unbound(QuerySource::Dynamic(query)) => self.dynamic(&query.expression, true, code)?,
                OpenSource::Bound(_) => self.bound_cursor(&open.cursor, code)?,
            },
            StatementKind::Fetch(_) | StatementKind::GetDiagnostics(_) => {
                self.variables.forget(assigned(std::slice::from_ref(statement)));
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    /// EXIT and CONTINUE.
    fn leaves(&self, exit: &plpgsql::Exit, flow: Flow, code: &Code) -> Flow {
        let when = match &exit.when {
            Some(when) => code.expression(when).and_then(|condition| self.holds(&condition)),
            None => Some(true),
        };
        match when {
            Some(false) => Flow::Next,
            Some(true) if exit.label.is_none() => flow,
            _ => Flow::Perhaps,
        }
    }

    /// An SQL statement, possibly with INTO.
    fn embedded(&mut self, sql: &plpgsql::Sql, code: &Code) -> Run {
        let row = sql.into.as_ref().and_then(|_| self.row_of(&sql.text, code));
        match code.statement(&sql.text).as_deref() {
            Some(Ast::Select(query)) if sql.into.is_some() => self.select_into_variables(query)?,
            _ => self.body_sql(&sql.text, code)?,
        }
        let found = row.as_ref().map(|row| Value::boolean(!row.is_empty()));
        match (&sql.into, row) {
            (Some(into), Some(row)) if row.is_empty() => {
                into.targets.iter().for_each(|target| self.variables.set(target_name(target), Some(Value::Null)));
            }
            (Some(into), Some(row)) => self.bind(&into.targets, row),
            (into, _) => self.forget_into(into.as_ref()),
        }
        self.variables.set(SmolStr::new_static("found"), found);
        Ok(())
    }

    fn forget_into(&mut self, into: Option<&plpgsql::Into>) {
        self.variables.forget(into.iter().flat_map(|into| &into.targets).map(target_name));
    }

    /// The first row of a query, where it is known.
    fn row_of(&self, sql: &SqlText, code: &Code) -> Option<rows::Row> {
        match &*code.statement(sql)? {
            Ast::Select(query) => self.first_row(query),
            _ => None,
        }
    }

    /// What FOUND says after a query, where that is known.
    fn found(&self, sql: &SqlText, code: &Code) -> Option<Value> {
        match &*code.statement(sql)? {
            Ast::Select(query) => {
                let row = self.first_row(query).map(|row| Value::boolean(!row.is_empty()));
                row.or_else(|| self.found_rows(query))
            }
            _ => None,
        }
    }

    /// The value of an expression; `count(*) FROM t` is one.
    fn text_value(&self, sql: &SqlText, code: &Code) -> Option<Value> {
        let query = code.query(sql)?;
        match &query.body {
            QueryBody::Select(select) if select.from.is_empty() && select.filter.is_none() => match &select.targets[..]
            {
                [target] => self.kept_value(&target.value),
                _ => None,
            },
            _ => self.scalar(&query),
        }
    }

    /// Whether the condition of a branch holds, where that is known.
    fn decide_branch(&self, branch: &plpgsql::Branch, code: &Code) -> Option<bool> {
        match code.expression(&branch.condition) {
            Some(condition) => self.holds(&condition),
            None => self.text_value(&branch.condition, code).and_then(|value| value.truth()),
        }
    }

    /// Statements that may or may not run: what they do counts, a refusal does not.
    fn perhaps(&mut self, statements: &[Statement], code: &Code) -> Flow {
        self.perhaps_refused(statements, code).unwrap_or(Flow::Next)
    }

    /// The same; `None` if they are refused.
    fn perhaps_refused(&mut self, statements: &[Statement], code: &Code) -> Option<Flow> {
        let (catalog, session, variables) = (self.catalog.clone(), self.session.clone(), self.variables.clone());
        if let Ok(flow) = self.statements(statements, code) {
            self.variables.merge(&variables);
            return Some(flow);
        }
        // Had they run, the statement would have failed.
        self.forget_refused();
        self.catalog = catalog;
        self.session = session;
        self.variables = variables;
        None
    }

    /// A statement of SQL in the body.
    fn body_sql(&mut self, sql: &SqlText, code: &Code) -> Run {
        if let Some(ast) = code.statement(sql) {
            self.run_in_code(&ast, sql)
        } else {
            self.skip_code(UnknownReason::Unparsed, sql.range, true);
            Ok(())
        }
    }

    /// The expressions of a statement itself. Those of an assignment, IF and RETURN are run where their values are used.
    fn own_expressions(&mut self, statement: &Statement, code: &Code) -> Run {
        if matches!(statement.kind, StatementKind::Assign(_) | StatementKind::If(_) | StatementKind::Return(_)) {
            return Ok(());
        }
        let texts = texts::of_statement(statement).into_iter();
        texts
            .filter(|(role, _)| *role == SqlRole::Expression)
            .try_for_each(|(_, text)| self.body_expression(text, code))
    }

    /// The query of a cursor that a DECLARE binds to it.
    fn bound_cursor(&mut self, cursor: &Target, code: &Code) -> Run {
        let Some(declared) = declared_cursor(&code.block, &target_name(cursor)) else { return Ok(()) };
        self.variables.forget(declared.arguments.iter().map(|(name, _)| name.text.clone()));
        self.body_sql(&declared.query, code)
    }

    /// An expression matters for the functions that it calls and the tables that it reads.
    fn body_expression(&mut self, sql: &SqlText, code: &Code) -> Run {
        if !sql.text.contains('(') {
            return Ok(());
        }
        match code.query(sql) {
            Some(query) => self.run_query(&query),
            None => Ok(()),
        }
    }
}

/// The declaration of a cursor in a body.
fn declared_cursor(body: &Block, cursor: &str) -> Option<CursorDeclaration> {
    struct Cursors<'n>(&'n str, Option<CursorDeclaration>);
    impl Visitor for Cursors<'_> {
        fn statement(&mut self, _: &Statement, _: Context) {}

        fn block(&mut self, block: &Block, _: Context) {
            for declaration in block.declarations.iter().filter(|declaration| declaration.name.text == self.0) {
                if let DeclarationKind::Cursor(cursor) = &declaration.kind {
                    self.1.get_or_insert_with(|| cursor.clone());
                }
            }
        }
    }
    let mut found = Cursors(cursor, None);
    walk(body, &mut found);
    found.1
}

/// Where the body of a function stands, if it is written as PostgreSQL sees it.
fn function_text(function: &Function, text: &str) -> Option<FunctionText> {
    let definition = function.defined_at.as_ref()?;
    let is_verbatim = (definition.body.end - definition.body.start) as usize == text.len();
    let (name, file, start) = (function.display_name(), definition.file, definition.body.start);
    is_verbatim.then_some(FunctionText { name, file, start })
}
