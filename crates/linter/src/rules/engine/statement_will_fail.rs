//! PostgreSQL would certainly refuse the statement here.

use crate::report::Reporter;
use crate::rule::{RuleContext, declare_rule};

declare_rule! {
    /// A statement that PostgreSQL would refuse at this point of the history.
    ///
    /// ## Why it matters
    ///
    /// The migration stops here, and what ran before it may stay half done.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// CREATE TABLE orders (id bigint PRIMARY KEY);
    /// ALTER TABLE orders DROP COLUMN note;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE TABLE orders (id bigint PRIMARY KEY);
    /// ALTER TABLE orders DROP COLUMN IF EXISTS note;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// When the object may exist although no migration shows it, when only the data decide, and when only a version
    /// refuses it that is older than the newest and was not configured with `pg-version`.
    /// Statements that PostgreSQL refuses in a transaction block are `concurrently-in-transaction`.
    "statement-will-fail", Engine, Error,
    {}
    statement = check,
}

fn check(context: &RuleContext<'_>, reporter: &mut Reporter<'_>) {
    let Some(failure) = &context.effects.fails else { return };
    // `concurrently-in-transaction` says it better.
    if failure.sqlstate != "25001" {
        reporter.report(failure.range, format!("PostgreSQL refuses this: {}", failure.reason));
    }
}
