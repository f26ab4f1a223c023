//! Text that the rules about subtransactions share.

use crate::report::Finding;
use crate::rule::RoutineContext;
use crate::rules::conflict::handled::catches_only;
use pgvet_model::routine::subtransactions::Source;
use pgvet_model::routine::{Node, Routines};
use pgvet_syntax::ast::Ast;
use pgvet_syntax::plpgsql::{Block, Statement, StatementKind};

pub(super) fn fix_help() -> &'static str {
    "replace the EXCEPTION block: use INSERT ... ON CONFLICT for duplicates, or a WHERE clause that excludes rows that \
     would fail. Or process all rows in one statement inside a single EXCEPTION block"
}

/// Shows where the function that a source calls begins its subtransactions.
#[must_use = "a finding is recorded when it is dropped"]
pub(super) fn label_callee<'r, 'a>(
    routines: &Routines<'_>,
    source: &Source,
    mut finding: Finding<'r, 'a>,
) -> Finding<'r, 'a> {
    let mut callee = source.callee;
    // The chain of calls is short, or ends in recursion.
    for _ in 0..8 {
        let Some(routine) = callee.and_then(|oid| routines.function(oid)) else { break };
        let inside = routines.subtransactions(&routine);
        let Some(first) = inside.sources.first() else { break };
        let message = match first.callee {
            None => format!("the subtransaction, in {}", routine.name()),
            Some(_) => format!("called here, in {}", routine.name()),
        };
        finding = finding.label_in(routine.file, first.range, message);
        callee = first.callee;
    }
    finding
}

/// Whether the block of a source deletes a row if nothing refers to it, and keeps it otherwise. Usually something does,
/// and a subtransaction that fails is removed from the cache of its session.
///
/// Source: PostgreSQL 18, `src/backend/storage/ipc/procarray.c`, `XidCacheRemoveRunningXids`.
pub(super) fn deletes_what_is_unused(context: &RoutineContext<'_>, source: &Source) -> bool {
    let has_keyword = |block: &Block| block.exception.as_ref().is_some_and(|section| section.keyword == source.range);
    let deletes = |statement: &Statement| match &statement.kind {
        StatementKind::Sql(sql) => matches!(context.routine.sql(&sql.text), Some(Ast::Delete(_))),
        _ => false,
    };
    let does_nothing = |statement: &Statement| matches!(statement.kind, StatementKind::Null | StatementKind::Return(_));
    context.routine.steps().iter().any(|step| match step.node {
        Node::Block(block) if has_keyword(block) => {
            let handlers = block.exception.iter().flat_map(|section| &section.handlers);
            let only_leaves = handlers.into_iter().all(|handler| {
                catches_only(handler, "foreign_key_violation", "23503") && handler.statements.iter().all(does_nothing)
            });
            only_leaves && block.statements.iter().all(|statement| deletes(statement) || does_nothing(statement))
        }
        _ => false,
    })
}
