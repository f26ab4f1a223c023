//! How many rows the rounds of loops reach together.

use super::Code;
use crate::catalog::Oid;
use crate::effect::{Rows, RowsReason};
use crate::execute::Executor;
use crate::execute::query::{Depth, Env};
use crate::expression::returned_table;
use pgvet_syntax::ast::Ast;
use pgvet_syntax::plpgsql::{Block, Context, Loop, LoopKind, Statement, StatementKind, Visitor, walk};

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
    /// How many rounds a loop has, and of what.
    pub(super) fn repeat_of(&self, a_loop: &Loop, code: &Code) -> Repeat {
        let mut repeat =
            Repeat { rounds: Rows::unknown_part(RowsReason::Loop), table: None, commits: commits(&a_loop.statements) };
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

/// Whether the statements commit what they did.
fn commits(statements: &[Statement]) -> bool {
    struct Commits(bool);
    impl Visitor for Commits {
        fn statement(&mut self, statement: &Statement, _: Context) {
            self.0 |= matches!(statement.kind, StatementKind::Commit(_));
        }
    }
    let mut found = Commits(false);
    walk(&Block { statements: statements.to_vec(), ..Block::default() }, &mut found);
    found.0
}
