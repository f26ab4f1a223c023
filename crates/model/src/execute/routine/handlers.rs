//! Blocks with exception handlers, and errors that code raises.

use super::alternative::Alternative;
use super::value::Value;
use super::variables::assigned;
use super::{Code, Flow, conditions};
use crate::effect::Failure;
use crate::execute::{Executor, Run};
use pgvet_syntax::plpgsql::{
    Block, Condition, ConditionKind, Context, ExceptionSection, Handler, Raise, RaiseLevel, RaiseMessage, Statement,
    StatementKind, Visitor, walk,
};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// Errors that OTHERS does not catch: `assert_failure` and `query_canceled`.
///
/// Source: PostgreSQL 18, `src/pl/plpgsql/src/pl_exec.c`, `exception_matches_conditions`.
const NOT_OTHERS: [&str; 2] = ["P0004", "57014"];

impl Executor<'_> {
    /// The statements of a block with exception handlers.
    pub(super) fn protected(&mut self, statements: &[Statement], section: &ExceptionSection, code: &Code) -> Run<Flow> {
        let (catalog, session, variables) = (self.catalog.clone(), self.session.clone(), self.variables.clone());
        let outer = std::mem::take(&mut self.may_have_raised);
        let result = self.guarded(|executor| executor.statements(statements, code));
        let may_have_raised = std::mem::replace(&mut self.may_have_raised, outer);
        self.may_have_raised |= may_have_raised;
        let failure = match result {
            Ok(flow) if may_have_raised => return Ok(self.unless_handled(flow, section, &variables)),
            Ok(flow) => return Ok(flow),
            Err(failure) => failure,
        };
        let handler = section.handlers.iter().find(|handler| catches(handler, &failure) != Some(false));
        let is_certain = handler.is_none_or(|handler| catches(handler, &failure) == Some(true));
        let is_raised = failure.raised.is_some();
        let may_not_run = is_raised && (may_have_raised || !is_certain);
        if handler.is_some_and(Handler::only_notes) && !self.is_doubtful(&failure) && !may_not_run {
            self.catch_refused();
        }
        if handler.is_none() && !is_raised {
            self.doubt_unless_handled(may_have_raised);
            return Err(Failure { unless_handled: failure.unless_handled || may_have_raised, ..failure });
        }
        self.forget_refused();
        (self.catalog, self.session) = (catalog, session);
        self.variables.forget(assigned(statements));
        if may_not_run {
            let handlers = section.handlers.iter().map(|handler| Alternative::new(&handler.statements));
            return Ok(self.guarded(|executor| executor.one_of(handlers, code)));
        }
        match handler {
            Some(handler) => {
                self.handled.push(failure);
                let flow = self.statements(&handler.statements, code);
                self.handled.pop();
                flow
            }
            None => Err(failure),
        }
    }

    /// How a block ends without a refusal, unless one of its statements raises an error that a handler catches.
    fn unless_handled(&mut self, flow: Flow, section: &ExceptionSection, before: &super::Variables) -> Flow {
        let ends: Vec<End> = section.handlers.iter().map(End::of).collect();
        if !ends.iter().any(|end| end.goes_on) {
            return if flow == Flow::Next && ends.iter().any(|end| end.may_leave) { Flow::Perhaps } else { flow };
        }
        self.variables.merge(before);
        section.handlers.iter().for_each(|handler| self.variables.forget(assigned(&handler.statements)));
        let may_leave = flow != Flow::Next || ends.iter().any(|end| end.may_leave);
        if may_leave { Flow::Perhaps } else { Flow::Next }
    }

    /// The error of a RAISE EXCEPTION at `keyword`.
    ///
    /// Source: PostgreSQL 18, `src/pl/plpgsql/src/pl_exec.c`, `exec_stmt_raise`.
    pub(super) fn raised(&self, raise: &Raise, keyword: TextRange, code: &Code) -> Failure {
        if raise.message == RaiseMessage::Rethrow
            && let Some(handled) = self.handled.last()
        {
            return handled.clone();
        }
        let option = raise.options.iter().find(|option| option.name.text.eq_ignore_ascii_case("errcode"));
        let state = match (&raise.message, option) {
            (RaiseMessage::Rethrow, _) => Some("0Z002".into()),
            (_, Some(option)) => match self.text_value(&option.value, code) {
                Some(Value::Text(text)) => state_of(&text),
                _ => None,
            },
            (RaiseMessage::Condition(Condition { kind: ConditionKind::SqlState(state), .. }), None) => {
                Some(state.clone())
            }
            (RaiseMessage::Condition(Condition { kind: ConditionKind::Name(name), .. }), None) => state_of(name),
            _ => Some(SmolStr::new_static("P0001")),
        };
        let raised = Some(state.unwrap_or_default());
        Failure { raised, ..Failure::new("P0001", "the code raises an exception", keyword) }
    }
}

/// The SQLSTATE of a condition that is given by its name or its code.
fn state_of(text: &str) -> Option<SmolStr> {
    let is_code = text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    if is_code { Some(text.into()) } else { conditions::sqlstates(text).next().map(SmolStr::new_static) }
}

/// Whether a handler catches an error; `None` if that depends on an SQLSTATE that is not known.
fn catches(handler: &Handler, failure: &Failure) -> Option<bool> {
    let state = failure.raised.as_deref().unwrap_or(failure.sqlstate);
    let is = |own: &str| {
        // A class of errors such as `integrity_constraint_violation` catches all of it.
        if own.ends_with("000") { state.get(..2) == own.get(..2) } else { state == own }
    };
    let catches = handler.conditions.iter().any(|condition| match &condition.kind {
        ConditionKind::Others => !NOT_OTHERS.contains(&state),
        ConditionKind::SqlState(own) => is(own),
        ConditionKind::Name(name) => conditions::sqlstates(name).any(is),
    });
    if catches || !state.is_empty() { Some(catches) } else { None }
}

/// How a handler ends.
struct End {
    /// Whether the statements after the block run.
    goes_on: bool,
    /// Whether it may leave the code or loop around the block without an error.
    may_leave: bool,
}

impl End {
    fn of(handler: &Handler) -> Self {
        struct Leaves(bool);
        impl Visitor for Leaves {
            fn statement(&mut self, statement: &Statement, _: Context) {
                use StatementKind::{Continue, Exit, Return};
                self.0 |= matches!(statement.kind, Exit(_) | Continue(_) | Return(_));
            }
        }
        let mut leaves = Leaves(false);
        walk(&Block { statements: handler.statements.clone(), ..Block::default() }, &mut leaves);
        let goes_on = handler.statements.last().is_none_or(|last| match &last.kind {
            StatementKind::Raise(raise) => raise.level != RaiseLevel::Exception,
            StatementKind::Exit(exit) | StatementKind::Continue(exit) => exit.when.is_some(),
            StatementKind::Return(_) => false,
            _ => true,
        });
        Self { goes_on, may_leave: leaves.0 }
    }
}

/// Whether a statement itself may raise an error when it runs.
pub(super) fn may_raise(statement: &Statement) -> bool {
    let computes = |text: &str| text.contains(['(', ':', '/', '[']);
    match &statement.kind {
        StatementKind::Null | StatementKind::Block(_) | StatementKind::Raise(_) => false,
        StatementKind::GetDiagnostics(_) | StatementKind::Loop(_) | StatementKind::Case(_) => false,
        StatementKind::Assign(assign) => computes(&assign.value.text),
        StatementKind::Return(value) => value.as_ref().is_some_and(|value| computes(&value.text)),
        StatementKind::If(conditional) => conditional.branches.iter().any(|branch| computes(&branch.condition.text)),
        StatementKind::Exit(exit) | StatementKind::Continue(exit) => {
            exit.when.as_ref().is_some_and(|when| computes(&when.text))
        }
        _ => true,
    }
}
