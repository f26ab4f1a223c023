//! Statements that fail when half of a migration is run again.

use super::first_words;
use super::invalid_index_kept::{self, is_dropped_before};
use super::retry_blocked;
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use pgvet_syntax::ast::{AlterTableAction, Ast};

declare_rule! {
    /// A statement outside a transaction that fails when the migration is run a second time.
    ///
    /// ## Why it matters
    ///
    /// If a later statement of the file fails, this one is already committed. The next run of the migration fails at
    /// this statement, and somebody has to clean up by hand.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE orders (id bigint PRIMARY KEY);
    /// SELECT 1;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE IF NOT EXISTS orders (id bigint PRIMARY KEY);
    /// SELECT 1;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - statements in a transaction: it is rolled back as a whole
    /// - the last statement of the file, unless it is `CREATE INDEX CONCURRENTLY`, which leaves an invalid index behind
    ///   when it fails
    /// - a statement with `IF NOT EXISTS` that would keep an invalid index, which `invalid-index-kept` reports
    /// - a statement before one that may well fail, which `retry-blocked` reports
    "not-rerunnable", Transaction, Info,
    {
        recommended: false,
        sources: &["squawk/prefer-robust-stmts", "pgls/preferRobustStmts"],
        yields_to: &[&invalid_index_kept::RULE.meta, &retry_blocked::RULE.meta],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    if context.in_block() || context.code.is_some_and(|code| code.guarded) {
        return;
    }
    let is_last = context.later().next().is_none();
    let Some(help) = missing_guard(context.ast) else { return };
    let concurrent = match context.ast {
        Ast::CreateIndex(index) if index.concurrently => Some(index),
        _ => None,
    };
    let message = match concurrent {
        Some(index) if is_dropped_before(context, index) => return,
        Some(index) if index.if_not_exists => "a failed build leaves an invalid index, which the next run keeps",
        Some(_) => "a failed build leaves an invalid index, and the next run fails because that name is taken",
        None if is_last => return,
        None => "if a later statement fails, the next run of the migration fails at this statement",
    };
    reporter.report(first_words(context), message).help(help).emit();
}

/// How to make the statement fit to be run again; `None` where it is.
pub(super) fn missing_guard(ast: &Ast) -> Option<&'static str> {
    const CREATE: &str = "add IF NOT EXISTS, or run the file in a transaction";
    const DROP: &str = "add IF EXISTS, or run the file in a transaction";
    const REPLACE: &str = "add OR REPLACE, or run the file in a transaction";
    const TRANSACTION: &str = "run the file in a transaction";
    match ast {
        Ast::CreateIndex(index) if index.concurrently => {
            Some("add DROP INDEX CONCURRENTLY IF EXISTS before this statement")
        }
        Ast::CreateIndex(index) if !index.if_not_exists => Some(CREATE),
        Ast::CreateTable(table) if !table.if_not_exists => Some(CREATE),
        Ast::CreateSequence(sequence) if !sequence.if_not_exists => Some(CREATE),
        Ast::CreateSchema(schema) if !schema.if_not_exists => Some(CREATE),
        Ast::CreateExtension(extension) if !extension.if_not_exists => Some(CREATE),
        Ast::AlterEnum(alter) if alter.renamed.is_none() && !alter.if_not_exists => Some(CREATE),
        Ast::CreateType(_) | Ast::CreateDomain(_) | Ast::Rename(_) | Ast::CreatePolicy(_) => Some(TRANSACTION),
        Ast::CreateView(view) if !view.or_replace => Some(REPLACE),
        Ast::CreateFunction(function) if !function.or_replace => Some(REPLACE),
        Ast::Drop(drop) if !drop.if_exists => Some(DROP),
        Ast::AlterTable(alter) => alter.commands.iter().find_map(|command| match &command.action {
            AlterTableAction::AddColumn { if_not_exists: false, .. } => Some(CREATE),
            AlterTableAction::DropColumn { if_exists: false, .. }
            | AlterTableAction::DropConstraint { if_exists: false, .. } => Some(DROP),
            AlterTableAction::AddConstraint(constraint) if constraint.name.is_some() => {
                Some("add DROP CONSTRAINT IF EXISTS before this statement, or run the file in a transaction")
            }
            _ => None,
        }),
        _ => None,
    }
}
