//! A rule that panicked; reported by the run itself.

use crate::rule::declare_rule;

declare_rule! {
    /// A bug in pgvet: a rule crashed while it checked a statement.
    ///
    /// ## Why it matters
    ///
    /// The findings of the rule that crashed are missing for this statement. All other rules and all other statements
    /// were checked.
    ///
    /// ## Example
    ///
    /// No statement is known that makes a rule crash.
    ///
    /// Use instead:
    ///
    /// Report the statement to the developers of pgvet, and turn the rule off for this file in `pgvet.toml` until the
    /// rule is fixed:
    ///
    /// ```toml
    /// [[overrides]]
    /// paths = ["migrations/0042_orders.sql"]
    /// rules = { name-of-the-rule = "off" }
    /// ```
    ///
    /// ## When it is not reported
    ///
    /// - earlier migrations, which pgvet reads only to know the schema
    "internal-error", Engine, Error,
    {}
}
