//! Savepoints that stay until the end of their transaction.

use super::transactions::transactions;
use crate::report::Reporter;
use crate::rule::{MigrationContext, declare_rule};

declare_rule! {
    /// A `SAVEPOINT` that is still set when its transaction commits.
    ///
    /// ## Why it matters
    ///
    /// Savepoints nest. A savepoint that is not released keeps its resources, and all later statements run one
    /// subtransaction level deeper. A new savepoint with the same name does not replace the old one, but hides it.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// BEGIN;
    /// SAVEPOINT before_load;
    /// INSERT INTO orders (id) VALUES (1);
    /// COMMIT;
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// BEGIN;
    /// SAVEPOINT before_load;
    /// INSERT INTO orders (id) VALUES (1);
    /// RELEASE SAVEPOINT before_load;
    /// COMMIT;
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - a transaction that is rolled back as a whole
    "savepoint-not-released", Bloat, Info,
    { recommended: false }
    migration = check,
}

fn check(context: &MigrationContext<'_>, reporter: &mut Reporter<'_>) {
    for savepoint in transactions(context).into_iter().flat_map(|transaction| transaction.unreleased) {
        let message = format!(
            "the savepoint `{}` is never released, so it stays open until the transaction ends",
            savepoint.name
        );
        let help =
            format!("release the savepoint when it is no longer needed:\n    RELEASE SAVEPOINT {};", savepoint.name);
        reporter.report(savepoint.range, message).help(help).emit();
    }
}
