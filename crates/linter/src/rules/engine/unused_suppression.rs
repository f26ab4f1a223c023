//! A suppression that suppresses nothing; reported by the run itself.

use crate::rule::declare_rule;

declare_rule! {
    /// A `pgvet: ignore` comment for a rule that reports nothing there.
    ///
    /// ## Why it matters
    ///
    /// What it was written for is gone or was corrected. The next real finding of that rule would be hidden by it.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- pgvet: ignore[index-without-concurrently] the table is tiny
    /// CREATE INDEX CONCURRENTLY orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// CREATE INDEX CONCURRENTLY orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// For rules that are switched off in this run, and for files that are replayed as history.
    ///
    /// ## Fix safety
    ///
    /// The fix deletes the comment, or only the name where the comment names other rules too.
    "unused-suppression", Engine, Warning,
    { fixable: true }
}
