//! Handlers that catch every error and do nothing.

use crate::report::Reporter;
use crate::rule::{RoutineContext, declare_rule};
use crate::rules::conflict::handled::conditions_range;
use pgvet_model::routine::{Node, SqlRole, Step};
use pgvet_syntax::ast::Ast;
use pgvet_syntax::plpgsql::{ExceptionSection, StatementKind};
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// `EXCEPTION WHEN OTHERS THEN NULL` around statements that change something.
    ///
    /// ## Why it matters
    ///
    /// The handler is meant for one harmless error, but it also hides all other errors: a full disk, a deadlock, a lock
    /// timeout, a renamed column. The work of the block is rolled back, and nobody notices.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE FUNCTION archive() RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     DELETE FROM events WHERE expired;
    /// EXCEPTION WHEN OTHERS THEN
    ///     NULL;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE FUNCTION archive() RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     DELETE FROM events WHERE expired;
    /// EXCEPTION WHEN lock_not_available THEN
    ///     RAISE WARNING 'not archived: %', SQLERRM;
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a handler that names the errors that it expects, or that uses the error: for a message, a row in a log, or a
    ///   different result
    /// - a block that only evaluates expressions, such as one that tries to convert a value
    /// - a `DO` block that only cleans up, with statements such as `DROP FUNCTION` and `DROP TRIGGER`
    /// - blocks that `exception-driven-upsert` reports
    "swallowed-exception", Plpgsql, Warning,
    { yields_to: &[&crate::rules::data::exception_driven_upsert::RULE.meta] }
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let steps = context.routine.steps();
    for step in &steps {
        let Node::Block(block) = step.node else { continue };
        let Some(section) = &block.exception else { continue };
        let Some(handler) = section.handlers.iter().find(|handler| handler.others().is_some()) else { continue };
        let inside = TextRange::new(block.range.start, section.keyword.start);
        let changing: Vec<_> = steps.iter().filter(|step| inside.contains(step.range()) && changes(step)).collect();
        let clears_up = context.function().is_none() && changing.iter().all(|step| only_drops(step));
        if !handler.does_nothing() || changing.is_empty() || clears_up {
            continue;
        }
        let message = "this handler discards every error of the block, including unexpected ones";
        let help = help(section);
        reporter.report(conditions_range(handler), message).help(help).emit();
    }
}

fn help(section: &ExceptionSection) -> &'static str {
    if section.handlers.len() > 1 {
        "remove WHEN OTHERS: the other handlers name the expected errors"
    } else {
        "catch only the expected error, for example with WHEN duplicate_object; or at least report every error with \
         RAISE WARNING '%', SQLERRM"
    }
}

/// Whether a step does more than compute a value.
fn changes(step: &Step<'_>) -> bool {
    match step.node {
        Node::Statement(statement) => match &statement.kind {
            StatementKind::Execute(_) | StatementKind::Perform(_) | StatementKind::Call(_) => true,
            StatementKind::Sql(sql) => !sql.text.text.trim_start().get(..6).is_some_and(is_select),
            _ => step.sql.iter().any(|sql| sql.role == SqlRole::Dynamic),
        },
        Node::Block(_) | Node::Sql(_) => false,
    }
}

/// Whether it is a DROP of an object that nobody may need any more. DROP COLUMN is ALTER TABLE.
fn only_drops(step: &Step<'_>) -> bool {
    let mut run = step.sql.iter().filter(|sql| sql.role != SqlRole::Expression).peekable();
    run.peek().is_some() && run.all(|sql| matches!(sql.ast, Ast::Drop(_)))
}

fn is_select(word: &str) -> bool {
    word.eq_ignore_ascii_case("select")
}
