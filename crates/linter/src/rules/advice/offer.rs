//! Advice as help, as steps, and where nothing stands in the way as a fix.

use super::Advice;
use crate::fix::{Applicability, Edit, Fix, Step};
use crate::report::Finding;
use crate::rule::RuleContext;
use pgvet_model::migration::TransactionMode;
use pgvet_model::runner::KnownTransaction;
use pgvet_syntax::ast::Ast;
use pgvet_syntax::source::TextRange;

/// Adds advice to a finding. Where each statement of the file is a transaction of its own, its steps are a fix.
pub(crate) fn offer<'r, 'a>(context: &RuleContext<'_>, finding: Finding<'r, 'a>, advice: Advice) -> Finding<'r, 'a> {
    let (steps, obstacle) = (advice.steps.clone(), advice.obstacle.clone());
    let finding = finding.help(advice);
    let finding = match in_steps(context, &steps) {
        Some(fix) => finding.fix(fix),
        None => finding,
    };
    finding.steps(steps).obstacle(obstacle)
}

fn in_steps(context: &RuleContext<'_>, steps: &[Step]) -> Option<Fix> {
    // One statement that becomes another is what the rules' own fixes are for.
    if steps.len() < 2 || !is_autocommit(context) || steps.iter().any(|step| step.note.is_some()) {
        return None;
    }
    let sql: Vec<&str> = steps.iter().map(|step| step.sql.as_str()).collect();
    let text = sql.join(&format!(";{}\n{}", separator(context), indentation(context)));
    Some(Fix {
        title: "Split the statement into steps that block nobody for long".to_owned(),
        applicability: Applicability::Unsafe,
        edits: vec![Edit { range: context.statement.range, text }],
    })
}

/// Whether each statement beside the present one is a transaction of its own.
pub(crate) fn is_autocommit(context: &RuleContext<'_>) -> bool {
    context.migration.transaction == TransactionMode::Autocommit && !context.session.in_transaction()
}

/// A statement on a line before the present one.
pub(crate) fn line_before(context: &RuleContext<'_>, sql: &str) -> Edit {
    let start = context.statement.range.start;
    Edit { range: TextRange::at(start), text: format!("{sql};{}\n{}", separator(context), indentation(context)) }
}

/// A statement on a line before the first one of the migration.
pub(crate) fn line_at_start(context: &RuleContext<'_>, sql: &str) -> Option<Edit> {
    let first = context.migration.statements().next()?.range.start;
    Some(Edit { range: TextRange::at(first), text: format!("{sql};{}\n", separator(context)) })
}

/// The line between two statements, if the program needs one.
fn separator(context: &RuleContext<'_>) -> String {
    context.migration.runner.separator.map(|line| format!("\n{line}")).unwrap_or_default()
}

/// A statement on a line after the present one.
pub(crate) fn line_after(context: &RuleContext<'_>, sql: &str) -> Option<Edit> {
    let end = context.statement.range.end;
    let rest = context.source().get(end as usize..)?;
    let spaces = rest.len() - rest.trim_start().len();
    let line = format!("{}\n{}{sql};", separator(context), indentation(context));
    match rest.as_bytes().get(spaces) {
        Some(b';') => Some(Edit { range: TextRange::at(end + spaces as u32 + 1), text: line }),
        None => Some(Edit { range: TextRange::at(end), text: format!(";{line}") }),
        Some(_) => None,
    }
}

/// The text before the statement on its line, if that is only white space.
fn indentation<'c>(context: &RuleContext<'c>) -> &'c str {
    let before = &context.source()[..context.statement.range.start as usize];
    let line = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
    if line.trim().is_empty() { line } else { "" }
}

/// What else has to be changed so that the statement runs outside a transaction: nothing, or the comment that takes
/// its migration out of the tool's. `None` where it has company in that transaction, or the tool knows no such comment, and
/// in code, which always runs in one. A transaction that is only assumed does not count if nothing but settings would be
/// left beside the statement: see [`KnownTransaction::Unlikely`].
pub(crate) fn leave_transaction(context: &RuleContext<'_>) -> Option<Vec<Edit>> {
    let Some(block) = &context.session.block else { return Some(Vec::new()) };
    if context.code.is_some() {
        return None;
    }
    let is_assumed = context.migration.transaction == TransactionMode::Transaction
        && matches!(
            context.migration.runner.known_transaction,
            KnownTransaction::Assumed | KnownTransaction::Doubtful | KnownTransaction::Selective
        );
    let mut others = context.migration.statements().filter(|other| other.range != context.statement.range);
    if is_assumed && !block.explicit && others.all(|other| matches!(other.ast(), Some(Ast::Set(_)))) {
        return Some(Vec::new());
    }
    let alone = context.migration.statements().nth(1).is_none();
    let opt_out = context.settings.opt_outs.get(&context.file);
    opt_out.filter(|_| alone && !block.explicit).map(|edit| vec![edit.clone()])
}
