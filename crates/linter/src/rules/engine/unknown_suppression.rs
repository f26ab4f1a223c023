//! A suppression that names no rule; reported by the run itself.

use crate::rule::declare_rule;

declare_rule! {
    /// A `pgvet:` comment that suppresses nothing: it names no rule, a rule that does not exist, or a rule that cannot
    /// be suppressed.
    ///
    /// ## Why it matters
    ///
    /// The comment looks as if somebody had accepted a risk, but it has no effect.
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
    /// `ignore[rule-a, rule-b]` before a statement, inside it or at the end of its last line applies to that statement;
    /// `ignore-file[rule]` anywhere applies to the file. A reason may follow.
    ///
    /// ## When it is not reported
    ///
    /// - comments that do not begin with `pgvet:`
    ///
    /// Rules of the category engine report statements and comments that cannot work at all. They cannot be suppressed.
    "unknown-suppression", Engine, Warning,
    {}
}
