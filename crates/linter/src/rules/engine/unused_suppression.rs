//! A suppression that suppresses nothing; reported by the run itself.

use crate::rule::declare_rule;

declare_rule! {
    /// A `pgvet: ignore` comment for a rule that reports nothing at that place.
    ///
    /// ## Why it matters
    ///
    /// The finding that the comment suppressed no longer exists. The comment would hide the next real finding of that
    /// rule.
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
    /// - rules that are disabled in this run
    /// - earlier migrations, which pgvet reads only to know the schema
    ///
    /// ## Fix safety
    ///
    /// The fix deletes the comment, or only the name of the rule if the comment also names other rules. The fix is
    /// safe, because the comment suppresses nothing.
    "unused-suppression", Engine, Warning,
    { fixable: true }
}
