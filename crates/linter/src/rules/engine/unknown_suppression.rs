//! A suppression that names no rule; reported by the run itself.

use crate::rule::declare_rule;

declare_rule! {
    /// A `pgvet: ignore` comment that cannot be followed: it names no rule, or one that cannot be suppressed.
    ///
    /// ## Why it matters
    ///
    /// The comment looks as if somebody had accepted a risk, and does nothing. After a typo is corrected elsewhere it may
    /// start to hide findings.
    ///
    /// ## Example
    ///
    /// ```sql,reported
    /// -- pgvet: ignore[index-without-concurently] the table is tiny
    /// CREATE INDEX orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// Use instead:
    ///
    /// ```sql,clean
    /// -- pgvet: ignore[index-without-concurrently] the table is tiny
    /// CREATE INDEX orders_customer_idx ON orders (customer_id);
    /// ```
    ///
    /// `ignore[rule-a, rule-b]` before a statement, inside it or at the end of its last line holds for that statement;
    /// `ignore-file[rule]` anywhere holds for the file. A reason may follow.
    ///
    /// ## When it is not reported
    ///
    /// In comments that do not begin with `pgvet:`. Rules of the category engine say that a statement or comment cannot
    /// work at all; they cannot be suppressed.
    "unknown-suppression", Engine, Warning,
    {}
}
