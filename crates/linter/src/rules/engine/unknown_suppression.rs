//! A suppression that names no rule; reported by the run itself.

use crate::rule::declare_rule;

declare_rule! {
    /// A `pgvet:` comment that suppresses nothing, because it names no rule, a rule that does not exist, or a rule that
    /// cannot be suppressed.
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
    /// A comment suppresses findings in one of two forms:
    ///
    /// - `-- pgvet: ignore[rule-a, rule-b] reason` before a statement, inside it or at the end of its last line applies
    ///   to that statement.
    /// - `-- pgvet: ignore-file[rule] reason` anywhere applies to the file.
    ///
    /// The reason is free text. It may be omitted, unless the configuration has `require-reasons = true`.
    ///
    /// ## When it is not reported
    ///
    /// - comments that do not begin with `pgvet:`
    ///
    /// Comments cannot suppress rules of category `engine`. These rules report statements that PostgreSQL refuses, text
    /// that pgvet cannot read, and comments that have no effect. To accept their findings, use `pgvet baseline`.
    "unknown-suppression", Engine, Warning,
    {}
}
