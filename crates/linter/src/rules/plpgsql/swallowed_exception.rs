//! Handlers that catch every error and do nothing.

use crate::ast::Ast;
use crate::plpgsql::{ExceptionSection, StatementKind};
use crate::report::Reporter;
use crate::routine::{Node, RoutineContext, SqlRole, Step};
use crate::rule::declare_rule;
use crate::rules::data::handled::conditions_range;
use crate::source::TextRange;

declare_rule! {
    /// `EXCEPTION WHEN OTHERS THEN NULL` around statements that change something.
    ///
    /// ## Why it matters
    ///
    /// It was written for one error that does not matter, and hides all others: a full disk, a deadlock, a lock timeout, a
    /// column that has been renamed. What the block has done is undone, and nobody hears of it.
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
    /// Where the handler names the errors that it expects, or does anything with the error: a message, a row in a log, a
    /// result of its own. Where the block runs nothing but expressions, as functions do that try to convert a value. In a
    /// `DO` block where all it runs are `DROP FUNCTION`, `DROP TRIGGER` and the like, to clear up if that is possible.
    /// Where `exception-driven-upsert` says it.
    "swallowed-exception", Plpgsql, Warning,
    { yields_to: &[&crate::rules::data::exception_driven_upsert::RULE] }
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
        let message = "every error of this block is lost, those that nobody expects included";
        let help = help(section);
        reporter.report(conditions_range(handler), message).help(help).emit();
    }
}

fn help(section: &ExceptionSection) -> &'static str {
    if section.handlers.len() > 1 {
        "leave WHEN OTHERS out: the other handlers name what is expected"
    } else {
        "name the error that is expected, such as WHEN duplicate_object, or at least RAISE WARNING '%', SQLERRM"
    }
}

/// Does a step do more than compute a value?
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

/// Is it DROP of what nobody may need any more? DROP COLUMN is ALTER TABLE.
fn only_drops(step: &Step<'_>) -> bool {
    let mut run = step.sql.iter().filter(|sql| sql.role != SqlRole::Expression).peekable();
    run.peek().is_some() && run.all(|sql| matches!(sql.ast, Ast::Drop(_)))
}

fn is_select(word: &str) -> bool {
    word.eq_ignore_ascii_case("select")
}
