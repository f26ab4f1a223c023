//! Statements that fail when half of a migration is run again.

use super::first_words;
use crate::ast::{AlterTableAction, Ast, CreateIndex, ObjectKind};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::around::earlier;

declare_rule! {
    /// A statement outside of a transaction that fails when the migration is run a second time.
    ///
    /// ## Why it matters
    ///
    /// Where a later statement of the file fails, this one has happened and stays. The next run stops here, and
    /// somebody has to clean up by hand.
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
    /// In a transaction, which is undone as a whole, and for the last statement of the file, unless that is
    /// `CREATE INDEX CONCURRENTLY`: it leaves an invalid index behind when it fails, and `IF NOT EXISTS` would then
    /// silently keep that one.
    "not-rerunnable", Transaction, Info,
    {
        recommended: false,
        sources: &["squawk/prefer-robust-stmts", "pgls/preferRobustStmts"],
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
        Some(_) => "a failed build leaves an invalid index, on which the next run fails",
        None if is_last => return,
        None => "this fails when the migration is run again after a later statement failed",
    };
    reporter.report(first_words(context), message).help(help).emit();
}

/// Does the file drop the index IF EXISTS, so that an invalid one goes first?
fn is_dropped_before(context: &RuleContext<'_>, index: &CreateIndex) -> bool {
    earlier(context).any(|ast| match ast {
        Ast::Drop(drop) if drop.kind == ObjectKind::Index && drop.if_exists => {
            let name = index.name.as_ref().map(|name| &name.text);
            drop.objects.iter().any(|object| Some(&object.name.name.text) == name)
        }
        _ => false,
    })
}

/// How to make the statement fit to be run again; `None` where it is.
fn missing_guard(ast: &Ast) -> Option<&'static str> {
    const CREATE: &str = "write IF NOT EXISTS, or run the file in a transaction";
    const DROP: &str = "write IF EXISTS, or run the file in a transaction";
    const REPLACE: &str = "write OR REPLACE, or run the file in a transaction";
    const TRANSACTION: &str = "run the file in a transaction";
    match ast {
        Ast::CreateIndex(index) if index.concurrently => {
            Some("write DROP INDEX CONCURRENTLY IF EXISTS before it, so that an invalid index is built anew")
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
                Some("write DROP CONSTRAINT IF EXISTS before it, or run the file in a transaction")
            }
            _ => None,
        }),
        _ => None,
    }
}
