//! Statements that PostgreSQL refuses in a transaction block.

use super::first_words;
use crate::assumption::Assumption;
use crate::fix::{Applicability, Fix};
use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};
use crate::rules::advice::offer::leave_transaction;
use crate::rules::statement::sqlstate::ACTIVE_SQL_TRANSACTION;
use pgvet_model::migration::TransactionMode;
use pgvet_model::routine::Trial;
use pgvet_model::runner::KnownTransaction;
use pgvet_syntax::ast::Ast;
use pgvet_syntax::source::TextRange;

declare_rule! {
    /// A statement that runs in a transaction block, although PostgreSQL does not allow it there.
    ///
    /// ## Why it matters
    ///
    /// The migration fails at this statement. PostgreSQL refuses `CREATE INDEX CONCURRENTLY`, `VACUUM`, `ALTER SYSTEM`
    /// and some other statements in a transaction block. A `BEGIN` in the file or the migration tool can open the
    /// block. PostgreSQL also opens one if several statements are sent as one string.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- transaction
    /// CREATE INDEX CONCURRENTLY orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- autocommit
    /// CREATE INDEX CONCURRENTLY orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - files that run without a transaction, and have no `BEGIN` of their own
    /// - a file that is sent as one string but contains only one statement
    ///
    /// ## Confidence
    ///
    /// If pgvet recognizes no migration tool, and the configuration does not set `transaction`, pgvet assumes that a
    /// migration tool opens a transaction for each file with a version in its name. The confidence then depends on the
    /// file, unless a `BEGIN` in the file opens the transaction:
    ///
    /// - the confidence is `likely` if other statements of the file can run in a transaction.
    /// - the confidence is `possible` if the file contains only settings and statements that cannot run in a
    ///   transaction. This suggests that the tool opens no transaction. The finding is then shown only with
    ///   `--confidence possible`.
    /// - the confidence is also `possible` if another file in the folder mixes statements that cannot run in a
    ///   transaction with other statements. That file works only if the tool opens no transaction.
    ///
    /// ## Fix safety
    ///
    /// If the statement is the only one of its migration, and the migration tool has a comment that disables its
    /// transaction, the fix adds that comment. The fix is unsafe, because the file then runs without a transaction. If
    /// you later add statements to the file and one of them fails, the earlier statements are already committed.
    "concurrently-in-transaction", Transaction, Error,
    {
        fixable: true,
        sources: &[
            "squawk/ban-concurrent-index-creation-in-transaction",
            "pgls/banConcurrentIndexCreationInTransaction",
            "strong_migrations/add_index", "atlas/PG103"],
    }
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(failure) = context.effects.fails.as_ref().filter(|failure| failure.sqlstate == ACTIVE_SQL_TRANSACTION)
    else {
        return check_unlikely_transaction(context, reporter);
    };
    let range = if failure.range.is_empty() { first_words(context) } else { failure.range };
    let is_code = context.code.is_some() || matches!(context.ast, Ast::Do(_) | Ast::Call(_) | Ast::Select(_));
    let Some(block) = context.session.block.as_ref().filter(|_| !is_code) else {
        let help = "code in DO blocks and functions always runs in a transaction: run this as a separate statement";
        reporter.report(range, failure.reason.clone()).help(help).emit();
        return;
    };
    let help = match context.migration.transaction {
        TransactionMode::Transaction
            if context.migration.runner.known_transaction != KnownTransaction::Known && !block.explicit =>
        {
            UNKNOWN_RUNNER_HELP
        }
        TransactionMode::Transaction => {
            "put the statement into a separate migration, and have the migration tool run it without a transaction"
        }
        TransactionMode::Autocommit if block.explicit => {
            "move the statement out of the transaction: before BEGIN or after COMMIT"
        }
        TransactionMode::Autocommit => {
            "give the statement its own StatementBegin and StatementEnd, or place it outside them: everything between \
             them runs in one transaction"
        }
        TransactionMode::SingleString => {
            "put the statement into a separate file: a single statement is not wrapped in a transaction"
        }
    };
    let began = match context.migration.transaction {
        TransactionMode::Transaction => "the migration tool opens a transaction before this",
        _ if block.explicit => "the transaction begins here",
        TransactionMode::Autocommit | TransactionMode::SingleString => {
            "statements that are sent as one string run in one transaction, which begins here"
        }
    };
    let assumption = Assumption::of_transaction(context.migration).filter(|_| !block.explicit);
    let mut finding = reporter.report(range, failure.reason.clone()).help(help).assuming(assumption);
    if let Some(edits) = leave_transaction(context) {
        let title = "Run the migration without a transaction".to_owned();
        finding = finding.fix(Fix { title, applicability: Applicability::Unsafe, edits });
    }
    // The tool's transaction begins at the first statement, which is no news where that is this one.
    if block.started.range.start < context.outer().start {
        finding = finding.label_in(block.started.file, beginning(context, block.started.range), began);
    }
    finding.emit();
}

const UNKNOWN_RUNNER_HELP: &str = "move the statement to a separate migration, and run it without a transaction; \
                                   if the program that runs the migrations opens no transactions, set \
                                   `transaction = \"autocommit\"` under [migrations] in pgvet.toml";

const UNLIKELY_TRANSACTION_HELP: &str = "make sure that the program that runs the migrations opens no transaction for this file; \
                                         if the program never opens transactions, set `transaction = \
                                         \"autocommit\"` under [migrations] in pgvet.toml";

/// Reports a statement that would be refused if the program opened a transaction, against what the file suggests.
fn check_unlikely_transaction(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let runner = &context.migration.runner;
    if runner.known_transaction != KnownTransaction::Unlikely || context.in_block() || context.code.is_some() {
        return;
    }
    let path = context.session.settings.search_path();
    let tried = Trial::new(context.before, &path, context.target.version()).run_in_block(context.ast);
    let Some(failure) = tried.fails.filter(|failure| failure.sqlstate == ACTIVE_SQL_TRANSACTION) else { return };
    let finding = reporter.report(failure.range, failure.reason).help(UNLIKELY_TRANSACTION_HELP);
    finding.assuming(Assumption::of_transaction(context.migration)).emit();
}

/// The first word of the statement that a range begins with; the beginning of a tool's transaction has no length.
fn beginning(context: &RuleContext<'_>, range: TextRange) -> TextRange {
    let mut statements = context.migration.statements();
    let first = statements.find(|statement| statement.range.start == range.start);
    first.and_then(|statement| statement.tokens.first()).map_or(range, |token| token.range)
}
