//! Dynamic SQL that nobody but PostgreSQL can read.

use crate::plpgsql::{DynamicQuery, LoopKind, OpenSource, QuerySource, StatementKind};
use crate::report::Reporter;
use crate::routine::{Node, RoutineContext};
use crate::rule::declare_rule;
use crate::source::TextRange;

declare_rule! {
    /// `EXECUTE` of a text that only run time knows, so that no rule can look at it.
    ///
    /// ## Why it matters
    ///
    /// What is not seen is not judged: the statement may lock or rewrite a table, and no finding will say so. Read such
    /// code yourself, or try it with `pgvet trace`.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE FUNCTION run(statement text) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     EXECUTE statement;
    /// END $$;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE FUNCTION clear(name text) RETURNS void LANGUAGE plpgsql AS $$
    /// BEGIN
    ///     EXECUTE format('DELETE FROM %I WHERE expired', name);
    /// END $$;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// Where the text is constant, or constant but for names and values. It is said once for each function.
    "dynamic-sql-not-checked", Plpgsql, Info,
    { recommended: false, sources: &["strong_migrations/opaque-dynamic-sql"] }
    routine = check,
}

fn check(context: &RoutineContext<'_>, reporter: &mut Reporter<'_>) {
    let mut unread: Vec<TextRange> = Vec::new();
    for step in context.routine.steps() {
        let Node::Statement(statement) = step.node else { continue };
        let Some(query) = query_of(&statement.kind) else { continue };
        let is_read = context.routine.dynamic(&query.expression).is_some_and(|dynamic| !dynamic.statements.is_empty());
        if !is_read {
            unread.push(query.keyword);
        }
    }
    let Some((first, others)) = unread.split_first() else { return };
    let message = match others.len() {
        0 => "only run time knows what this executes, so it has not been checked".to_owned(),
        more => format!("only run time knows what this and {more} more EXECUTE run, so they have not been checked"),
    };
    reporter.report(*first, message).help("read it yourself, or run it on a copy: pgvet trace").emit();
}

/// The EXECUTE of a statement.
pub(super) fn query_of(kind: &StatementKind) -> Option<&DynamicQuery> {
    match kind {
        StatementKind::Execute(execute) => Some(&execute.query),
        StatementKind::ReturnQuery(QuerySource::Dynamic(query)) => Some(query),
        StatementKind::Loop(a_loop) => match &a_loop.kind {
            LoopKind::Dynamic { query, .. } => Some(query),
            _ => None,
        },
        StatementKind::Open(open) => match &open.source {
            OpenSource::Unbound(QuerySource::Dynamic(query)) => Some(query),
            _ => None,
        },
        _ => None,
    }
}
