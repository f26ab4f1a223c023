//! Branches of code of which one runs, or none.

use super::environment::Environment;
use super::path::LeftBy;
use super::{Code, Flow};
use crate::execute::{Executor, Run};
use pgvet_syntax::plpgsql::{Branch, Conditional, Statement};
use smol_str::SmolStr;

/// A branch that may run.
pub(super) struct Alternative<'a> {
    statements: &'a [Statement],
    /// What decides about it that the schema does not show.
    environment: Option<Environment>,
}

impl<'a> Alternative<'a> {
    pub(super) fn new(statements: &'a [Statement]) -> Self {
        Self { statements, environment: None }
    }

    fn of(branch: &'a Branch) -> Self {
        Self::new(&branch.statements)
    }
}

impl Executor<'_> {
    /// IF.
    pub(super) fn conditional(&mut self, conditional: &Conditional, code: &Code) -> Run<Flow> {
        let mut possible = Vec::new();
        for branch in &conditional.branches {
            match self.decide_branch(branch, code) {
                Some(true) if possible.is_empty() => return self.statements(&branch.statements, code),
                Some(true) => {
                    possible.push(Alternative::of(branch));
                    return Ok(self.one_of(possible, code));
                }
                Some(false) => {}
                None => {
                    self.body_expression(&branch.condition, code)?;
                    let condition = code.expression(&branch.condition);
                    let environment = condition.and_then(|condition| self.environment_of(&condition));
                    possible.push(Alternative { environment, ..Alternative::of(branch) });
                }
            }
        }
        match &conditional.otherwise {
            Some(otherwise) if possible.is_empty() => self.statements(&otherwise.statements, code),
            otherwise => {
                possible.extend(otherwise.iter().map(|otherwise| Alternative::new(&otherwise.statements)));
                Ok(self.one_of(possible, code))
            }
        }
    }

    /// Branches of which one runs, or none.
    pub(super) fn one_of<'s>(&mut self, branches: impl IntoIterator<Item = Alternative<'s>>, code: &Code) -> Flow {
        let before = self.variables.clone();
        let mut after = before.clone();
        let mut flow = Flow::Next;
        let state = self.before_environment();
        let mut answers = Answers::default();
        let (decision, mut left_by) = (self.path.decide(), LeftBy::default());
        for (at, branch) in branches.into_iter().enumerate() {
            self.variables = before.clone();
            let (needed, without) = answers.of(branch.environment.as_ref());
            let entered = self.path.enter(decision, at);
            let left = self.with_setting(needed, |executor| executor.perhaps_refused(branch.statements, code));
            self.path.leave(entered);
            left_by.note(at, left);
            let left = left.unwrap_or(Flow::Next);
            if left != Flow::Next {
                flow = Flow::Perhaps;
                let unset = without.is_some().then_some(true);
                let by = without.map_or(Environment::Other, |name| Environment::Setting { name, unset });
                self.left_by = self.left_by.take().or(answers.depend_on_environment.then_some(by));
            }
            after.merge(&self.variables);
        }
        self.variables = after;
        self.path.go_on(decision, &left_by);
        if answers.depend_on_environment {
            self.doubt_since(&state);
        }
        flow
    }

    /// What follows statements that may have left the body.
    pub(super) fn rest(&mut self, statements: &[Statement], code: &Code) {
        let needed = match self.left_by.take() {
            None => {
                self.perhaps(statements, code);
                return;
            }
            Some(Environment::Setting { name, .. }) => Some(name),
            Some(Environment::Other) => None,
        };
        let before = self.before_environment();
        self.with_setting(needed, |executor| executor.perhaps(statements, code));
        self.doubt_since(&before);
    }
}

/// What the conditions of branches say so far.
#[derive(Default)]
struct Answers {
    depend_on_environment: bool,
    /// A setting without which no branch so far runs.
    refused: Option<SmolStr>,
    /// A setting without which a branch runs.
    accepted: Option<SmolStr>,
}

impl Answers {
    /// The setting that the next branch needs, and the one without which it runs.
    fn of(&mut self, environment: Option<&Environment>) -> (Option<SmolStr>, Option<SmolStr>) {
        self.depend_on_environment |= environment.is_some();
        let needed = self.accepted.clone();
        match environment {
            Some(Environment::Setting { name, unset: Some(false) }) => {
                self.refused = Some(name.clone());
                (needed.or_else(|| Some(name.clone())), None)
            }
            Some(Environment::Setting { name, unset: Some(true) }) if needed.is_none() => {
                self.accepted = Some(name.clone());
                (None, Some(name.clone()))
            }
            Some(_) => (needed, None),
            None => {
                let without = self.refused.clone().filter(|_| needed.is_none());
                (needed, without)
            }
        }
    }
}
