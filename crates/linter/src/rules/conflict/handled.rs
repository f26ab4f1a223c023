//! INSERTs whose failure a handler expects.

use pgvet_model::routine::{Around, Step};
use pgvet_syntax::plpgsql::{Block, Condition, ConditionKind, Handler, RaiseLevel, Statement, StatementKind};
use pgvet_syntax::source::TextRange;

/// The innermost block around a step whose handlers catch a violation of a unique index, with that handler.
pub(crate) fn handler_of<'a>(step: &Step<'a>) -> Option<(&'a Block, &'a Handler)> {
    step.around.iter().rev().find_map(|around| match *around {
        Around::Exception { block, section } => {
            let handler = section.handlers.iter().find(|handler| handler.conditions.iter().any(catches))?;
            Some((block, handler))
        }
        _ => None,
    })
}

/// Source: PostgreSQL 18 documentation, 41.6.8 and appendix A: a class of errors catches all of it.
fn catches(condition: &Condition) -> bool {
    match &condition.kind {
        ConditionKind::Name(name) => {
            name.eq_ignore_ascii_case("unique_violation") || name.eq_ignore_ascii_case("integrity_constraint_violation")
        }
        ConditionKind::SqlState(state) => state == "23505" || state == "23000",
        ConditionKind::Others => true,
    }
}

/// Whether a handler catches only violations of unique indexes.
pub(crate) fn is_only_unique(handler: &Handler) -> bool {
    catches_only(handler, "unique_violation", "23505")
}

/// Whether a handler catches only the error with this name and SQLSTATE.
pub(crate) fn catches_only(handler: &Handler, name: &str, sqlstate: &str) -> bool {
    handler.conditions.iter().all(|condition| match &condition.kind {
        ConditionKind::Name(own) => own.eq_ignore_ascii_case(name),
        ConditionKind::SqlState(own) => own == sqlstate,
        ConditionKind::Others => false,
    })
}

/// Whether a handler raises its own error, or the same error again, in any branch.
pub(crate) fn raises(statements: &[Statement]) -> bool {
    statements.iter().any(|statement| match &statement.kind {
        StatementKind::Raise(raise) => raise.level == RaiseLevel::Exception,
        StatementKind::If(conditional) => {
            conditional.branches.iter().any(|branch| raises(&branch.statements))
                || conditional.otherwise.as_ref().is_some_and(|otherwise| raises(&otherwise.statements))
        }
        StatementKind::Case(case) => {
            case.branches.iter().any(|branch| raises(&branch.statements))
                || case.otherwise.as_ref().is_some_and(|otherwise| raises(&otherwise.statements))
        }
        StatementKind::Loop(a_loop) => raises(&a_loop.statements),
        StatementKind::Block(block) => raises(&block.statements),
        _ => false,
    })
}

/// The words `WHEN unique_violation OR ...`.
pub(crate) fn conditions_range(handler: &Handler) -> TextRange {
    handler.conditions.iter().fold(handler.when, |range, condition| range.cover(condition.range))
}
