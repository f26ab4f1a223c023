//! Code that checks whether a row exists before it inserts it.

use crate::rule::RoutineContext;
use pgvet_model::catalog::Oid;
use pgvet_model::routine::{Node, SqlRole, Step};
use pgvet_syntax::ast::{Ast, ExprKind, Part};
use pgvet_syntax::plpgsql::{SqlText, StatementKind};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;

/// How the code looks for the row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard {
    /// The SELECT or UPDATE, or the condition that holds it.
    pub(crate) question: TextRange,
    /// It is an UPDATE that found no row.
    pub(crate) by_update: bool,
}

/// The question that decides whether the step at `before` runs.
pub(crate) fn guard_of(context: &RoutineContext<'_>, steps: &[Step<'_>], before: usize, table: Oid) -> Option<Guard> {
    let mut asked: Option<Guard> = None;
    let mut answers: FxHashSet<SmolStr> = FxHashSet::default();
    for step in &steps[..before] {
        let touched = touches(context, step, table);
        if let Node::Statement(statement) = step.node {
            let conditions: Vec<&SqlText> = match &statement.kind {
                StatementKind::If(conditional) => conditional.branches.iter().map(|branch| &branch.condition).collect(),
                StatementKind::Exit(exit) | StatementKind::Continue(exit) => exit.when.iter().collect(),
                _ => Vec::new(),
            };
            if !conditions.is_empty() {
                if touched.is_some() {
                    return Some(Guard { question: conditions[0].range, by_update: false });
                }
                if asked.is_some() && conditions.iter().any(|condition| mentions(&condition.text, &answers)) {
                    return asked;
                }
                continue;
            }
            match &statement.kind {
                StatementKind::Assign(assign) if touched.is_some() => {
                    answers.extend(assign.target.names.first().cloned());
                }
                StatementKind::Sql(sql) => answers.extend(
                    sql.into.iter().flat_map(|into| &into.targets).filter_map(|target| target.names.first().cloned()),
                ),
                StatementKind::GetDiagnostics(items) => {
                    answers.extend(items.items.iter().filter_map(|(target, _)| target.names.first().cloned()));
                }
                _ => {}
            }
        }
        if let Some(by_update) = touched {
            answers.insert(SmolStr::new_static("found"));
            asked = Some(Guard { question: step.range(), by_update });
        }
    }
    None
}

/// Whether a step reads (`false`) or updates (`true`) the table.
fn touches(context: &RoutineContext<'_>, step: &Step<'_>, table: Oid) -> Option<bool> {
    let mut found = None;
    for sql in step.sql.iter().filter(|sql| sql.role != SqlRole::Dynamic) {
        sql.ast.visit(&mut |part| match part {
            Part::Read(read) if context.relation(&read.name).is_some_and(|relation| relation.oid == table) => {
                found = found.or(Some(false));
            }
            Part::Update(update)
                if context.relation(&update.table.name).is_some_and(|relation| relation.oid == table) =>
            {
                found = Some(true);
            }
            _ => {}
        });
    }
    found
}

/// Whether a text contains one of the words.
fn mentions(text: &str, names: &FxHashSet<SmolStr>) -> bool {
    text.split(|character: char| !character.is_alphanumeric() && character != '_')
        .any(|word| names.contains(word.to_ascii_lowercase().as_str()))
}

/// Whether an earlier statement takes a lock that makes others wait: LOCK, an advisory lock, FOR UPDATE.
pub(crate) fn is_serialized(steps: &[Step<'_>]) -> bool {
    steps.iter().flat_map(|step| &step.sql).any(|sql| {
        let mut found = matches!(sql.ast, Ast::LockTable(_));
        sql.ast.visit(&mut |part| match part {
            Part::Query(query) => found |= !query.locking.is_empty(),
            Part::Expr(expression) => {
                if let ExprKind::Call(call) = &expression.kind {
                    found |= call.name.starts_with("pg_advisory") || call.name.starts_with("pg_try_advisory");
                }
            }
            _ => {}
        });
        found
    })
}
