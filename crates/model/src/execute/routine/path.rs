//! The decisions that have led to the code that is being run.

use super::Flow;
use crate::effect::{Branches, Decision};
use crate::execute::Executor;

/// The decisions so far.
#[derive(Debug, Default)]
pub(crate) struct Path {
    /// Whether effects carry them.
    is_noted: bool,
    decisions: Vec<(Decision, Until)>,
    /// The number of decisions that were made.
    pub(crate) count: u32,
}

/// How far a decision reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Branch,
    Loop,
    Body,
}

/// How branches have left the code around them, by their positions.
#[derive(Debug, Default)]
pub(super) struct LeftBy {
    /// With EXIT or CONTINUE.
    pub(super) the_loop: Vec<usize>,
    /// With RETURN, or with an error.
    pub(super) the_body: Vec<usize>,
}

impl LeftBy {
    /// Notes how the branch at a position has ended; `None` if it was refused.
    pub(super) fn note(&mut self, branch: usize, flow: Option<Flow>) {
        match flow {
            Some(Flow::Exit | Flow::Continue) => self.the_loop.push(branch),
            Some(Flow::Return) | None => self.the_body.push(branch),
            Some(Flow::Next | Flow::Perhaps) => {}
        }
    }
}

impl Path {
    /// For effects that carry their decisions, of which others have the first numbers.
    pub(crate) fn noted_from(count: u32) -> Self {
        Self { is_noted: true, count, ..Self::default() }
    }

    /// Whether somebody asks which decisions lead to a lock, and for nothing besides locks.
    pub(in crate::execute) fn is_noted(&self) -> bool {
        self.is_noted
    }

    fn branches(&self) -> Branches {
        if !self.is_noted {
            return Branches::default();
        }
        Branches::new(&self.decisions.iter().map(|(decision, _)| *decision).collect::<Vec<_>>())
    }

    /// Returns the number of a new decision.
    pub(super) fn decide(&mut self) -> u32 {
        self.count += 1;
        self.count - 1
    }

    /// Enters a branch, and returns what [`Path::leave`] takes.
    pub(super) fn enter(&mut self, number: u32, branch: usize) -> usize {
        self.decisions.push((Decision::branch(number, branch), Until::Branch));
        self.decisions.len() - 1
    }

    /// Leaves a branch. What follows still knows which decisions inside it have led out of the code.
    pub(super) fn leave(&mut self, entered: usize) {
        self.decisions.remove(entered);
    }

    /// Notes that none of the branches that have left the code leads to what follows.
    pub(super) fn go_on(&mut self, number: u32, left: &LeftBy) {
        for (branches, until) in [(&left.the_loop, Until::Loop), (&left.the_body, Until::Body)] {
            if !branches.is_empty() {
                self.decisions.push((Decision::other_than(number, branches), until));
            }
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.decisions.len()
    }

    /// What follows a loop is reached by EXIT, too.
    pub(super) fn end_loop(&mut self, depth: usize) {
        let of_loop = self.decisions.split_off(depth);
        self.decisions.extend(of_loop.into_iter().filter(|(_, until)| *until != Until::Loop));
    }

    pub(super) fn end_body(&mut self, depth: usize) {
        self.decisions.truncate(depth);
    }
}

impl Executor<'_> {
    /// The decisions that have led to what is being run.
    pub(in crate::execute) fn branches(&self) -> Branches {
        self.path.branches()
    }
}
