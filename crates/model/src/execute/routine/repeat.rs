//! How many rows the rounds of loops reach together.

use super::Code;
use crate::catalog::Oid;
use crate::effect::{Rows, RowsReason};
use crate::execute::Executor;
use crate::execute::query::{Depth, Env};
use crate::expression::returned_table;
use pgvet_syntax::ast::Ast;
use pgvet_syntax::plpgsql::{Conditional, Loop, LoopKind, Statement, StatementKind};

/// A loop whose body is run once, for all of its rounds.
#[derive(Debug, Clone)]
pub(crate) struct Repeat {
    rounds: Rows,
    /// The table whose rows it goes through.
    table: Option<Oid>,
    /// Each round is a transaction of its own.
    commits: bool,
}

impl Executor<'_> {
    /// Whether the statements can commit what they did. A branch whose condition is known to be false does not run.
    fn commits(&self, statements: &[Statement], code: &Code) -> bool {
        statements.iter().any(|statement| match &statement.kind {
            StatementKind::Commit(_) => true,
            StatementKind::Block(block) => self.commits(&block.statements, code),
            StatementKind::Loop(inner) => self.commits(&inner.statements, code),
            StatementKind::Case(case) => {
                let branches = case.branches.iter().map(|branch| &branch.statements);
                let otherwise = case.otherwise.iter().map(|otherwise| &otherwise.statements);
                branches.chain(otherwise).any(|statements| self.commits(statements, code))
            }
            StatementKind::If(conditional) => self.branch_commits(conditional, code),
            _ => false,
        })
    }

    fn branch_commits(&self, conditional: &Conditional, code: &Code) -> bool {
        for branch in &conditional.branches {
            match self.decide_branch(branch, code) {
                Some(false) => {}
                Some(true) => return self.commits(&branch.statements, code),
                None if self.commits(&branch.statements, code) => return true,
                None => {}
            }
        }
        conditional.otherwise.as_ref().is_some_and(|otherwise| self.commits(&otherwise.statements, code))
    }

    /// How many rounds a loop has, and of what.
    pub(super) fn repeat_of(&self, a_loop: &Loop, code: &Code) -> Repeat {
        let mut repeat = Repeat {
            rounds: Rows::unknown_part(RowsReason::Loop),
            table: None,
            commits: self.commits(&a_loop.statements, code),
        };
        match &a_loop.kind {
            LoopKind::Query { query, .. } => {
                if let Some(Ast::Select(query)) = code.statement(query).as_deref() {
                    repeat.rounds = self.rows_of_query(query, &Env::new(Depth::Run));
                    repeat.table = returned_table(query).and_then(|table| self.find(table));
                }
            }
            LoopKind::Integer { from, to, .. } => {
                if let (Some(from), Some(to)) = (self.integer(from, code), self.integer(to, code)) {
                    repeat.rounds = Rows::at_most(from.abs_diff(to).saturating_add(1), RowsReason::Listed);
                }
            }
            _ => {}
        }
        repeat
    }

    /// Whether the rows of a statement are those of all of its runs together. A function may be called again, and of a loop that
    /// commits only one round is counted.
    pub(in crate::execute) fn is_run_once(&self) -> bool {
        self.running.is_empty() && !self.repeats.iter().any(|repeat| repeat.commits)
    }

    /// How many rows of a table a statement reaches with all rounds of the loops around it, in one transaction.
    pub(in crate::execute) fn repeated(&self, table: Oid, rows: Rows) -> Rows {
        let mut all = rows;
        for repeat in self.repeats.iter().rev() {
            if repeat.commits {
                if all.reason == RowsReason::GivenAtRunTime {
                    all.reason = RowsReason::Batch;
                }
                break;
            }
            all = match (all.bound(), repeat.rounds.bound()) {
                (None, _) => continue,
                (Some(each), Some(rounds)) => Rows::at_most(each.saturating_mul(rounds), all.reason),
                (Some(_), None) if repeat.table == Some(table) && repeat.rounds.is_whole() => {
                    Rows::new(repeat.rounds.extent, RowsReason::LoopOverTable)
                }
                (Some(_), None) => Rows::unknown_part(RowsReason::Loop),
            };
        }
        all
    }
}
