//! Statements that are fine alone and harmful together, or refused in a transaction.

pub mod commit_in_subtransaction;
pub mod concurrently_in_transaction;
pub mod enum_value_used_in_same_transaction;
pub mod inconsistent_lock_order;
pub mod invalid_index_kept;
pub mod many_tables_locked;
pub mod mixed_ddl_and_bulk_dml;
pub mod nested_transaction;
pub mod not_rerunnable;
pub mod retry_blocked;
pub mod second_run_deadlocks;
pub mod sessions_stopped;
pub mod setting_of_earlier_migration;
pub mod validate_in_same_transaction;
pub mod work_after_strong_lock;

mod lock_order;
mod retry;

use crate::rule::RuleContext;
use pgvet_model::migration::TransactionMode;
use pgvet_syntax::source::TextRange;

/// How to leave a transaction before a statement, for the tool and the file at hand.
fn split_help(context: &RuleContext<'_>, what: &str) -> String {
    if context.code.is_some() {
        return format!("move {what} out of this function or DO block, and run it in its own transaction");
    }
    match (context.migration.transaction, &context.session.block) {
        (TransactionMode::Transaction, _) => format!("move {what} to a later migration"),
        (_, None) => format!("move {what} out of this function or DO block, and run it in its own transaction"),
        (_, Some(block)) if block.explicit => format!("COMMIT before {what}"),
        (TransactionMode::Autocommit, Some(_)) => format!(
            "give {what} its own StatementBegin and StatementEnd: everything between them is sent as one string and runs \
             in one transaction"
        ),
        (_, Some(_)) => {
            format!("move {what} to a later migration: statements that are sent as one string run in one transaction")
        }
    }
}

/// The words that open a statement, to point at if the statement as a whole matters.
fn first_words(context: &RuleContext<'_>) -> TextRange {
    let tokens = &context.statement.tokens;
    let text = context.source();
    let is_verb = |keyword: &str| tokens.first().is_some_and(|token| token.is_keyword(text, keyword));
    let words = if ["ALTER", "CREATE", "DROP", "LOCK"].into_iter().any(is_verb) { 2 } else { 1 };
    tokens.iter().take(words).fold(TextRange::default(), |range, token| range.cover(token.range))
}
