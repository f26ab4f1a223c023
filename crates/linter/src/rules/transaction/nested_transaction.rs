//! BEGIN and COMMIT that do not fit the transaction that is open.

use crate::report::Reporter;
use crate::rule::{MigrationContext, RuleContext, declare_rule};
use crate::severity::Severity;
use pgvet_model::migration::{Migration, TransactionMode};
use pgvet_syntax::ast::{Ast, Transaction};
use pgvet_syntax::source::TextRange;
use pgvet_syntax::statement::Statement;

declare_rule! {
    /// `BEGIN` inside a transaction, `COMMIT` or `ROLLBACK` without a `BEGIN` in the file, or a transaction that the
    /// file leaves open.
    ///
    /// ## Why it matters
    ///
    /// PostgreSQL has no nested transactions: a second `BEGIN` only raises a warning, and the first `COMMIT` ends the
    /// transaction of the migration tool. Later statements run outside this transaction, so a failure does not undo
    /// them. The tool may then record a half-applied migration. Some tools fail at their own `COMMIT`, after the
    /// migration was applied. A transaction that is never committed is rolled back when the session ends.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- transaction
    /// BEGIN;
    /// ALTER TABLE orders ADD COLUMN note text;
    /// COMMIT;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- transaction
    /// ALTER TABLE orders ADD COLUMN note text;
    /// ```
    ///
    /// The severity is `info` if no transaction is open at a `COMMIT` or `ROLLBACK`: PostgreSQL then only raises a
    /// warning.
    ///
    /// ## When it is not reported
    ///
    /// - a file in which every `BEGIN` has its `COMMIT`, if the migration tool opens no transaction
    /// - savepoints, which are not transactions
    /// - a `COMMIT` after a statement that pgvet cannot parse, because that statement may contain the `BEGIN`
    "nested-transaction", Transaction, Warning,
    {
        sources: &["squawk/transaction-nesting", "pgls/transactionNesting"],
    }
    statement = check,
    migration = check_end,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Ast::Transaction(control) = context.ast else { return };
    let range = context.statement.range;
    let wrapped = context.migration.transaction == TransactionMode::Transaction;
    match (control, &context.session.block) {
        (Transaction::Begin, Some(block)) if block.explicit => {
            let message = "a transaction is already open: this BEGIN has no effect";
            let help = "end the open transaction before this BEGIN, or delete the BEGIN";
            reporter
                .report(range, message)
                .help(help)
                .label_in(block.started.file, block.started.range, "it was opened here")
                .emit();
        }
        (Transaction::Begin | Transaction::Commit { .. } | Transaction::Rollback { .. }, Some(block))
            if !block.explicit && missed(context.migration).is_some() => {}
        (Transaction::Begin, Some(_)) if wrapped => {
            let message = "the migration tool has opened a transaction: this BEGIN has no effect, and COMMIT ends the tool's transaction";
            let help = "delete BEGIN and COMMIT, or have the tool run this migration without a transaction";
            reporter.report(range, message).help(help).emit();
        }
        (Transaction::Commit { .. } | Transaction::Rollback { .. }, Some(block)) if !block.explicit => {
            let verb = verb(control);
            if wrapped {
                let follows =
                    if context.migration.begins_another() { "in another transaction" } else { "outside a transaction" };
                let message =
                    format!("this {verb} ends the migration tool's transaction: later statements run {follows}");
                let help = "split the migration, or have the tool run it without a transaction";
                reporter.report(range, message).help(help).emit();
            } else {
                let effect = if verb == "ROLLBACK" { "undoes" } else { "commits" };
                let message = format!(
                    "this {verb} has no BEGIN: it {effect} the earlier statements that are sent in the same query string"
                );
                reporter.report(range, message).help("add BEGIN where the transaction should start").emit();
            }
        }
        (Transaction::Commit { .. } | Transaction::Rollback { .. }, None) if !may_be_open(context) => {
            let message = format!("no transaction is open: this {} has no effect", verb(control));
            let help = "delete this statement, or add BEGIN where the transaction should start";
            reporter.report(range, message).severity(Severity::Info).help(help).emit();
        }
        _ => {}
    }
}

/// Whether a statement since the last one of this kind does not parse. It may have been the BEGIN that this one ends.
fn may_be_open(context: &RuleContext<'_>) -> bool {
    let before = context.migration.statements_before(context.statement.range.start);
    let is_control = |statement: &&Statement| matches!(statement.ast(), Some(Ast::Transaction(_)));
    before.take_while(|statement| !is_control(statement)).any(|statement| statement.ast().is_none())
}

fn verb(control: &Transaction) -> &'static str {
    if matches!(control, Transaction::Rollback { .. }) { "ROLLBACK" } else { "COMMIT" }
}

fn check_end(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    check_missed(context, reporter);
    let open = context.session.block.as_ref().is_some_and(|block| block.explicit);
    // The tool's own COMMIT ends it.
    if !open || context.migration.transaction == TransactionMode::Transaction {
        return;
    }
    let is_begin = |statement: &&Statement| matches!(statement.ast(), Some(Ast::Transaction(Transaction::Begin)));
    let begin = context.migration.statements().rev().find(is_begin);
    let range = begin.map_or(TextRange::default(), |statement| statement.range);
    let message = "this transaction is never committed: all its changes are rolled back when the session ends";
    reporter.report(range, message).help("end the file with COMMIT").emit();
}

/// The program looks for the transaction that it has opened, and the file has ended it.
fn check_missed(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    let Some((last, control)) = missed(context.migration) else { return };
    let message = format!(
        "this {} ends the migration tool's transaction: the tool's own COMMIT then fails, and the tool reports an \
         error although the migration has been applied",
        verb(control)
    );
    let help = "delete BEGIN and COMMIT, or have the tool run this migration without a transaction";
    reporter.report(last.range, message).severity(Severity::Error).help(help).emit();
}

/// What ends the transaction of a program that fails then. A later BEGIN opens one that the program treats as its own.
fn missed<'a>(migration: &Migration<'a>) -> Option<(&'a Statement, &'a Transaction)> {
    let control = |statement: &'a Statement| match statement.ast() {
        Some(Ast::Transaction(
            control @ (Transaction::Begin | Transaction::Commit { .. } | Transaction::Rollback { .. }),
        )) => Some((statement, control)),
        _ => None,
    };
    if !migration.runner.misses_its_transaction || migration.transaction != TransactionMode::Transaction {
        return None;
    }
    let last = migration.statements().rev().find_map(control)?;
    matches!(last.1, Transaction::Commit { chain: false } | Transaction::Rollback { chain: false }).then_some(last)
}
